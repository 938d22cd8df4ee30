/**
 * An adapter's notes and state, kept in the store (ST26): each line is acknowledged once it is durable, and every process of the account
 * finds all of them in its files, whichever daemon recorded them.
 */

import { openNotes } from "@nexus-stream/adapter/memory/notes";
import { forgetOrphan, orphanedStates, readState, writeState } from "@nexus-stream/adapter/memory/state";
import type { KeepLine, NotedLine } from "@nexus-stream/adapter/port";
import { createKeyedQueue } from "@nexus-stream/protocol/keyed-queue";
import type { Log } from "@nexus-stream/protocol/log";
import type { Bus } from "../../bus/bus.ts";
import { type NoteOwner, noteWrites, type StoredNotes } from "../../ledger/notes/port.ts";
import type { Write } from "../../std/write.ts";
import type { LineProcess } from "./line-process.ts";

/** Limits of an account (I11): the oldest notes are dropped, and the keys that were not set for the longest time. */
const NOTES_MAX = 5000;
const KEYS_MAX = 1000;
/** Notes that may be over the limit until the next trimming. */
const TRIM_EVERY = 500;
/** Lines that may wait for the store; further ones are dropped without an acknowledgement. */
const LINES_WAITING_MAX = 1000;
/** Newest notes of a file that are compared with the store, to find those that a killed daemon did not record. */
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

export type NoteKeeping = ReturnType<typeof createNoteKeeping>;

/** Runs the work of one account after the account's earlier work. */
type InTurn = (work: () => Promise<void>) => Promise<void>;

/** One object per account: two that wrote the same files would overwrite each other's changes. */
export function createNoteKeeping(store: NoteStore) {
	const made = new Map<string, KeptNotes>();
	const queue = createKeyedQueue();
	const keyOf = ({ channel, account }: NoteOwner) => JSON.stringify([channel, account]);
	return {
		of(owner: NoteOwner, files: NoteFiles): KeptNotes {
			const key = keyOf(owner);
			const kept = made.get(key) ?? new KeptNotes(owner, files, store, (work) => queue.run(key, work));
			made.set(key, kept);
			return kept;
		},
		/** After a takeover of another daemon's deliveries: gives the running processes the notes which that daemon recorded. */
		async catchUp(owner: NoteOwner): Promise<void> {
			await made.get(keyOf(owner))?.prepare();
		},
		/** Resolves when every line is on record, or never will be. */
		settled: () => queue.idle(),
	};
}

interface PendingLine {
	line: KeepLine;
	process: Pick<LineProcess, "write">;
}

export class KeptNotes {
	readonly #owner: NoteOwner;
	readonly #files: NoteFiles;
	readonly #store: NoteStore;
	readonly #inTurn: InTurn;
	readonly #file: ReturnType<typeof openNotes>;
	readonly #waiting: PendingLine[] = [];
	#state = new Map<string, string>();
	#untrimmed = 0;
	/** No process of the account has been started yet. */
	#isFirst = true;

	constructor(owner: NoteOwner, files: NoteFiles, store: NoteStore, inTurn: InTurn) {
		this.#owner = owner;
		this.#files = files;
		this.#store = store;
		this.#inTurn = inTurn;
		this.#file = openNotes(files.notes);
	}

	/** Before a process starts: records what only the files contain, and writes what is on record into the files. */
	prepare(): Promise<void> {
		return this.#inTurn(() => this.#synchronise());
	}

	take(line: KeepLine, process: Pick<LineProcess, "write">): void {
		const { log } = this.#store;
		if (this.#waiting.length >= LINES_WAITING_MAX) {
			log.warn(
				{ ...this.#owner, id: line.id, waiting: this.#waiting.length },
				"too many notes of an adapter wait for the store; one was dropped",
			);
			return;
		}
		this.#waiting.push({ line, process });
		if (this.#waiting.length === 1) void this.#inTurn(() => this.#record());
	}

	async #synchronise(): Promise<void> {
		const { notes, write } = this.#store;
		const stored = await notes.list(this.#owner);
		const isStored = new Set(stored);
		const inFile = distinct(this.#file.all());
		const missing = inFile.slice(stored.length === 0 ? -NOTES_MAX : -RECENT_MAX).filter((text) => !isStored.has(text));
		this.#state = new Map(await notes.state(this.#owner));
		const imported = this.#unrecordedState();
		if (missing.length > 0 || imported.size > 0) {
			await write([noteWrites.add(this.#owner, missing), noteWrites.set(this.#owner, [...imported]), this.#trim()]);
			this.#state = new Map(await notes.state(this.#owner));
		}
		if (this.#isFirst) forgetOrphan(this.#files.state);
		this.#isFirst = false;
		const isInFile = new Set(inFile);
		for (const text of stored) if (!isInFile.has(text)) this.#file.add(text);
		if (this.#state.size > 0) this.#writeState();
	}

	/** State that is in the files and not in the store. */
	#unrecordedState(): Map<string, string> {
		const { state: file } = this.#files;
		const imported = new Map(this.#state.size === 0 ? Object.entries(readState(file)) : []);
		if (!this.#isFirst) return imported;
		const orphaned = orphanedStates(file, new Map([...this.#state, ...imported]));
		return new Map([...imported, ...orphaned]);
	}

	async #record(): Promise<void> {
		const { write, log } = this.#store;
		const pending = this.#waiting.splice(0);
		const texts = pending.flatMap(({ line }) => (line.type === "note" ? [line.text] : []));
		const values = pending.flatMap(({ line }): [string, string][] =>
			line.type === "state" ? [[line.key, line.value]] : [],
		);
		this.#untrimmed += pending.length;
		const trim = this.#untrimmed >= TRIM_EVERY ? [this.#trim()] : [];
		try {
			await write([noteWrites.add(this.#owner, texts), noteWrites.set(this.#owner, values), ...trim]);
			for (const [key, value] of values) this.#remember(key, value);
			if (values.length > 0) this.#writeState();
		} catch (cause) {
			// No acknowledgement: the adapter does not send the message that the note belongs to.
			log.error({ ...this.#owner, err: cause, lines: pending.length }, "an adapter's notes could not be recorded");
			return;
		}
		for (const { line, process } of pending) process.write({ type: "noted", id: line.id } satisfies NotedLine);
	}

	/** The key becomes the newest; beyond the limit the oldest is dropped. */
	#remember(key: string, value: string): void {
		this.#state.delete(key);
		this.#state.set(key, value);
		if (this.#state.size > KEYS_MAX) this.#state.delete(this.#state.keys().next().value ?? "");
	}

	#writeState(): void {
		writeState(this.#files.state, Object.fromEntries(this.#state));
	}

	#trim(): Write {
		this.#untrimmed = 0;
		return noteWrites.trim(this.#owner, NOTES_MAX, KEYS_MAX);
	}
}

/** A note that is in the file twice was written twice: trailing spaces make the second a different text with the same meaning. */
function distinct(lines: readonly string[]): string[] {
	const seen = new Map<string, number>();
	return lines.map((line) => {
		const times = seen.get(line) ?? 0;
		seen.set(line, times + 1);
		return line + " ".repeat(times);
	});
}
