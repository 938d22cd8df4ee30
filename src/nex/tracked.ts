/** One delivery in memory: every change is applied here at once and goes to the journal, so that memory and ledger tell the same story. */

import { nonceOf, pieceNonce, pieceOf, type Resume } from "../adapter/adapter.ts";
import type { Delivery, DeliveryMessage, DeliveryMode, DeliveryState, SentOutcome } from "../ledger/ledger.ts";
import type { Clock } from "../std/clock.ts";
import { isAside } from "./aside-nonce.ts";
import type { Journal } from "./journal.ts";

export const isUnfinished = ({ state }: DeliveryMessage): boolean => state === "intended" || state === "open";

export class Tracked {
	readonly row: Delivery;
	readonly #journal: Journal;
	/** The wall clock, which may not go back. */
	readonly #clock: Pick<Clock, "now">;

	constructor(row: Delivery, journal: Journal, clock: Pick<Clock, "now">) {
		this.row = row;
		this.#journal = journal;
		this.#clock = clock;
	}

	get id(): string {
		return this.row.id;
	}

	/** How long ago the last progress was; also over a restart. */
	get idleMs(): number {
		return this.#clock.now() - this.row.updatedAt;
	}

	/** The message of the answer's text that has not been finished, if there is one: at most one at a time. */
	get unfinished(): DeliveryMessage | undefined {
		return this.row.messages.findLast((message) => isUnfinished(message) && !isAside(message.nonce));
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

	setMode(mode: DeliveryMode): void {
		this.row.mode = mode;
		const now = this.#now();
		this.#journal.record((deliveries) => deliveries.setMode(this.id, mode, now));
	}

	intend(message: Omit<DeliveryMessage, "state" | "messageId" | "shown">): void {
		const { messages } = this.row;
		const known = messages.findIndex(({ nonce }) => nonce === message.nonce);
		// Ordinals tell which was announced first, whoever counted.
		const ordinal = known >= 0 ? messages[known]!.ordinal : Math.max(message.ordinal, this.#lastOrdinal() + 1);
		const stored: DeliveryMessage = { ...message, ordinal, state: "intended" };
		if (known >= 0) messages[known] = stored;
		else messages.push(stored);
		const now = this.#now();
		this.#journal.record((deliveries) => deliveries.intend(this.id, { ...message, ordinal }, now));
	}

	/** What was announced was certainly never created. */
	withdraw(nonce: string): void {
		if (!this.#drop(nonce, ["intended"])) return;
		const now = this.#now();
		this.#journal.record((deliveries) => deliveries.withdraw(this.id, nonce, now));
	}

	/** It showed no text of the answer, and is gone again or was never created. */
	remove(nonce: string): void {
		if (!this.#drop(nonce, ["intended", "open"])) return;
		const now = this.#now();
		this.#journal.record((deliveries) => deliveries.remove(this.id, nonce, now));
	}

	created(nonce: string, messageId: string): void {
		const message = this.#message(nonce);
		if (!message || message.state === "sent") return;
		message.state = "open";
		message.messageId = messageId;
		const now = this.#now();
		this.#journal.record((deliveries) => deliveries.created(this.id, nonce, messageId, now));
	}

	shown(nonce: string, to: number): void {
		const message = this.#message(nonce);
		if (!message || message.state === "sent") return;
		message.shown = to;
		message.edits = (message.edits ?? 0) + 1;
		const now = this.#now();
		this.#journal.record((deliveries) => deliveries.shown(this.id, nonce, to, now));
	}

	/** What an open message shows stays as it is; its stream ends here. */
	abandon({ nonce, messageId, shown, from }: DeliveryMessage): void {
		this.sent(nonce, { messageId: messageId!, to: shown ?? from, abandoned: true });
	}

	sent(nonce: string, outcome: SentOutcome): void {
		const message = this.#message(nonce);
		if (!message) return;
		if (outcome.abandoned) message.abandoned = true;
		if (message.state === "open") message.edits = (message.edits ?? 0) + 1;
		message.state = message.error === undefined ? "sent" : "failed";
		message.messageId = outcome.messageId;
		message.to = outcome.to;
		delete message.text;
		delete message.done;
		this.row.cursor = Math.max(this.row.cursor, outcome.to);
		if (outcome.carry === undefined) delete this.row.carry;
		else this.row.carry = outcome.carry;
		const now = this.#now();
		this.#journal.record((deliveries) => deliveries.sent(this.id, nonce, outcome, now));
	}

	/**
	 * One of the messages that a send needs is out. What is left of the send is announced in the same breath, so that no crash finds only one
	 * of the two on record. False when it was known already, or says nothing of positions.
	 */
	piece(sending: string, out: { messageId: string; nonce?: string; to?: number; chars?: number }): boolean {
		const current = this.unfinishedOf(sending);
		const { text, from, nonce } = current ?? {};
		if (text === undefined || from === undefined || current?.to === undefined || nonce === undefined) return false;
		if (out.to === undefined || (out.nonce !== undefined && out.nonce !== nonce)) return false;
		const to = Math.min(Math.max(from, out.to), current.to);
		const done = Math.min(out.chars ?? (current.done ?? 0) + to - from, text.length);
		const { line, piece } = pieceOf(nonce);
		const rest = { nonce: pieceNonce(line, piece + 1), from: to, to: current.to, text, done };
		this.sent(nonce, { messageId: out.messageId, to });
		this.intend({ ordinal: this.#lastOrdinal() + 1, ...rest });
		return true;
	}

	/** The platform had taken it, and did not bring it to its reader. */
	failed(nonce: string, outcome: { messageId: string; error: string }): void {
		const message = this.#message(nonce);
		if (!message) return;
		// One that is still under way is failed as soon as it is finished.
		Object.assign(message, outcome, message.state === "sent" && { state: "failed" });
		const now = this.#now();
		this.#journal.record((deliveries) => deliveries.failed(this.id, nonce, outcome, now));
	}

	doubt(nonce: string): void {
		const message = this.#message(nonce);
		if (!message) return;
		message.state = "unknown";
		const now = this.#now();
		this.#journal.record((deliveries) => deliveries.doubt(this.id, nonce, now));
	}

	finish(state: Exclude<DeliveryState, "active">, error?: string): void {
		this.row.state = state;
		if (error !== undefined) this.row.error = error;
		const now = this.#now();
		this.row.endedAt = now;
		this.#journal.record((deliveries) => deliveries.finish(this.id, state, error, now));
	}

	/** Everything so far is on disk. */
	recorded(): Promise<void> {
		return this.#journal.recorded();
	}

	/** Where a new process goes on; undefined when nothing has happened yet. */
	resume(): Resume | undefined {
		const { messages, cursor, carry } = this.row;
		if (messages.length === 0) return undefined;
		const current = this.unfinished;
		return {
			position: current?.from ?? cursor,
			ordinal: this.#lastOrdinal(),
			...(carry !== undefined && { carry }),
			...(current?.state === "open" && { messageId: current.messageId! }),
			...(current?.state === "open" && current.shown !== undefined && { shown: current.shown }),
			...(current?.state === "intended" && {
				uncertain: { nonce: current.nonce, ...(current.to !== undefined && { to: current.to }) },
			}),
		};
	}

	#drop(nonce: string, states: readonly DeliveryMessage["state"][]): boolean {
		const at = this.row.messages.findIndex((message) => message.nonce === nonce && states.includes(message.state));
		if (at >= 0) this.row.messages.splice(at, 1);
		return at >= 0;
	}

	#lastOrdinal(): number {
		return this.row.messages.reduce((most, { ordinal }) => Math.max(most, ordinal), 0);
	}

	#message(nonce: string): DeliveryMessage | undefined {
		return this.row.messages.find((message) => message.nonce === nonce);
	}

	#now(): number {
		const now = this.#clock.now();
		this.row.updatedAt = now;
		return now;
	}
}
