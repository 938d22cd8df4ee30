/** Notes: what the adapter of an account is to remember, whichever daemon runs it (ST26). */

import { type Reading, writesOf } from "../../std/write.ts";

export interface NoteOwner {
	channel: string;
	account: string;
}

export interface StoredNotes {
	/** The account's notes, oldest first. */
	list(owner: NoteOwner): Reading<string[]>;
	/** The account's state, by key; the one that was set last comes last. */
	state(owner: NoteOwner): Reading<[key: string, value: string][]>;
}

export interface NoteOps {
	/** Adds notes in this order. One that is there already is not added again. */
	add(owner: NoteOwner, texts: readonly string[]): void;
	/** Sets these keys; all others stay. */
	set(owner: NoteOwner, values: readonly (readonly [key: string, value: string])[]): void;
	/** Forgets all but the newest notes and the keys that were set last. */
	trim(owner: NoteOwner, notes: number, keys: number): void;
}

export const noteWrites = writesOf<NoteOps>("notes", ["add", "set", "trim"]);
