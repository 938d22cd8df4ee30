/** What stands beside a streamed text: sent by the `send` verb when the text before it is out, and before the text after it is written. */

import { type Aside, owedAside } from "./aside.ts";
import type { Delivering, Outcome } from "./delivering.ts";
import { sendAside } from "./send-delivery.ts";
import { readSource } from "./source.ts";

const QUIET = { take() {} };

export class StreamAsides {
	readonly #delivering: Delivering;
	#sending: Promise<unknown> = Promise.resolve();
	#moved = () => {};
	#held = false;

	constructor(delivering: Delivering) {
		this.#delivering = delivering;
	}

	/** The adapter has reported something. */
	moved(): void {
		this.#moved();
	}

	/** One that cannot be sent where it stands: nobody would know when the text before it is out, or it stands inside code. */
	hold(): void {
		this.#held = true;
	}

	/** Resolves when nothing is being sent. */
	async idle(): Promise<void> {
		await this.#sending;
	}

	/** `ink`: how far the text before it has something to see. */
	async say(aside: Aside, ink: number, signal: AbortSignal): Promise<void> {
		const isOut = await this.#out(ink, signal);
		if (signal.aborted) return;
		if (!isOut) {
			this.hold();
			return;
		}
		this.#sending = sendAside(this.#delivering, aside, QUIET);
		await this.#sending;
	}

	/** Those that were held, now that the text is out. */
	async rest(): Promise<Outcome | undefined> {
		if (!this.#held) return undefined;
		const { tracked, bus, signal, log } = this.#delivering;
		for await (const events of readSource(bus, tracked.row.runId, { position: tracked.row.cursor, signal, log })) {
			for (const each of events) {
				const aside = owedAside(this.#delivering, each);
				const left = aside && (await sendAside(this.#delivering, aside, QUIET));
				if (left) return left;
			}
		}
		return signal.aborted ? { state: "left" } : undefined;
	}

	/** False when the adapter does not come to it in time. */
	async #out(ink: number, signal: AbortSignal): Promise<boolean> {
		const { tracked, clock, limits, account } = this.#delivering;
		const isOut = () => tracked.row.cursor >= ink;
		let since = clock.now();
		while (!isOut() && !signal.aborted) {
			if (account.gate.pausedUntil !== undefined) since = clock.now();
			else if (clock.now() - since >= limits.answerMs) return false;
			await this.#report(signal);
		}
		return !signal.aborted;
	}

	/** The next report, or a while. */
	async #report(signal: AbortSignal): Promise<void> {
		const { clock, limits } = this.#delivering;
		const { promise, resolve } = Promise.withResolvers<void>();
		this.#moved = resolve;
		const cancel = clock.after(limits.answerMs, resolve);
		const over = () => resolve();
		signal.addEventListener("abort", over, { once: true });
		await promise;
		cancel();
		signal.removeEventListener("abort", over);
	}
}
