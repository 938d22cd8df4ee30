/** One delivery in memory: the rules by which its messages change. Every change is applied to the row here and recorded. */

import { nonceOf, pieceNonce, pieceOf } from "@nexus-stream/adapter/host";
import type { Resume } from "@nexus-stream/adapter/port";
import type { DeliveryMode, DeliveryState } from "@nexus-stream/protocol/api";
import type { Clock } from "@nexus-stream/protocol/clock";
import {
	type Delivery,
	type DeliveryMessage,
	deliveryWrites,
	type MissedMessage,
} from "../../ledger/deliveries/port.ts";
import type { Write } from "../../std/write.ts";
import type { DeliveryRecord } from "./record.ts";

/** All other nonces are entirely hexadecimal. */
const ATTACHMENT = /^x[0-9a-f]{19}(?:\.\d+)?$/;

export const isAttachmentNonce = (nonce: string): boolean => ATTACHMENT.test(nonce);

export const attachmentNonce = (delivery: string, offset: number, which: string): string =>
	`x${nonceOf(`${delivery}#${offset}${which}`, 0).slice(1)}`;

/** The line that a nonce belongs to. */
export const lineOf = (nonce: string): string => pieceOf(nonce).line;

export const isUnfinished = ({ state }: DeliveryMessage): boolean => state === "intended" || state === "open";

/** A message that is about to be created. */
type IntendedMessage = Omit<DeliveryMessage, "state" | "messageId" | "shown">;

export interface SentMessage {
	messageId: string;
	/** The source position behind its text. */
	to: number;
	/** Text that the next message has to begin with. */
	carry?: string;
	/** It was left as it was when its stream failed. */
	abandoned?: true;
}

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

	setMode(mode: DeliveryMode): void {
		this.row.mode = mode;
		this.#record.add(deliveryWrites.setMode(this.id, mode, this.#touch()));
	}

	/** A message may exist from now on. Announcing the same nonce again changes nothing but its text and positions. */
	intend(message: IntendedMessage): void {
		this.#record.add(this.#announced(message));
	}

	/** It was announced but certainly never created. */
	withdraw(nonce: string): void {
		this.#drop(nonce, ["intended"]);
	}

	/** It showed no text of the answer, and is gone again or was never created. */
	remove(nonce: string): void {
		this.#drop(nonce, ["intended", "open"]);
	}

	created(nonce: string, messageId: string): void {
		const message = this.#find(nonce);
		if (message && message.state !== "sent") this.#put(message, { state: "open", messageId });
	}

	shown(nonce: string, to: number): void {
		const message = this.#find(nonce);
		if (message && message.state !== "sent") this.#put(message, { shown: to, edits: (message.edits ?? 0) + 1 });
	}

	/** The message is finished: the cursor moves to its end. */
	sent(nonce: string, sent: SentMessage): void {
		this.#record.add(...this.#finished(nonce, sent));
	}

	/** The platform did not deliver it. A message that is still being sent becomes `failed` when it is finished. */
	failed(nonce: string, missed: MissedMessage): void {
		const message = this.#find(nonce);
		if (!message) return;
		Object.assign(message, missed);
		if (message.state === "sent") message.state = "failed";
		this.#record.add(deliveryWrites.failed(this.id, nonce, missed, this.#touch()));
	}

	/** The daemon cannot find out whether the message exists. */
	doubt(nonce: string): void {
		const message = this.#find(nonce);
		if (message) this.#put(message, { state: "unknown" });
	}

	finish(state: Exclude<DeliveryState, "active">, error: string | undefined): void {
		const now = this.#touch();
		Object.assign(this.row, { state, endedAt: now });
		if (error !== undefined) this.row.error = error;
		this.#record.add(deliveryWrites.finish(this.id, state, error, now));
	}

	/** An open message keeps what it shows; its stream ends here. */
	abandon({ nonce, messageId, shown, from }: DeliveryMessage): void {
		this.sent(nonce, { messageId: messageId!, to: shown ?? from, abandoned: true });
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
		this.#record.add(...this.#finished(nonce, { messageId: sent.messageId, to }), this.#announced(rest));
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

	/** Ordinals are in the order of announcement, whether the adapter or the daemon counted. */
	#announced(intended: IntendedMessage): Write {
		const { messages } = this.row;
		const at = messages.findIndex(({ nonce }) => nonce === intended.nonce);
		const ordinal = messages[at]?.ordinal ?? Math.max(intended.ordinal, this.#lastOrdinal() + 1);
		const message: DeliveryMessage = { ...intended, ordinal, state: "intended" };
		messages.splice(at < 0 ? messages.length : at, 1, message);
		return this.#stored(message);
	}

	#finished(nonce: string, { messageId, to, carry, abandoned }: SentMessage): Write[] {
		const { row } = this;
		const message = this.#find(nonce);
		if (!message) return [];
		row.cursor = Math.max(row.cursor, to);
		row.carry = carry;
		// The text of a send is kept only as long as its outcome is unknown.
		Object.assign(message, { messageId, to, text: undefined, done: undefined, facts: undefined });
		if (abandoned) message.abandoned = true;
		if (message.state === "open") message.edits = (message.edits ?? 0) + 1;
		message.state = message.error === undefined ? "sent" : "failed";
		return [this.#stored(message)];
	}

	#put(message: DeliveryMessage, values: Partial<DeliveryMessage>): void {
		Object.assign(message, values);
		this.#record.add(this.#stored(message));
	}

	/** The write of a message as it is now. */
	#stored(message: DeliveryMessage): Write {
		const { cursor, carry } = this.row;
		return deliveryWrites.put(this.id, { ...message }, { cursor, carry }, this.#touch());
	}

	#drop(nonce: string, states: readonly DeliveryMessage["state"][]): void {
		const { messages } = this.row;
		const at = messages.findIndex((message) => message.nonce === nonce && states.includes(message.state));
		if (at < 0) return;
		messages.splice(at, 1);
		this.#record.add(deliveryWrites.drop(this.id, nonce, this.#touch()));
	}

	#find(nonce: string): DeliveryMessage | undefined {
		return this.row.messages.find((message) => message.nonce === nonce);
	}

	/** The time of this change. */
	#touch(): number {
		this.row.updatedAt = this.#clock.now();
		return this.row.updatedAt;
	}

	#lastOrdinal(): number {
		return this.row.messages.reduce((most, { ordinal }) => Math.max(most, ordinal), 0);
	}
}
