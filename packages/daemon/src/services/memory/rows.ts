/** Memory: what agents have noted about themselves and about people, in banks, with where it came from. */

import { type Reading, writesOf } from "../../std/write.ts";

export interface MemoryItem {
	/** `mem_…`; later ones are greater. */
	id: string;
	/** `agent:<name>` or `person:<channel>/<account>/<sender>`. */
	bank: string;
	text: string;
	provenance: MemoryProvenance;
}

/** Who noted it, or removed it, and in which run. */
export interface MemoryProvenance {
	at: number;
	runId?: string;
	agent?: string;
	channel?: string;
	account?: string;
	sender?: string;
}

/** A line of the log of changes. It never holds the text. */
export interface MemoryChange {
	seq: number;
	id: string;
	bank: string;
	change: "added" | "forgotten";
	provenance: MemoryProvenance;
}

export interface MemoryQuery {
	/** Left out = all. */
	banks?: readonly string[];
	limit: number;
	/** An id: only older ones. */
	before?: string;
}

export interface MemoryRows {
	get(id: string): Reading<MemoryItem | undefined>;
	/** The item of a bank that says exactly this. */
	same(bank: string, text: string): Reading<MemoryItem | undefined>;
	/** Newest first. */
	list(query: MemoryQuery): Reading<MemoryItem[]>;
	/** Those that hold one of the words or more, best first. Takes plain words: no sign in them has a meaning. Without a word there is nothing to find. */
	search(words: string, query: Omit<MemoryQuery, "before">): Reading<MemoryItem[]>;
	/** Newest first. */
	changes(query: { limit: number; before?: number }): Reading<MemoryChange[]>;
}

export interface MemoryLimits {
	/** Items of one bank. */
	itemsMax: number;
	/** Items of all banks together. */
	itemsTotalMax: number;
}

export interface MemoryOps {
	/** A bank or a memory that is full is a conflict. */
	add(item: MemoryItem, limits: MemoryLimits): void;
	/** Removes the item from the table and from the index. One that is not there is a conflict. */
	forget(item: Pick<MemoryItem, "id" | "bank">, provenance: MemoryProvenance): void;
}

export const memoryWrites = writesOf<MemoryOps>("memory", ["add", "forget"]);
