/** Pairings: who of the strangers on a public platform asked to be let in, and who was. */

import { migrate, type SqliteFile } from "../std/sqlite.ts";
import type { Row } from "./rows.ts";

export interface Person {
	channel: string;
	account: string;
	/** The platform's id of the sender. */
	sender: string;
}

export interface Pairing extends Person {
	senderName?: string;
	/** What the sender was told; a person who runs the daemon approves it. */
	code: string;
	state: "pending" | "approved";
	/** Where the sender is told; the platform's own address. */
	target: Record<string, unknown>;
	createdAt: number;
	/** A code that is still pending then is worth nothing. */
	expiresAt: number;
	/** When the sender was last told the code. */
	toldAt: number;
	approvedAt?: number;
}

/** Each call is its own transaction, or part of the one that is open. */
export interface Pairings {
	get(person: Person): Pairing | undefined;
	byCode(code: string): Pairing | undefined;
	/** One per person: saves it new or in place of the one before. A code that another person has is a conflict. */
	save(pairing: Pairing): void;
	/** False when there was none. */
	remove(person: Person): boolean;
	/** Newest first. */
	list(): Pairing[];
	/** How many of an account wait for approval. */
	pending(channel: string, account: string): number;
	/** Removes the pending ones whose time is over; returns how many. */
	expire(now: number): number;
}

const PAIRINGS_AREA = "pairings";

const PAIRINGS_STEPS: readonly string[] = [
	`
	CREATE TABLE pairing (
		channel TEXT NOT NULL,
		account TEXT NOT NULL,
		sender TEXT NOT NULL,
		sender_name TEXT,
		code TEXT NOT NULL UNIQUE,
		state TEXT NOT NULL,
		target TEXT NOT NULL,
		created_at INTEGER NOT NULL,
		expires_at INTEGER NOT NULL,
		told_at INTEGER NOT NULL,
		approved_at INTEGER,
		PRIMARY KEY (channel, account, sender)
	) STRICT, WITHOUT ROWID;
	`,
];

export function sqlitePairings(file: SqliteFile): Pairings {
	migrate(file, PAIRINGS_AREA, PAIRINGS_STEPS);
	const { db } = file;
	const ofPerson = "channel = ? AND account = ? AND sender = ?";
	const get = db.prepare(`SELECT * FROM pairing WHERE ${ofPerson}`);
	const byCode = db.prepare("SELECT * FROM pairing WHERE code = ?");
	const all = db.prepare("SELECT * FROM pairing ORDER BY created_at DESC, sender");
	const remove = db.prepare(`DELETE FROM pairing WHERE ${ofPerson}`);
	const pending = db.prepare(
		"SELECT count(*) AS count FROM pairing WHERE channel = ? AND account = ? AND state = 'pending'",
	);
	const expire = db.prepare("DELETE FROM pairing WHERE state = 'pending' AND expires_at <= ?");
	const save = db.prepare(
		`INSERT INTO pairing (channel, account, sender, sender_name, code, state, target, created_at, expires_at, told_at,
		approved_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (channel, account, sender) DO UPDATE SET sender_name = excluded.sender_name, code = excluded.code,
		state = excluded.state, target = excluded.target, created_at = excluded.created_at,
		expires_at = excluded.expires_at, told_at = excluded.told_at, approved_at = excluded.approved_at`,
	);
	const keys = ({ channel, account, sender }: Person) => [channel, account, sender] as const;
	const one = (row: Row | undefined) => row && pairingOf(row);
	return {
		get: (person) => one(get.get(...keys(person))),
		byCode: (code) => one(byCode.get(code)),
		save(pairing) {
			const { senderName = null, code, state, target, createdAt, expiresAt, toldAt, approvedAt = null } = pairing;
			const times = [createdAt, expiresAt, toldAt, approvedAt] as const;
			file.transaction(() => save.run(...keys(pairing), senderName, code, state, JSON.stringify(target), ...times));
		},
		remove: (person) => file.transaction(() => Number(remove.run(...keys(person)).changes) > 0),
		list: () => all.all().map(pairingOf),
		pending: (channel, account) => Number(pending.get(channel, account)?.count),
		expire: (now) => file.transaction(() => Number(expire.run(now).changes)),
	};
}

const pairingOf = (row: Row): Pairing => ({
	channel: String(row.channel),
	account: String(row.account),
	sender: String(row.sender),
	...(row.sender_name !== null && { senderName: String(row.sender_name) }),
	code: String(row.code),
	state: row.state === "approved" ? "approved" : "pending",
	target: JSON.parse(String(row.target)) as Record<string, unknown>,
	createdAt: Number(row.created_at),
	expiresAt: Number(row.expires_at),
	toldAt: Number(row.told_at),
	...(row.approved_at !== null && { approvedAt: Number(row.approved_at) }),
});
