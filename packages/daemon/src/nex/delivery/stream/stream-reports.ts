/** What a `stream` process reports of one delivery → the ledger, the acks, and how the delivery ended. */

import type { StreamLine, StreamStatus } from "@nexus-stream/adapter/host";
import { speaks } from "../../accounts/account.ts";
import { isAttachmentNonce } from "../attachments/attachment-nonce.ts";
import type { DeliveryContext, DeliveryOutcome } from "../delivery-context.ts";
import { leaveRefused } from "./half-shown.ts";

type StatusOf<T extends StreamStatus["type"]> = Extract<StreamStatus, { type: T }>;

export interface ReportListeners {
	/** `begun` is called when the process may have read the line. */
	write(line: StreamLine, begun?: () => void): void;
	/** A message appeared or was finished (`out`), or grew. */
	message(what: "out" | "grown"): void;
}

export class StreamReports {
	readonly #delivering: DeliveryContext;
	readonly #listeners: ReportListeners;
	/** Announced, and the ack has not left for the process: certainly not created when it dies. */
	readonly #waiting = new Set<string>();
	#end: { position: number; hasVisibleText: boolean } | undefined;

	constructor(context: DeliveryContext, listeners: ReportListeners) {
		this.#delivering = context;
		this.#listeners = listeners;
	}

	/** The end of the source, which is at this position, was written. `hasVisibleText`: there was something to see. */
	ended(position: number, hasVisibleText: boolean): void {
		this.#end = { position, hasVisibleText };
	}

	/** The process is gone. */
	lost(): void {
		for (const nonce of this.#waiting) this.#delivering.live.change("withdraw", nonce);
		this.#waiting.clear();
	}

	/** Something when the delivery is over. */
	take(status: StreamStatus): DeliveryOutcome | undefined {
		const { live, log } = this.#delivering;
		switch (status.type) {
			case "message_creating":
				this.#announce(status);
				return undefined;
			case "message_created":
				live.change("created", this.#allowed(this.#nonceFor(status)), status.messageId);
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
				if (nonce !== undefined) live.change("remove", this.#allowed(nonce));
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
				log.debug({ delivery: live.id, status: status satisfies never }, "a status that is not in the protocol");
				return undefined;
		}
	}

	#announce({ nonce, from, to, ordinal }: StatusOf<"message_creating">): void {
		const { live, log } = this.#delivering;
		this.#waiting.add(nonce);
		live.intend({ ordinal, nonce, from, to });
		// The record says both that it was announced and that it is about to be allowed: a second one between the two would cost a commit per
		// message and leave the same gap, between itself and the pipe, that a kill -9 can hit.
		const allow = () => {
			if (!this.#waiting.has(nonce)) return;
			const ack = { type: "ack" as const, nonce, delivery: live.id, runId: live.row.runId };
			this.#listeners.write(ack, () => this.#waiting.delete(nonce));
		};
		// What is not on record is not allowed: whoever took the delivery over goes on, or the adapter is late and is ended.
		live
			.recorded()
			.then(allow, (cause: unknown) =>
				log.warn({ delivery: live.id, nonce, err: cause }, "a message may not be created"),
			);
	}

	#allowed(nonce: string): string {
		this.#waiting.delete(nonce);
		return nonce;
	}

	#updated(status: StatusOf<"message_updated">): void {
		const { live } = this.#delivering;
		// Without intents, one that tells of a message only when it grows has made it all the same.
		if (this.#nonceOf(status) === undefined && !speaks(this.#delivering.info, "intent"))
			live.change("created", this.#nonceFor(status), status.messageId);
		const nonce = this.#nonceOf(status);
		const to = status.to ?? this.#counted(nonce, status.chars);
		if (nonce !== undefined && to !== undefined) live.change("shown", nonce, to);
		this.#listeners.message("grown");
	}

	/** Without positions the characters that a message shows tell how far it reaches. */
	#counted(nonce: string | undefined, chars: number): number | undefined {
		const message = this.#delivering.live.row.messages.find((each) => each.nonce === nonce);
		return this.#hasPositions || !message || chars === 0 ? undefined : message.from + chars;
	}

	#sent(status: StatusOf<"message_sent">): void {
		const { live } = this.#delivering;
		const nonce = this.#allowed(this.#nonceFor(status));
		const shown = live.row.messages.find((each) => each.nonce === nonce)?.shown;
		// Without positions a message's end is only known as far as it was counted.
		const to = status.to ?? (this.#hasPositions ? undefined : shown) ?? live.row.cursor;
		live.change("sent", nonce, { messageId: status.messageId, to, carry: status.carry });
		this.#listeners.message("out");
	}

	#complete({ messageIds = [] }: Partial<StatusOf<"delivery_complete">>): DeliveryOutcome {
		const { live } = this.#delivering;
		if (this.#end === undefined)
			return this.#degrade("The adapter said delivery_complete before the answer had ended.");
		const last = live.row.messages.at(-1);
		const isTold = messageIds.length > 0 || this.#delivering.damage !== undefined;
		if (this.#end.hasVisibleText && !isTold && live.row.messages.every(({ nonce }) => isAttachmentNonce(nonce))) {
			const error = "The adapter said delivery_complete and told of no message; the text may or may not be there.";
			return { state: "unknown", error };
		}
		// Without positions only the end says how far the messages reach.
		if (last?.messageId !== undefined && !this.#hasPositions) {
			live.change("sent", last.nonce, { messageId: last.messageId, to: this.#end.position });
		}
		return { state: "complete" };
	}

	#failed(status: StatusOf<"delivery_error">): DeliveryOutcome {
		const { live } = this.#delivering;
		const error = `${status.code ? `${status.code}: ` : ""}${status.error}`;
		if (status.code !== "unknown_outcome") {
			// It names the message and says why it was refused, so it was not created.
			if (status.code !== undefined && status.nonce !== undefined) live.change("withdraw", this.#allowed(status.nonce));
			return this.#degrade(error);
		}
		const nonce = this.#nonceOf(status);
		return nonce === undefined ? { state: "unknown", error } : this.#doubt(nonce, error);
	}

	/** What is shown of an open message stays; the rest is owed. Nothing is owed for certain while something is uncertain. */
	#degrade(error: string): DeliveryOutcome {
		const { live } = this.#delivering;
		if (!this.#hasPositions) return leaveRefused(this.#delivering, error) ?? { state: "degraded", error };
		const open = live.unfinished;
		if (open?.state === "intended" && this.#waiting.delete(open.nonce)) live.change("withdraw", open.nonce);
		else if (open?.state === "intended") return this.#doubt(open.nonce, error);
		else if (open) live.abandon(open);
		return { state: "degraded", error };
	}

	#doubt(nonce: string, error: string): DeliveryOutcome {
		this.#delivering.live.change("doubt", nonce);
		return { state: "unknown", error };
	}

	get #hasPositions(): boolean {
		return speaks(this.#delivering.info, "offset");
	}

	/** By its nonce, by its id, or the one that was announced and has no id yet. */
	#nonceOf(status: { nonce?: string; messageId?: string }): string | undefined {
		const { live } = this.#delivering;
		const { messages } = live.row;
		const named = messages.find(({ nonce }) => nonce === status.nonce);
		const same =
			named ?? messages.findLast(({ messageId }) => messageId !== undefined && messageId === status.messageId);
		if (same || status.nonce !== undefined) return same?.nonce;
		return live.unfinished?.state === "intended" ? live.unfinished.nonce : undefined;
	}

	/** Adapters without intents create first and tell afterwards. */
	#nonceFor(status: { nonce?: string; messageId: string; from?: number }): string {
		const found = this.#nonceOf(status);
		if (found !== undefined) return found;
		const { live } = this.#delivering;
		const { ordinal, nonce } = live.next();
		const own = status.nonce ?? nonce;
		live.intend({ ordinal, nonce: own, from: status.from ?? live.row.cursor });
		return own;
	}
}
