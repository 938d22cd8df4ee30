/** One delivery in memory: every change is applied here at once and put on record, so that memory and ledger tell the same story. */

import { nonceOf, pieceNonce, pieceOf, type Resume } from "@nexus-stream/adapter/host";
import type { Clock } from "@nexus-stream/protocol/clock";
import { type Delivery, type DeliveryMessage, type DeliveryOps, deliveryWrites } from "../../ledger/ledger.ts";
import type { Write } from "../../std/write.ts";
import { isAttachmentNonce } from "./attachments/attachment-nonce.ts";
import { CHANGES } from "./delivery-changes.ts";
import type { DeliveryRecord } from "./record.ts";

export const isUnfinished = ({ state }: DeliveryMessage): boolean => state === "intended" || state === "open";

type Verb = keyof typeof CHANGES;

/** What a change says beside the delivery and the time. */
type ChangeArguments<V extends Verb> = Parameters<DeliveryOps[V]> extends [string, ...infer T, number] ? T : never;

export class LiveDelivery {
	readonly row: Delivery;
	readonly #record: DeliveryRecord;
	/** How far the text was handed to processes that cannot say what they show; undefined when an earlier daemon did it. */
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

	/** Aborts when another daemon has taken it over. */
	get lost(): AbortSignal {
		return this.#record.lost;
	}

	/** How long ago the last progress was; also over a restart. */
	get idleMs(): number {
		return this.#clock.now() - this.row.updatedAt;
	}

	/** Everything before this source position is out, or may be. */
	get reach(): number {
		const doubted = this.row.messages.filter(({ state, nonce }) => state === "unknown" && !isAttachmentNonce(nonce));
		return Math.max(this.row.cursor, ...doubted.map(({ from, to }) => to ?? from));
	}

	/** The message of the answer's text that has not been finished, if there is one: at most one at a time. */
	get unfinished(): DeliveryMessage | undefined {
		return this.row.messages.findLast((message) => isUnfinished(message) && !isAttachmentNonce(message.nonce));
	}

	/** What is left of a line that is being sent. A stream may have announced a message of its own meanwhile. */
	unfinishedOf(line: string): DeliveryMessage | undefined {
		return this.row.messages.findLast((message) => isUnfinished(message) && pieceOf(message.nonce).line === line);
	}

	/** Ordinal and nonce of the next message that the daemon itself sends. */
	next(): { ordinal: number; nonce: string } {
		const ordinal = this.#lastOrdinal() + 1;
		return { ordinal, nonce: nonceOf(this.id, ordinal) };
	}

	/** What does not apply to the row, such as a message that is not there, changes nothing. */
	change<V extends Verb>(verb: V, ...args: ChangeArguments<V>): void {
		this.#record.add(...this.#apply(verb, args));
	}

	intend(message: ChangeArguments<"intend">[0]): void {
		this.change("intend", this.#inOrder(message));
	}

	/** What an open message shows stays as it is; its stream ends here. */
	abandon({ nonce, messageId, shown, from }: DeliveryMessage): void {
		this.change("sent", nonce, { messageId: messageId!, to: shown ?? from, abandoned: true });
	}

	/**
	 * One of the messages that a send needs is out. What is left of the send is announced in the same breath, so that no crash finds only one
	 * of the two on record. False when it was known already, or says nothing of positions.
	 */
	piece(sending: string, out: { messageId: string; nonce?: string; to?: number; chars?: number }): boolean {
		const current = this.unfinishedOf(sending);
		const { text, from, nonce, facts } = current ?? {};
		if (text === undefined || from === undefined || current?.to === undefined || nonce === undefined) return false;
		if (out.to === undefined || (out.nonce !== undefined && out.nonce !== nonce)) return false;
		const to = Math.min(Math.max(from, out.to), current.to);
		const done = Math.min(out.chars ?? (current.done ?? 0) + to - from, text.length);
		const { line, piece } = pieceOf(nonce);
		const rest = { ordinal: 0, nonce: pieceNonce(line, piece + 1), from: to, to: current.to, text, done, facts };
		const sent = this.#apply("sent", [nonce, { messageId: out.messageId, to }]);
		this.#record.add(...sent, ...this.#apply("intend", [this.#inOrder(rest)]));
		return true;
	}

	/** Resolves when everything so far is durable; rejects when it never will be. */
	recorded(): Promise<void> {
		return this.#record.durable();
	}

	/** Where a new process goes on; undefined when nothing has happened yet. */
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

	/** Ordinals tell which was announced first, whoever counted. */
	#inOrder(message: ChangeArguments<"intend">[0]): ChangeArguments<"intend">[0] {
		const known = this.row.messages.find(({ nonce }) => nonce === message.nonce);
		return { ...message, ordinal: known?.ordinal ?? Math.max(message.ordinal, this.#lastOrdinal() + 1) };
	}

	#lastOrdinal(): number {
		return this.row.messages.reduce((most, { ordinal }) => Math.max(most, ordinal), 0);
	}
}
