/**
 * Which messages an account has created or was about to create: noted before the call and after it, so that after a crash only a call that was
 * under way is in doubt. Platforms that can look a message up do so for that one; on the others nobody can tell.
 */

import { randomBytes } from "node:crypto";
import { wordsOf } from "@nexus-stream/protocol";
import { cannotTell } from "../platform/network.ts";
import { PlatformError, type Tools } from "../platform/platform.ts";
import type { Notes } from "./notes.ts";

export interface SentLog {
	/** Creates a message, with its notes. */
	create(nonce: string, work: () => Promise<{ messageId: string }>): Promise<{ messageId: string }>;
	/** The message that this nonce made, however that became known. */
	add(nonce: string, messageId: string): void;
	of(nonce: string): string | undefined;
	/** Whether any nonce made it. */
	has(messageId: string): boolean;
	/** False: its call has certainly never left, or was refused. */
	mayHaveLeft(nonce: string): boolean;
	/** Returns the outcome from the notes, or asks `look` and notes the result, so that a later look-up cannot claim the same message. */
	find(nonce: string, look: () => Promise<Made | undefined>): Promise<Made | undefined>;
	/** The same where messages are recognised by what they say. Throws when it cannot tell. */
	findAlike<T extends KeptMessage>(nonce: string, search: MessageSearch<T>): Promise<Made | undefined>;
	/** Whether this nonce's call made a message that says the same, judged by the messages of ours that the platform lists. */
	judge(nonce: string, listed: readonly KeptMessage[]): (message: KeptMessage) => MessageMatch;
}

interface Made {
	messageId: string;
}

/** A message of ours in a chat's history. */
export interface KeptMessage {
	/** The ids under which its creation may have been answered, the best first. */
	ids: readonly [string, ...string[]];
	/** By the platform's clock, in milliseconds since the epoch; 0: unknown. */
	ts: number;
}

export interface MessageSearch<T extends KeptMessage> {
	/** Our messages in the chat since a time, newest first. */
	list(since: number): Promise<readonly T[]>;
	isAlike(message: T): boolean;
	/** The waits before each look: a platform may list a message only some time after it has taken it. */
	waitsMs: readonly number[];
}

export type MessageMatch = "made" | "other" | "unclear";

/** How far the platform's clock may be from ours, and how far back a look-up goes. */
const SKEW_MS_MAX = 60 * 60_000;
/** Clocks that are set by the network differ by less. */
const SKEW_MS = 2000;

/** `ts`: when it was noted, by our clock. Absent in notes of earlier versions. */
type Note = ({ at: "leaving" } | { at: "refused" } | { at: "sent"; messageId: string }) & { ts?: number };

interface NonceState {
	/** Calls that left, or were about to, and were not refused. */
	open: number;
	/** When the first of these was noted. */
	left?: number | undefined;
	messageId?: string;
	/** When its message was known. */
	sent?: number | undefined;
}

export function openSentLog({ notes, clock }: Pick<Tools, "notes" | "clock">): SentLog {
	const kept = notes ?? inMemory();
	let read: { lines: readonly string[]; entries: ReadonlyMap<string, NonceState> } = { lines: [], entries: new Map() };
	const entries = (): ReadonlyMap<string, NonceState> => {
		const lines = kept.all();
		if (lines !== read.lines) read = { lines, entries: readEntries(lines) };
		return read.entries;
	};
	// Each is a note of its own, however often the same is said and wherever it is copied to.
	const lineOf = (nonce: string, what: Note) =>
		JSON.stringify({ id: randomBytes(9).toString("base64url"), nonce, ts: clock.now(), ...what });
	const note = (nonce: string, what: Note) => kept.add(lineOf(nonce, what));
	const leaves = async (noted: Promise<void>) => {
		try {
			await noted;
		} catch (cause) {
			throw new PlatformError("unavailable", `The message was not sent: ${wordsOf(cause)}`, { cause });
		}
	};
	const log: SentLog = {
		async create(nonce, work) {
			// Without the note that it leaves, a message would count as never sent; without the others it is only in doubt.
			const noted = kept.addLasting(lineOf(nonce, { at: "leaving" }));
			if (noted) await leaves(noted);
			try {
				const made = await work();
				note(nonce, { at: "sent", messageId: made.messageId });
				return made;
			} catch (cause) {
				const refused = cause instanceof PlatformError && cause.fault !== "unknown_outcome";
				if (refused) note(nonce, { at: "refused" });
				throw cause;
			}
		},
		add: (nonce, messageId) => note(nonce, { at: "sent", messageId }),
		of: (nonce) => entries().get(nonce)?.messageId,
		has: (messageId) => [...entries().values()].some((entry) => entry.messageId === messageId),
		mayHaveLeft(nonce) {
			const entry = entries().get(nonce);
			// Without a file the notes of an earlier process are lost.
			if (entry === undefined) return notes === undefined;
			return entry.open > 0 || entry.messageId !== undefined;
		},
		async find(nonce, look) {
			const known = log.of(nonce);
			if (known !== undefined) return { messageId: known };
			if (!log.mayHaveLeft(nonce)) return undefined;
			const found = await look();
			if (found) log.add(nonce, found.messageId);
			return found;
		},
		findAlike: (nonce, { list, isAlike, waitsMs }) =>
			log.find(nonce, async () => {
				const since = (entries().get(nonce)?.left ?? clock.now()) - SKEW_MS_MAX;
				let unclear = false;
				for (const waitMs of waitsMs) {
					if (waitMs > 0) await new Promise<void>((resolve) => clock.after(waitMs, resolve));
					const listed = await list(since);
					const verdictOn = log.judge(nonce, listed);
					const alike = listed.filter(isAlike);
					const made = alike.find((each) => verdictOn(each) === "made");
					if (made) return { messageId: made.ids[0] };
					unclear = alike.some((each) => verdictOn(each) === "unclear");
				}
				if (unclear) throw cannotTell(ALIKE);
				return undefined;
			}),
		judge(nonce, listed) {
			const byId = new Map([...entries().values()].map((entry) => [entry.messageId, entry]));
			const knownAs = ({ ids }: KeptMessage) => ids.map((id) => byId.get(id)).find((entry) => entry !== undefined);
			const { left } = entries().get(nonce) ?? {};
			const earliest = left === undefined ? undefined : earliestOf(left, listed, knownAs);
			return (message) => {
				if (knownAs(message)) return "other";
				if (!earliest || message.ts === 0) return "unclear";
				if (message.ts < wholeSeconds(earliest.possible, message.ts)) return "other";
				return message.ts < wholeSeconds(earliest.certain, message.ts) ? "unclear" : "made";
			};
		},
	};
	return log;
}

const ALIKE =
	"The chat has a message with the same content, and its time does not tell whether it is this one. Look at the chat.";

/**
 * When, by the platform's clock, a call that left at this time can have made its message: not before one that was known by then (`possible`), and
 * as long after it as the call left after that was known (`certain`). Without such a message both clocks are taken to agree.
 */
function earliestOf(
	left: number,
	listed: readonly KeptMessage[],
	knownAs: (message: KeptMessage) => NonceState | undefined,
): { possible: number; certain: number } {
	const before = listed.flatMap((message) => {
		const { sent } = knownAs(message) ?? {};
		return sent !== undefined && sent <= left && message.ts !== 0 ? [{ ts: message.ts, agoMs: left - sent }] : [];
	});
	if (before.length === 0) return { possible: left - SKEW_MS_MAX, certain: left - SKEW_MS };
	const possible = Math.max(...before.map(({ ts }) => ts));
	const certain = Math.max(...before.map(({ ts, agoMs }) => ts + agoMs));
	return { possible, certain: Math.max(possible, certain - SKEW_MS) };
}

/** Some platforms cut a time to whole seconds: what it is compared with is cut likewise. */
const wholeSeconds = (limit: number, ts: number): number => (ts % 1000 === 0 ? Math.floor(limit / 1000) * 1000 : limit);

/** A line that is damaged is none; one that is there twice is one. */
function readEntries(lines: readonly string[]): Map<string, NonceState> {
	const found = new Map<string, NonceState>();
	const read = new Set<string>();
	for (const line of lines) {
		try {
			const note = JSON.parse(line) as Note & { nonce: string; id?: string };
			if (note.id !== undefined && read.has(note.id)) continue;
			if (note.id !== undefined) read.add(note.id);
			const entry = found.get(note.nonce) ?? { open: 0 };
			take(entry, note);
			found.set(note.nonce, entry);
		} catch {}
	}
	return found;
}

function take(entry: NonceState, note: Note): void {
	if (note.at === "leaving") {
		// A call that was refused made nothing, so it is not the first.
		if (entry.open <= 0) entry.left = note.ts;
		entry.open++;
	} else if (note.at === "refused") entry.open--;
	else {
		entry.messageId = note.messageId;
		entry.sent = note.ts;
	}
}

function inMemory(): Notes {
	let lines: readonly string[] = [];
	const add = (line: string) => {
		lines = [...lines.slice(-1000), line];
	};
	return { add, addLasting: add, all: () => lines };
}
