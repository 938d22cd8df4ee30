/** One delivery in memory: every change is applied to the row here and recorded, so that memory and ledger agree. */

import { nonceOf, pieceNonce, pieceOf, type Resume } from "@nexus-stream/adapter/host";
import type { Clock } from "@nexus-stream/protocol/clock";
import { type Delivery, type DeliveryMessage, type DeliveryOps, deliveryWrites } from "../../ledger/deliveries/port.ts";
import type { Write } from "../../std/write.ts";
import { isAttachmentNonce } from "./attachments/attachment-nonce.ts";
import { CHANGES } from "./delivery-changes.ts";
import type { DeliveryRecord } from "./record.ts";

export const isUnfinished = ({ state }: DeliveryMessage): boolean => state === "intended" || state === "open";

type Verb = keyof typeof CHANGES;

/** The arguments of a change between the delivery and the time. */
type ChangeArguments<V extends Verb> = Parameters<DeliveryOps[V]> extends [string, ...infer T, number] ? T : never;

export class LiveDelivery {
	readonly row: Delivery;
	readonly #record: DeliveryRecord;
	/** How far the text was written to processes that do not report what they show; undefined when an earlier daemon wrote it. */
	given: number | undefined;
	/** The wall clock, which may not go back. */
	readonly #clock: Pick<Clock, "now">;

	constructor(row: Delivery, record: DeliveryRecord, clock: Pick<Clock, "now">) {
		this.row = row;
		this.#record = record;
		this.#clock = clock;
	}

	get id(): string {
		return this.row.id;
	}

	/** Aborts when another daemon has taken the delivery over. */
	get lost(): AbortSignal {
		return this.#record.lost;
	}

	/** Time since the last progress, also across a restart. */
	get idleMs(): number {
		return this.#clock.now() - this.row.updatedAt;
	}

	/** Everything before this source position was sent, or may have been. */
	get reach(): number {
		const doubted = this.row.messages.filter(({ state, nonce }) => state === "unknown" && !isAttachmentNonce(nonce));
		return Math.max(this.row.cursor, ...doubted.map(({ from, to }) => to ?? from));
	}

	/** The unfinished message of the answer's text; there is at most one. */
	get unfinished(): DeliveryMessage | undefined {
		return this.row.messages.findLast((message) => isUnfinished(message) && !isAttachmentNonce(message.nonce));
	}

	/** The remainder of a line that is being sent. A stream may have announced another message in the meantime. */
	unfinishedOf(line: string): DeliveryMessage | undefined {
		return this.row.messages.findLast((message) => isUnfinished(message) && pieceOf(message.nonce).line === line);
	}

	/** Ordinal and nonce of the next message that the daemon itself sends. */
	next(): { ordinal: number; nonce: string } {
		const ordinal = this.#lastOrdinal() + 1;
		return { ordinal, nonce: nonceOf(this.id, ordinal) };
	}

	/** A change that does not apply to the row, for example to a message that does not exist, is ignored. */
	change<V extends Verb>(verb: V, ...args: ChangeArguments<V>): void {
		this.#record.add(...this.#apply(verb, args));
	}

	intend(message: ChangeArguments<"intend">[0]): void {
		this.change("intend", this.#inOrder(message));
	}

	/** An open message keeps what it shows; its stream ends here. */
	abandon({ nonce, messageId, shown, from }: DeliveryMessage): void {
		this.change("sent", nonce, { messageId: messageId!, to: shown ?? from, abandoned: true });
	}

	/**
	 * One of the messages of a send was created. The remainder is announced in the same transaction, so that a crash never leaves only one of
	 * the two on record. False when the message was known already, or has no position.
	 */
	piece(line: string, sent: { messageId: string; nonce?: string; to?: number; chars?: number }): boolean {
		const current = this.unfinishedOf(line);
		const { text, from, nonce, facts } = current ?? {};
		if (text === undefined || from === undefined || current?.to === undefined || nonce === undefined) return false;
		if (sent.to === undefined || (sent.nonce !== undefined && sent.nonce !== nonce)) return false;
		const to = Math.min(Math.max(from, sent.to), current.to);
		const done = Math.min(sent.chars ?? (current.done ?? 0) + to - from, text.length);
		const { line: name, piece } = pieceOf(nonce);
		const rest = { ordinal: 0, nonce: pieceNonce(name, piece + 1), from: to, to: current.to, text, done, facts };
		const writes = this.#apply("sent", [nonce, { messageId: sent.messageId, to }]);
		this.#record.add(...writes, ...this.#apply("intend", [this.#inOrder(rest)]));
		return true;
	}

	/** Resolves when everything so far is durable; rejects when it never will be. */
	recorded(): Promise<void> {
		return this.#record.durable();
	}

	/** Where a new process continues; undefined when nothing has been sent yet. */
	resume(): Resume | undefined {
		const { messages, cursor, carry } = this.row;
		if (messages.length === 0) return undefined;
		const current = this.unfinished;
		return {
			position: current?.from ?? cursor,
			ordinal: this.#lastOrdinal(),
			carry,
			messageId: current?.state === "open" ? current.messageId! : undefined,
			shown: current?.state === "open" ? current.shown : undefined,
			uncertain: current?.state === "intended" ? { nonce: current.nonce, to: current.to } : undefined,
		};
	}

	#apply<V extends Verb>(verb: V, args: ChangeArguments<V>): Write[] {
		const now = this.#clock.now();
		const apply: (row: Delivery, ...rest: never[]) => boolean = CHANGES[verb];
		if (!apply(this.row, ...([...args, now] as never[]))) return [];
		this.row.updatedAt = now;
		const write: (...args: never[]) => Write = deliveryWrites[verb];
		return [write(...([this.id, ...args, now] as never[]))];
	}

	/** Keeps ordinals in the order of announcement, whether the adapter or the daemon counted. */
	#inOrder(message: ChangeArguments<"intend">[0]): ChangeArguments<"intend">[0] {
		const known = this.row.messages.find(({ nonce }) => nonce === message.nonce);
		return { ...message, ordinal: known?.ordinal ?? Math.max(message.ordinal, this.#lastOrdinal() + 1) };
	}

	#lastOrdinal(): number {
		return this.row.messages.reduce((most, { ordinal }) => Math.max(most, ordinal), 0);
	}
}
