/** What stands beside a streamed text: sent by the `send` verb when the text before it is out, and before the text after it is written. */

import { type DeliveryAttachment, showsPart, unsentAttachment } from "../attachments/attachment.ts";
import { sendAttachment } from "../blocks/send-delivery.ts";
import type { DeliveryContext, DeliveryOutcome } from "../delivery-context.ts";
import { readSource } from "../source.ts";

const QUIET = { take() {} };

export class StreamAttachments {
	readonly #delivering: DeliveryContext;
	#sending: Promise<unknown> = Promise.resolve();
	#moved = () => {};
	#held = false;

	constructor(context: DeliveryContext) {
		this.#delivering = context;
	}

	/** The adapter has reported something. */
	moved(): void {
		this.#moved();
	}

	/** Something cannot be sent before the end of the text. */
	get isHolding(): boolean {
		return this.#held;
	}

	/** One that cannot be sent where it stands: nobody would know when the text before it is out, or it stands inside code. */
	hold(): void {
		this.#held = true;
	}

	/** Resolves when nothing is being sent. */
	async idle(): Promise<void> {
		await this.#sending;
	}

	/** `withoutSpace`: how far the text before it has something to see. */
	async say(attachment: DeliveryAttachment, visibleUpTo: number, signal: AbortSignal): Promise<void> {
		const { live, limits } = this.#delivering;
		await this.#sayOnce(() => live.row.cursor >= visibleUpTo, limits.answerMs, attachment, signal);
	}

	/** Without positions: when `isOut` says that the message before it is finished. */
	async sayBehind(isOut: () => boolean, attachment: DeliveryAttachment, signal: AbortSignal): Promise<void> {
		await this.#sayOnce(isOut, this.#delivering.limits.attachmentMs, attachment, signal);
	}

	async #sayOnce(
		isReady: () => boolean,
		limitMs: number,
		attachment: DeliveryAttachment,
		signal: AbortSignal,
	): Promise<void> {
		const isOut = await this.#out(isReady, limitMs, signal);
		if (signal.aborted) return;
		if (!isOut) {
			this.hold();
			return;
		}
		this.#sending = sendAttachment(this.#delivering, attachment, QUIET);
		await this.#sending;
	}

	/** Those that were held, now that the text is out. */
	async rest(): Promise<DeliveryOutcome | undefined> {
		if (!this.#held) return undefined;
		const { live, bus, signal, log } = this.#delivering;
		for await (const events of readSource(bus, live.row.runId, { position: live.row.cursor, signal, log })) {
			for (const each of events) {
				if (each.event.type === "part" && showsPart(this.#delivering, each.event)) continue;
				const attachment = unsentAttachment(this.#delivering, each);
				const left = attachment && (await sendAttachment(this.#delivering, attachment, QUIET));
				if (left) return left;
			}
		}
		return signal.aborted ? { state: "left" } : undefined;
	}

	/** False when the adapter does not come to it in time. */
	async #out(isOut: () => boolean, limitMs: number, signal: AbortSignal): Promise<boolean> {
		const { clock, account } = this.#delivering;
		let since = clock.now();
		while (!isOut() && !signal.aborted) {
			if (account.gate.pausedUntil !== undefined) since = clock.now();
			else if (clock.now() - since >= limitMs) return false;
			await this.#report(limitMs, signal);
		}
		return !signal.aborted;
	}

	/** The next report, or a while. */
	async #report(limitMs: number, signal: AbortSignal): Promise<void> {
		const { clock } = this.#delivering;
		const { promise, resolve } = Promise.withResolvers<void>();
		this.#moved = resolve;
		const cancel = clock.after(limitMs, resolve);
		const over = () => resolve();
		signal.addEventListener("abort", over, { once: true });
		await promise;
		cancel();
		signal.removeEventListener("abort", over);
	}
}
