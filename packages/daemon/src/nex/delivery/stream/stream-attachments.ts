/** Attachments of a streamed text: sent by the `send` verb after the text before them was sent and before the text after them is written. */

import { type DeliveryAttachment, showsPart, unsentAttachment } from "../attachments/attachment.ts";
import { sendAttachment } from "../blocks/send-delivery.ts";
import type { DeliveryContext, DeliveryOutcome } from "../delivery-context.ts";
import { readSource } from "../source.ts";
import { NO_TYPING } from "./typing.ts";

export class StreamAttachments {
	readonly #context: DeliveryContext;
	#sending: Promise<unknown> = Promise.resolve();
	#moved = () => {};
	#held = false;

	constructor(context: DeliveryContext) {
		this.#context = context;
	}

	/** The adapter has reported progress. */
	moved(): void {
		this.#moved();
	}

	/** An attachment waits for the end of the text. */
	get isHolding(): boolean {
		return this.#held;
	}

	/** Defers an attachment that cannot be sent yet: the preceding text is unconfirmed, or it is inside a code block. */
	hold(): void {
		this.#held = true;
	}

	/** Resolves when nothing is being sent. */
	async idle(): Promise<void> {
		await this.#sending;
	}

	/** Sends the attachment once the visible text before it, up to `visibleUpTo`, was sent. */
	async send(attachment: DeliveryAttachment, visibleUpTo: number, signal: AbortSignal): Promise<void> {
		const { live, limits } = this.#context;
		await this.#sendOnce(() => live.row.cursor >= visibleUpTo, limits.answerMs, attachment, signal);
	}

	/** For adapters without positions: sends the attachment once `isSent` reports that the message before it is finished. */
	async sendAfter(isSent: () => boolean, attachment: DeliveryAttachment, signal: AbortSignal): Promise<void> {
		await this.#sendOnce(isSent, this.#context.limits.attachmentMs, attachment, signal);
	}

	async #sendOnce(
		isReady: () => boolean,
		limitMs: number,
		attachment: DeliveryAttachment,
		signal: AbortSignal,
	): Promise<void> {
		const isDue = await this.#until(isReady, limitMs, signal);
		if (signal.aborted) return;
		if (!isDue) {
			this.hold();
			return;
		}
		this.#sending = sendAttachment(this.#context, attachment, NO_TYPING);
		await this.#sending;
	}

	/** Sends the deferred attachments after the text. */
	async sendDeferred(): Promise<DeliveryOutcome | undefined> {
		if (!this.#held) return undefined;
		const { live, bus, signal, log } = this.#context;
		for await (const events of readSource(bus, live.row.runId, { position: live.row.cursor, signal, log })) {
			for (const each of events) {
				if (each.event.type === "part" && showsPart(this.#context, each.event)) continue;
				const attachment = unsentAttachment(this.#context, each);
				const outcome = attachment && (await sendAttachment(this.#context, attachment, NO_TYPING));
				if (outcome) return outcome;
			}
		}
		return signal.aborted ? { state: "left" } : undefined;
	}

	/** False when the adapter does not report it in time. */
	async #until(isReady: () => boolean, limitMs: number, signal: AbortSignal): Promise<boolean> {
		const { clock, account } = this.#context;
		let since = clock.now();
		while (!isReady() && !signal.aborted) {
			if (account.rate.pausedUntil !== undefined) since = clock.now();
			else if (clock.now() - since >= limitMs) return false;
			await this.#report(limitMs, signal);
		}
		return !signal.aborted;
	}

	/** Waits for the next report, at most `limitMs`. */
	async #report(limitMs: number, signal: AbortSignal): Promise<void> {
		const { clock } = this.#context;
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
