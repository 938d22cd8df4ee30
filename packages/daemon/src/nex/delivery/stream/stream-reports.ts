/** Handles the reports of a `stream` process on one delivery: records them, acknowledges intents, and returns the outcome. */

import type { StreamLine, StreamStatus } from "@nexus-stream/adapter/port";
import { speaks } from "../../accounts/account.ts";
import type { DeliveryContext, DeliveryOutcome } from "../delivery-context.ts";
import { isAttachmentNonce } from "../live-delivery.ts";
import { leaveRefused } from "./half-shown.ts";

type StatusOf<T extends StreamStatus["type"]> = Extract<StreamStatus, { type: T }>;

export interface ReportListeners {
	/** `begun` is called when the process may have read the line. */
	write(line: StreamLine, begun?: () => void): void;
	/** A message was created or finished (`out`), or grew. */
	message(what: "out" | "grown"): void;
}

export class StreamReports {
	readonly #context: DeliveryContext;
	readonly #listeners: ReportListeners;
	/** Announced, but the process cannot have read the ack yet: if it dies now, the message was certainly not created. */
	readonly #waiting = new Set<string>();
	#end: { position: number; hasVisibleText: boolean } | undefined;

	constructor(context: DeliveryContext, listeners: ReportListeners) {
		this.#context = context;
		this.#listeners = listeners;
	}

	/** The end of the source was written. `hasVisibleText`: the text was not only white space. */
	ended(position: number, hasVisibleText: boolean): void {
		this.#end = { position, hasVisibleText };
	}

	/** The process has ended. */
	lost(): void {
		for (const nonce of this.#waiting) this.#context.live.withdraw(nonce);
		this.#waiting.clear();
	}

	/** The outcome, once the delivery has ended. */
	take(status: StreamStatus): DeliveryOutcome | undefined {
		const { live, log } = this.#context;
		switch (status.type) {
			case "message_creating":
				this.#announce(status);
				return undefined;
			case "message_created":
				live.created(this.#allowed(this.#nonceFor(status)), status.messageId);
				this.#listeners.message("out");
				return undefined;
			case "message_updated":
				this.#updated(status);
				return undefined;
			case "message_sent":
				this.#sent(status);
				return undefined;
			case "message_removed": {
				const nonce = this.#nonceOf(status);
				if (nonce !== undefined) live.remove(this.#allowed(nonce));
				return undefined;
			}
			case "delivery_complete":
				return this.#complete(status);
			case "delivery_error":
				return this.#failed(status);
			case "rate_limited":
			case "call":
				return undefined;
			default:
				log.debug({ delivery: live.id, status: status satisfies never }, "unknown status from the adapter");
				return undefined;
		}
	}

	#announce({ nonce, from, to, ordinal }: StatusOf<"message_creating">): void {
		const { live, log } = this.#context;
		this.#waiting.add(nonce);
		live.intend({ ordinal, nonce, from, to });
		// One record covers both the announcement and the ack: a second record between them would cost a commit per message, and a kill -9
		// could still hit between that record and the pipe.
		const allow = () => {
			if (!this.#waiting.has(nonce)) return;
			const ack = { type: "ack" as const, nonce, delivery: live.id, runId: live.row.runId };
			this.#listeners.write(ack, () => this.#waiting.delete(nonce));
		};
		// An unrecorded message is never acknowledged: the daemon that took over continues, or this adapter times out.
		live
			.recorded()
			.then(allow, (cause: unknown) =>
				log.warn(
					{ delivery: live.id, nonce, err: cause },
					"an intent could not be recorded, so the message is not allowed",
				),
			);
	}

	#allowed(nonce: string): string {
		this.#waiting.delete(nonce);
		return nonce;
	}

	#updated(status: StatusOf<"message_updated">): void {
		const { live } = this.#context;
		// An adapter without intents may report a message for the first time when it grows.
		if (this.#nonceOf(status) === undefined && !speaks(this.#context.info, "intent"))
			live.created(this.#nonceFor(status), status.messageId);
		const nonce = this.#nonceOf(status);
		const to = status.to ?? this.#counted(nonce, status.chars);
		if (nonce !== undefined && to !== undefined) live.shown(nonce, to);
		this.#listeners.message("grown");
	}

	/** Without positions, the number of visible characters shows how far a message reaches. */
	#counted(nonce: string | undefined, chars: number): number | undefined {
		const message = this.#context.live.row.messages.find((each) => each.nonce === nonce);
		return this.#hasPositions || !message || chars === 0 ? undefined : message.from + chars;
	}

	#sent(status: StatusOf<"message_sent">): void {
		const { live } = this.#context;
		const nonce = this.#allowed(this.#nonceFor(status));
		const shown = live.row.messages.find((each) => each.nonce === nonce)?.shown;
		// Without positions, the end of a message is the last count.
		const to = status.to ?? (this.#hasPositions ? undefined : shown) ?? live.row.cursor;
		live.sent(nonce, { messageId: status.messageId, to, carry: status.carry });
		this.#listeners.message("out");
	}

	#complete({ messageIds = [] }: Partial<StatusOf<"delivery_complete">>): DeliveryOutcome {
		const { live } = this.#context;
		if (this.#end === undefined)
			return this.#degrade("The adapter reported delivery_complete before the answer had ended.");
		const last = live.row.messages.at(-1);
		const isExplained = messageIds.length > 0 || this.#context.damage !== undefined;
		if (this.#end.hasVisibleText && !isExplained && live.row.messages.every(({ nonce }) => isAttachmentNonce(nonce))) {
			const error = "The adapter reported delivery_complete without any message; the text may or may not be there.";
			return { state: "unknown", error };
		}
		// Without positions, only the end of the answer shows how far the messages reach.
		if (last?.messageId !== undefined && !this.#hasPositions) {
			live.sent(last.nonce, { messageId: last.messageId, to: this.#end.position });
		}
		return { state: "complete" };
	}

	#failed(status: StatusOf<"delivery_error">): DeliveryOutcome {
		const { live } = this.#context;
		const error = `${status.code ? `${status.code}: ` : ""}${status.error}`;
		if (status.code !== "unknown_outcome") {
			// A refusal with a code that names the message means that it was not created.
			if (status.code !== undefined && status.nonce !== undefined) live.withdraw(this.#allowed(status.nonce));
			return this.#degrade(error);
		}
		const nonce = this.#nonceOf(status);
		return nonce === undefined ? { state: "unknown", error } : this.#doubt(nonce, error);
	}

	/** The open message keeps what it shows and the remainder is sent in blocks, unless the outcome of a message is unknown. */
	#degrade(error: string): DeliveryOutcome {
		const { live } = this.#context;
		if (!this.#hasPositions) return leaveRefused(this.#context, error) ?? { state: "degraded", error };
		const open = live.unfinished;
		if (open?.state === "intended" && this.#waiting.delete(open.nonce)) live.withdraw(open.nonce);
		else if (open?.state === "intended") return this.#doubt(open.nonce, error);
		else if (open) live.abandon(open);
		return { state: "degraded", error };
	}

	#doubt(nonce: string, error: string): DeliveryOutcome {
		this.#context.live.doubt(nonce);
		return { state: "unknown", error };
	}

	get #hasPositions(): boolean {
		return speaks(this.#context.info, "offset");
	}

	/** The message with this nonce or id, else the announced one without an id. */
	#nonceOf(status: { nonce?: string; messageId?: string }): string | undefined {
		const { live } = this.#context;
		const { messages } = live.row;
		const named = messages.find(({ nonce }) => nonce === status.nonce);
		const same =
			named ?? messages.findLast(({ messageId }) => messageId !== undefined && messageId === status.messageId);
		if (same || status.nonce !== undefined) return same?.nonce;
		return live.unfinished?.state === "intended" ? live.unfinished.nonce : undefined;
	}

	/** Adapters without intents report a message only after they have created it. */
	#nonceFor(status: { nonce?: string; messageId: string; from?: number }): string {
		const found = this.#nonceOf(status);
		if (found !== undefined) return found;
		const { live } = this.#context;
		const { ordinal, nonce } = live.next();
		const used = status.nonce ?? nonce;
		live.intend({ ordinal, nonce: used, from: status.from ?? live.row.cursor });
		return used;
	}
}
