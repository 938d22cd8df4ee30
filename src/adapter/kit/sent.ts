/**
 * Which messages an account has created or was about to create: noted before the call and after it, so that after a crash only a call that was
 * under way is in doubt. Platforms that can look a message up do so for that one; on the others nobody can tell.
 */

import { randomBytes } from "node:crypto";
import { wordsOf } from "../../protocol/protocol.ts";
import type { Notes } from "./notes.ts";
import { PlatformError, type Tools } from "./platform.ts";

export interface SentLog {
	/** Creates a message, with its notes. */
	create(nonce: string, work: () => Promise<{ messageId: string }>): Promise<{ messageId: string }>;
	/** The message that this nonce made, however that became known. */
	add(nonce: string, messageId: string): void;
	of(nonce: string): string | undefined;
	/** Whether any nonce made it: where messages are looked up by their text, one that another nonce made is not the one that is missing. */
	has(messageId: string): boolean;
	/** False: its call has certainly never left, or was refused. */
	mayHaveLeft(nonce: string): boolean;
}

type Note = { at: "leaving" } | { at: "refused" } | { at: "sent"; messageId: string };

interface Entry {
	/** Calls that left, or were about to, and were not refused. */
	open: number;
	messageId?: string;
}

export function openSentLog({ notes }: Pick<Tools, "notes">): SentLog {
	const kept = notes ?? inMemory();
	let read: { lines: readonly string[]; entries: ReadonlyMap<string, Entry> } = { lines: [], entries: new Map() };
	const entries = (): ReadonlyMap<string, Entry> => {
		const lines = kept.all();
		if (lines !== read.lines) read = { lines, entries: readEntries(lines) };
		return read.entries;
	};
	// Each is a note of its own, however often the same is said and wherever it is copied to.
	const lineOf = (nonce: string, what: Note) =>
		JSON.stringify({ id: randomBytes(9).toString("base64url"), nonce, ...what });
	const note = (nonce: string, what: Note) => kept.add(lineOf(nonce, what));
	const leaves = async (noted: Promise<void>) => {
		try {
			await noted;
		} catch (cause) {
			throw new PlatformError("unavailable", `The message was not sent: ${wordsOf(cause)}`, { cause });
		}
	};
	return {
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
	};
}

/** A line that is damaged is none; one that is there twice is one. */
function readEntries(lines: readonly string[]): Map<string, Entry> {
	const found = new Map<string, Entry>();
	const read = new Set<string>();
	for (const line of lines) {
		try {
			const note = JSON.parse(line) as Note & { nonce: string; id?: string };
			if (note.id !== undefined && read.has(note.id)) continue;
			if (note.id !== undefined) read.add(note.id);
			const entry = found.get(note.nonce) ?? { open: 0 };
			if (note.at === "leaving") entry.open++;
			else if (note.at === "refused") entry.open--;
			else entry.messageId = note.messageId;
			found.set(note.nonce, entry);
		} catch {}
	}
	return found;
}

function inMemory(): Notes {
	let lines: readonly string[] = [];
	const add = (line: string) => {
		lines = [...lines.slice(-1000), line];
	};
	return { add, addLasting: add, all: () => lines };
}
