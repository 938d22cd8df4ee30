/** Slots that applications take in turns: one that asks for many at once waits behind those that ask for few. */

export interface ScriptSlots {
	/** Resolves when there is a place; rejects with the signal's reason. */
	enter(appId: string, signal: AbortSignal): Promise<void>;
	leave(): void;
}

interface WaitingScript {
	appId: string;
	begin(): void;
}

export function createTurns(places: number): ScriptSlots {
	const waiting = new Set<WaitingScript>();
	/** The last turn of each application since all slots were free. */
	const served = new Map<string, number>();
	let taken = 0;
	let turn = 0;
	const serve = (appId: string) => served.set(appId, ++turn);
	/** The first of the application whose last turn is longest ago. */
	const next = (): WaitingScript | undefined => {
		let best: WaitingScript | undefined;
		for (const one of waiting) if (!best || (served.get(one.appId) ?? 0) < (served.get(best.appId) ?? 0)) best = one;
		return best;
	};
	return {
		enter(appId, signal) {
			signal.throwIfAborted();
			if (taken < places) {
				taken++;
				serve(appId);
				return Promise.resolve();
			}
			const { promise, resolve, reject } = Promise.withResolvers<void>();
			const aborted = () => {
				waiting.delete(one);
				reject(signal.reason as Error);
			};
			const one: WaitingScript = {
				appId,
				begin() {
					waiting.delete(one);
					signal.removeEventListener("abort", aborted);
					resolve();
				},
			};
			waiting.add(one);
			signal.addEventListener("abort", aborted, { once: true });
			return promise;
		},
		leave() {
			const one = next();
			if (!one) {
				taken--;
				if (taken === 0) served.clear();
				return;
			}
			serve(one.appId);
			one.begin();
		},
	};
}
