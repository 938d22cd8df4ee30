/** A command under way, wherever it runs: what it wrote so far, and how it is ended. */

const WAIT_MS = 60_000;
const PRESS_MS = 100;

export interface Finished {
	code: number | null;
	out: string;
	err: string;
}

export interface Running {
	readonly out: string;
	readonly err: string;
	/** Waits until what it wrote satisfies the condition. */
	until(condition: (seen: { out: string; err: string }) => boolean): Promise<void>;
	/** Sends a signal, if any, and waits for the end. */
	end(signal?: NodeJS.Signals): Promise<Finished>;
	/** Presses Ctrl-C until it ends: two presses too close to one another count as one. */
	interruptUntilEnd(): Promise<Finished>;
}

/** `closed` gives the exit code, null after an unhandled signal. */
export function watch(
	closed: Promise<number | null>,
	send: (signal: NodeJS.Signals) => void,
): { running: Running; wrote(name: "out" | "err", text: string): void } {
	const seen = { out: "", err: "" };
	const waiting = new Set<() => void>();
	const end = async (signal?: NodeJS.Signals): Promise<Finished> => {
		if (signal !== undefined) send(signal);
		return { code: await closed, ...seen };
	};
	const running: Running = {
		end,
		async interruptUntilEnd() {
			const again = setInterval(() => send("SIGINT"), PRESS_MS);
			return end().finally(() => clearInterval(again));
		},
		get out() {
			return seen.out;
		},
		get err() {
			return seen.err;
		},
		async until(condition) {
			const { promise, resolve, reject } = Promise.withResolvers<void>();
			const look = () => condition(seen) && resolve();
			const fail = (what: string) => reject(new Error(`${what}: ${String(condition)}\n${JSON.stringify(seen)}`));
			const late = setTimeout(() => fail("waited too long for"), WAIT_MS);
			waiting.add(look);
			look();
			void closed.then(() => fail("ended before"), reject);
			await promise.finally(() => {
				clearTimeout(late);
				waiting.delete(look);
			});
		},
	};
	return {
		running,
		wrote(name, text) {
			seen[name] += text;
			for (const look of waiting) look();
		},
	};
}
