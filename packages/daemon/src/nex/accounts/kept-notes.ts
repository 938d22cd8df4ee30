/**
 * What an account's adapter has to remember, kept in the store (ST26): every line is answered once it is durable, and the processes of the
 * account find all of it in their files, whichever daemon took it down.
 */

import {
	forgetOrphan,
	type KeepLine,
	type NotedLine,
	openNotes,
	orphanedStates,
	readState,
	writeState,
} from "@nexus-stream/adapter/host";
import type { Log } from "@nexus-stream/protocol/log";
import type { Bus } from "../../bus/bus.ts";
import { type NoteOwner, noteWrites, type StoredNotes } from "../../ledger/ledger.ts";
import type { Write } from "../../std/write.ts";
import type { LineProcess } from "./line-process.ts";

/** I11: kept of an account; the oldest notes go, and the keys that were not set for the longest time. */
const NOTES_MAX = 5000;
const KEYS_MAX = 1000;
/** So many notes may be too many until the next trimming. */
const TRIM_EVERY = 500;
/** Lines that may wait for the store; further ones are not taken, and so never answered. */
const LINES_WAITING_MAX = 1000;
/** How far back a file is looked through for what a killed daemon did not take down. */
const RECENT_MAX = 1000;

export interface NoteStore {
	notes: StoredNotes;
	write: Bus["write"];
	log: Log;
}

export interface NoteFiles {
	state: string;
	notes: string;
}

export interface KeptNotes {
	/** Before a process starts: puts on record what only the files know, and into the files what is on record. */
	prepare(): Promise<void>;
	take(line: KeepLine, process: Pick<LineProcess, "write">): void;
	/** What was taken is on record, or never will be. */
	settled(): Promise<unknown>;
}

/** Of all accounts, each once: two that wrote the same files would undo each other's changes. */
export interface NoteKeeping {
	of(owner: NoteOwner, files: NoteFiles): KeptNotes;
	/** Deliveries of another daemon were taken over: the processes that run find what it noted of them. */
	catchUp(owner: NoteOwner): Promise<void>;
	settled(): Promise<unknown>;
}

export function createNoteKeeping(store: NoteStore): NoteKeeping {
	const made = new Map<string, KeptNotes>();
	const keyOf = ({ channel, account }: NoteOwner) => JSON.stringify([channel, account]);
	return {
		of(owner, files) {
			const key = keyOf(owner);
			const kept = made.get(key) ?? createKeptNotes(owner, files, store);
			made.set(key, kept);
			return kept;
		},
		async catchUp(owner) {
			await made.get(keyOf(owner))?.prepare();
		},
		settled: () => Promise.all([...made.values()].map((kept) => kept.settled())),
	};
}

interface PendingLine {
	line: KeepLine;
	process: Pick<LineProcess, "write">;
}

function createKeptNotes(owner: NoteOwner, files: NoteFiles, { notes, write, log }: NoteStore): KeptNotes {
	const file = openNotes(files.notes);
	const waiting: PendingLine[] = [];
	let state = new Map<string, string>();
	let untrimmed = 0;
	/** No process of the account runs yet. */
	let first = true;
	/** One after another: the state that is written last is the newest. */
	let last: Promise<unknown> = Promise.resolve();
	const inTurn = (work: () => Promise<void>): Promise<void> => {
		const done = last.then(work);
		last = done.catch(() => {});
		return done;
	};

	const trim = (): Write => {
		untrimmed = 0;
		return noteWrites.trim(owner, NOTES_MAX, KEYS_MAX);
	};

	function remember(key: string, value: string): void {
		state.delete(key);
		state.set(key, value);
		if (state.size > KEYS_MAX) state.delete(state.keys().next().value ?? "");
	}

	async function settle(): Promise<void> {
		const stored = await notes.list(owner);
		const known = new Set(stored);
		const own = distinct(file.all());
		const missing = own.slice(stored.length === 0 ? -NOTES_MAX : -RECENT_MAX).filter((text) => !known.has(text));
		state = new Map(await notes.state(owner));
		const imported = new Map(state.size === 0 ? Object.entries(readState(files.state)) : []);
		for (const [key, value] of first ? orphanedStates(files.state, new Map([...state, ...imported])) : [])
			imported.set(key, value);
		if (missing.length > 0 || imported.size > 0) {
			await write([noteWrites.add(owner, missing), noteWrites.set(owner, [...imported]), trim()]);
			state = new Map(await notes.state(owner));
		}
		if (first) forgetOrphan(files.state);
		first = false;
		const inFile = new Set(own);
		for (const text of stored) if (!inFile.has(text)) file.add(text);
		if (state.size > 0) writeState(files.state, Object.fromEntries(state));
	}

	async function keep(): Promise<void> {
		const taken = waiting.splice(0);
		const texts = taken.flatMap(({ line }) => (line.type === "note" ? [line.text] : []));
		const values = taken.flatMap(({ line }): [string, string][] =>
			line.type === "state" ? [[line.key, line.value]] : [],
		);
		untrimmed += taken.length;
		const more = untrimmed >= TRIM_EVERY ? [trim()] : [];
		try {
			await write([noteWrites.add(owner, texts), noteWrites.set(owner, values), ...more]);
			for (const [key, value] of values) remember(key, value);
			if (values.length > 0) writeState(files.state, Object.fromEntries(state));
		} catch (cause) {
			// No answer: whoever waits for it does not send.
			log.error({ ...owner, err: cause, lines: taken.length }, "what an adapter has to remember is not on record");
			return;
		}
		for (const { line, process } of taken) process.write({ type: "noted", id: line.id } satisfies NotedLine);
	}

	return {
		prepare: () => inTurn(settle),
		settled: () => last,
		take(line, process) {
			if (waiting.length >= LINES_WAITING_MAX) {
				log.warn({ ...owner, id: line.id, waiting: waiting.length }, "an adapter has too much to remember at once");
				return;
			}
			waiting.push({ line, process });
			if (waiting.length === 1) void inTurn(keep);
		},
	};
}

/** A line that stands there twice was said twice: the second becomes another text, of the same meaning. */
function distinct(lines: readonly string[]): string[] {
	const seen = new Map<string, number>();
	return lines.map((line) => {
		const times = seen.get(line) ?? 0;
		seen.set(line, times + 1);
		return line + " ".repeat(times);
	});
}
