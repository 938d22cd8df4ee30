/** Deliveries: how far each (run, account, target) has come on its platform. What is owed after a crash is computed from these rows (I7). */

import type { StatementSync } from "node:sqlite";
import { NexusError } from "../protocol/protocol.ts";
import { migrate, type SqliteFile } from "../std/sqlite.ts";
import type { Row } from "./rows.ts";

/**
 * `unknown`: nobody can tell whether a message exists. `stale`: too old to be finished after a restart. `damaged`: the stored answer is
 * damaged, and only what is whole of it was sent.
 */
export type DeliveryState = "active" | "complete" | "failed" | "unknown" | "stale" | "damaged";
export type DeliveryMode = "stream" | "blocks" | "whole";

/** The platform's own address; a JSON object. */
export interface DeliveryTarget {
	to: string;
	[extra: string]: unknown;
}

export interface DeliveryMessage {
	/** 1, 2, 3 … in order of being announced. */
	ordinal: number;
	nonce: string;
	/** Source positions of its text: UTF-16 units of the answer's text. */
	from: number;
	to?: number;
	messageId?: string;
	/**
	 * `intended`: about to be created, so it may exist. `open`: exists and is being edited. `failed`: the platform had taken it, and did not
	 * bring it to its reader.
	 */
	state: "intended" | "open" | "sent" | "unknown" | "failed";
	/** Why it failed. */
	error?: string;
	/** The source position up to which an open message was last reported to show. */
	shown?: number;
	/** It was left as it was when its stream failed: it shows the text up to `to`, and perhaps which tools ran. */
	abandoned?: true;
	/** How often it was changed after it had been created; absent = never. */
	edits?: number;
	/** What a send says, as long as its outcome is not known: it is looked up or said again by exactly this text. */
	text?: string;
	/** How much of `text`, in UTF-16 units, is out in the messages before this one. */
	done?: number;
}

export interface SentOutcome {
	messageId: string;
	to: number;
	carry?: string;
	abandoned?: true;
}

export interface NewDelivery {
	id: string;
	/** The log that is delivered. */
	runId: string;
	channel: string;
	account: string;
	target: DeliveryTarget;
	/** Choices that hold for the whole delivery; a JSON object. */
	options: Record<string, unknown>;
	createdAt: number;
}

export interface Delivery extends NewDelivery {
	/** Decided once, when it begins; a stream that fails goes on as blocks. */
	mode?: DeliveryMode;
	state: DeliveryState;
	/** Everything before this source position is in finished messages. */
	cursor: number;
	/** What the next message has to begin with. */
	carry?: string;
	error?: string;
	/** Last progress. */
	updatedAt: number;
	endedAt?: number;
	messages: DeliveryMessage[];
}

export interface DeliveryQuery {
	runId?: string;
	state?: DeliveryState;
	channel?: string;
	account?: string;
	/** Newest first, at most this many. */
	limit: number;
	/** Only deliveries opened before this one. */
	before?: string;
}

export type DeliveryCounts = Record<DeliveryState, number>;

export interface MessagePlace {
	channel: string;
	account: string;
	messageId: string;
	nonce?: string;
}

/** Each call is its own transaction, or part of the one that is open. A delivery or nonce that is not there is `not_found`. */
export interface Deliveries {
	/** The same run, account and target is the same delivery, and so is the oldest whose target `isSame` takes for it. */
	open(delivery: NewDelivery, isSame?: (target: DeliveryTarget) => boolean): { delivery: Delivery; created: boolean };
	setMode(id: string, mode: DeliveryMode, now: number): void;
	/** A message may exist from now on. Announcing the same nonce again changes nothing but its text and positions. */
	intend(id: string, message: Omit<DeliveryMessage, "state" | "messageId" | "shown">, now: number): void;
	/** It was announced but certainly never created. */
	withdraw(id: string, nonce: string, now: number): void;
	/** It showed no text of the answer, and is gone again or was never created. */
	remove(id: string, nonce: string, now: number): void;
	created(id: string, nonce: string, messageId: string, now: number): void;
	shown(id: string, nonce: string, to: number, now: number): void;
	/** The message is finished: the cursor moves to its end. */
	sent(id: string, nonce: string, outcome: SentOutcome, now: number): void;
	/**
	 * The platform had taken the message, and did not bring it to its reader: a delivery that was complete is not. One that is not finished yet
	 * is failed when it is.
	 */
	failed(id: string, nonce: string, outcome: { messageId: string; error: string }, now: number): void;
	/** The delivery with a message of this id or nonce, the newest if there are several. */
	ofMessage(place: MessagePlace): { delivery: Delivery; nonce: string } | undefined;
	/** Nobody can tell whether the message exists. */
	doubt(id: string, nonce: string, now: number): void;
	finish(id: string, state: Exclude<DeliveryState, "active">, error: string | undefined, now: number): void;
	/** Makes it active again, from where it was: somebody asked for what is still owed. */
	reopen(id: string, now: number): void;
	get(id: string): Delivery | undefined;
	list(query: DeliveryQuery): Delivery[];
	/** Oldest first. */
	unfinished(): Delivery[];
	/** How many of an account are in which state. */
	counts(channel: string, account: string): DeliveryCounts;
	/** Several calls as one transaction. */
	together(work: () => void): void;
}

const DELIVERIES_AREA = "deliveries";

const DELIVERIES_STEPS: readonly string[] = [
	`
	CREATE TABLE delivery (
		seq INTEGER PRIMARY KEY,
		id TEXT NOT NULL UNIQUE,
		run_id TEXT NOT NULL,
		channel TEXT NOT NULL,
		account TEXT NOT NULL,
		target TEXT NOT NULL,
		options TEXT NOT NULL,
		mode TEXT,
		state TEXT NOT NULL,
		position INTEGER NOT NULL,
		carry TEXT,
		error TEXT,
		created_at INTEGER NOT NULL,
		updated_at INTEGER NOT NULL,
		ended_at INTEGER,
		UNIQUE (run_id, channel, account, target)
	) STRICT;
	CREATE INDEX delivery_active ON delivery (seq) WHERE state = 'active';
	CREATE INDEX delivery_by_account ON delivery (channel, account, seq);

	CREATE TABLE delivery_message (
		delivery INTEGER NOT NULL REFERENCES delivery (seq),
		ordinal INTEGER NOT NULL,
		nonce TEXT NOT NULL,
		source_from INTEGER NOT NULL,
		source_to INTEGER,
		message_id TEXT,
		state TEXT NOT NULL,
		shown INTEGER,
		text TEXT,
		PRIMARY KEY (delivery, ordinal),
		UNIQUE (delivery, nonce)
	) STRICT, WITHOUT ROWID;
	`,
	"ALTER TABLE delivery_message ADD COLUMN text_done INTEGER;",
	`
	ALTER TABLE delivery_message ADD COLUMN error TEXT;
	CREATE INDEX delivery_message_by_id ON delivery_message (message_id) WHERE message_id IS NOT NULL;
	CREATE INDEX delivery_message_by_nonce ON delivery_message (nonce);
	`,
	"CREATE INDEX delivery_by_state ON delivery (channel, account, state);",
	"ALTER TABLE delivery_message ADD COLUMN edits INTEGER NOT NULL DEFAULT 0;",
	"ALTER TABLE delivery_message ADD COLUMN abandoned INTEGER NOT NULL DEFAULT 0;",
];

export function sqliteDeliveries(file: SqliteFile): Deliveries {
	migrate(file, DELIVERIES_AREA, DELIVERIES_STEPS);
	return { ...reading(file), ...writing(file), together: (work) => file.transaction(work) };
}

type Reading = Pick<Deliveries, "get" | "list" | "unfinished" | "counts" | "open" | "ofMessage">;

function reading({ db, transaction }: SqliteFile): Reading {
	const messagesOf = db.prepare("SELECT * FROM delivery_message WHERE delivery = ? ORDER BY ordinal");
	const whole = (row: Row) => deliveryOf(row, messagesOf.all(Number(row.seq)));
	const byId = db.prepare("SELECT * FROM delivery WHERE id = ?");
	const active = db.prepare("SELECT * FROM delivery WHERE state = 'active' ORDER BY seq");
	const same = db.prepare("SELECT * FROM delivery WHERE run_id = ? AND channel = ? AND account = ? AND target = ?");
	const ofRun = db.prepare("SELECT * FROM delivery WHERE run_id = ? AND channel = ? AND account = ? ORDER BY seq");
	const insert = db.prepare(
		`INSERT INTO delivery (id, run_id, channel, account, target, options, state, position, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, 'active', 0, ?7, ?7)`,
	);
	const newest = db.prepare(
		`SELECT * FROM delivery WHERE (?1 IS NULL OR run_id = ?1) AND (?2 IS NULL OR state = ?2)
		AND (?3 IS NULL OR channel = ?3) AND (?4 IS NULL OR account = ?4)
		AND (?5 IS NULL OR seq < (SELECT seq FROM delivery WHERE id = ?5)) ORDER BY seq DESC LIMIT ?6`,
	);
	const byState = db.prepare(
		"SELECT state, count(*) AS n FROM delivery WHERE channel = ? AND account = ? GROUP BY state",
	);
	const ofMessage = db.prepare(
		`SELECT delivery.*, nonce FROM delivery_message JOIN delivery ON delivery.seq = delivery_message.delivery
		WHERE (message_id = ?1 OR (message_id IS NULL AND nonce = ?2)) AND channel = ?3 AND account = ?4
		ORDER BY seq DESC LIMIT 1`,
	);
	const one = (statement: StatementSync, ...keys: string[]) => {
		const row = statement.get(...keys);
		return row && whole(row);
	};
	return {
		get: (id) => one(byId, id),
		unfinished: () => active.all().map(whole),
		counts(channel, account) {
			const counts: DeliveryCounts = { active: 0, complete: 0, failed: 0, unknown: 0, stale: 0, damaged: 0 };
			for (const { state, n } of byState.all(channel, account)) counts[state as DeliveryState] = Number(n);
			return counts;
		},
		ofMessage({ messageId, nonce = null, channel, account }) {
			const row = ofMessage.get(messageId, nonce, channel, account);
			return row && { delivery: whole(row), nonce: String(row.nonce) };
		},
		list({ runId = null, state = null, channel = null, account = null, before = null, limit }) {
			return newest.all(runId, state, channel, account, before, limit).map(whole);
		},
		open: ({ id, runId, channel, account, target, options, createdAt }, isSame = () => false) =>
			transaction(() => {
				const place = [runId, channel, account, canonical(target)] as const;
				const alike = () => ofRun.all(runId, channel, account).find((row) => isSame(targetOf(row)));
				const known = same.get(...place) ?? alike();
				if (known) return { delivery: whole(known), created: false };
				insert.run(id, ...place, JSON.stringify(options), createdAt);
				return { delivery: one(byId, id)!, created: true };
			}),
	};
}

type Writing = Omit<Deliveries, keyof Reading | "together">;

function writing({ db, transaction }: SqliteFile): Writing {
	const setMode = db.prepare("UPDATE delivery SET mode = ?, updated_at = ? WHERE id = ?");
	const touch = db.prepare("UPDATE delivery SET updated_at = max(updated_at, ?) WHERE id = ?");
	const move = db.prepare("UPDATE delivery SET position = max(position, ?), carry = ?, updated_at = ? WHERE id = ?");
	const again = db.prepare(
		"UPDATE delivery SET state = 'active', error = NULL, ended_at = NULL, updated_at = ? WHERE id = ?",
	);
	const end = db.prepare("UPDATE delivery SET state = ?, error = ?, updated_at = ?3, ended_at = ?3 WHERE id = ?4");
	const announce = db.prepare(
		`INSERT INTO delivery_message (delivery, ordinal, nonce, source_from, source_to, state, text, text_done)
		SELECT seq, ?2, ?3, ?4, ?5, 'intended', ?6, ?7 FROM delivery WHERE id = ?1
		ON CONFLICT (delivery, nonce) DO UPDATE
		SET source_from = ?4, source_to = ?5, text = ?6, text_done = ?7, state = 'intended'`,
	);
	const ofNonce = "WHERE delivery = (SELECT seq FROM delivery WHERE id = ?1) AND nonce = ?2";
	const drop = db.prepare(`DELETE FROM delivery_message ${ofNonce} AND state = 'intended'`);
	const remove = db.prepare(`DELETE FROM delivery_message ${ofNonce} AND state IN ('intended', 'open')`);
	const opened = db.prepare(`UPDATE delivery_message SET state = 'open', message_id = ?3 ${ofNonce}`);
	const grown = db.prepare(`UPDATE delivery_message SET shown = ?3, edits = edits + 1 ${ofNonce}`);
	const closed = db.prepare(
		`UPDATE delivery_message SET state = iif(error IS NULL, 'sent', 'failed'), message_id = ?3, source_to = ?4, text = NULL,
		text_done = NULL, edits = edits + iif(state = 'open', 1, 0), abandoned = ?5 ${ofNonce}`,
	);
	const doubted = db.prepare(`UPDATE delivery_message SET state = 'unknown' ${ofNonce}`);

	const missed = db.prepare(
		`UPDATE delivery_message SET state = iif(state = 'sent', 'failed', state), message_id = ?3, error = ?4 ${ofNonce}`,
	);
	const unmade = db.prepare("UPDATE delivery SET state = 'failed', error = ?2 WHERE id = ?1 AND state = 'complete'");

	const must = ({ changes }: { changes: number | bigint }, what: string) => {
		if (Number(changes) === 0) throw new NexusError("not_found", `There is no ${what}.`);
	};
	const change = (id: string, nonce: string, now: number, work: () => { changes: number | bigint }) =>
		transaction(() => {
			must(work(), `message ${nonce} in delivery ${id}`);
			touch.run(now, id);
		});
	return {
		setMode: (id, mode, now) => transaction(() => must(setMode.run(mode, now, id), `delivery ${id}`)),
		intend: (id, { ordinal, nonce, from, to = null, text = null, done = null }, now) =>
			change(id, nonce, now, () => announce.run(id, ordinal, nonce, from, to, text, done)),
		withdraw: (id, nonce, now) => change(id, nonce, now, () => drop.run(id, nonce)),
		remove: (id, nonce, now) => change(id, nonce, now, () => remove.run(id, nonce)),
		created: (id, nonce, messageId, now) => change(id, nonce, now, () => opened.run(id, nonce, messageId)),
		shown: (id, nonce, to, now) => change(id, nonce, now, () => grown.run(id, nonce, to)),
		sent: (id, nonce, { messageId, to, carry = null, abandoned = false }, now) =>
			change(id, nonce, now, () => {
				move.run(to, carry, now, id);
				return closed.run(id, nonce, messageId, to, Number(abandoned));
			}),
		failed: (id, nonce, { messageId, error }, now) =>
			change(id, nonce, now, () => {
				unmade.run(id, error);
				return missed.run(id, nonce, messageId, error);
			}),
		doubt: (id, nonce, now) => change(id, nonce, now, () => doubted.run(id, nonce)),
		finish: (id, state, error, now) =>
			transaction(() => must(end.run(state, error ?? null, now, id), `delivery ${id}`)),
		reopen: (id, now) => transaction(() => must(again.run(now, id), `delivery ${id}`)),
	};
}

/** The same address is the same text, in whatever order its fields were written. */
function canonical(target: DeliveryTarget): string {
	const sorted = (value: unknown): unknown => {
		if (Array.isArray(value)) return value.map(sorted);
		if (typeof value !== "object" || value === null) return value;
		const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
		return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
	};
	return JSON.stringify(sorted(target));
}

const targetOf = (row: Row): DeliveryTarget => JSON.parse(String(row.target)) as DeliveryTarget;

function deliveryOf(row: Row, messages: Row[]): Delivery {
	return {
		id: String(row.id),
		runId: String(row.run_id),
		channel: String(row.channel),
		account: String(row.account),
		target: targetOf(row),
		options: JSON.parse(String(row.options)) as Record<string, unknown>,
		...(row.mode !== null && { mode: String(row.mode) as DeliveryMode }),
		state: String(row.state) as DeliveryState,
		cursor: Number(row.position),
		...(row.carry !== null && { carry: String(row.carry) }),
		...(row.error !== null && { error: String(row.error) }),
		createdAt: Number(row.created_at),
		updatedAt: Number(row.updated_at),
		...(row.ended_at !== null && { endedAt: Number(row.ended_at) }),
		messages: messages.map(messageOf),
	};
}

const messageOf = (row: Row): DeliveryMessage => ({
	ordinal: Number(row.ordinal),
	nonce: String(row.nonce),
	from: Number(row.source_from),
	...(row.source_to !== null && { to: Number(row.source_to) }),
	...(row.message_id !== null && { messageId: String(row.message_id) }),
	state: String(row.state) as DeliveryMessage["state"],
	...(row.shown !== null && { shown: Number(row.shown) }),
	...(row.abandoned !== 0 && { abandoned: true as const }),
	...(row.edits !== 0 && { edits: Number(row.edits) }),
	...(row.text !== null && { text: String(row.text) }),
	...(row.text_done !== null && { done: Number(row.text_done) }),
	...(row.error !== null && { error: String(row.error) }),
});
