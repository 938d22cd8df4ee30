/** The JSON of the HTTP API about memory: what agents have noted, and the log of changes. */

export interface MemoryProvenanceJson {
	/** Milliseconds since the epoch. */
	at: number;
	run_id?: string;
	agent?: string;
	channel?: string;
	account?: string;
	sender?: string;
}

export interface MemoryJson {
	id: string;
	/** `agent:<name>` or `person:<channel>/<account>/<sender>`. */
	bank: string;
	text: string;
	provenance: MemoryProvenanceJson;
}

export interface MemoryListJson {
	/** Whether agents may note and recall; what they noted before can be read and forgotten all the same. */
	enabled: boolean;
	memory: MemoryJson[];
}

export interface MemoryForgottenJson {
	forgotten: true;
	/** What is still kept elsewhere, in words. */
	note: string;
}

export interface MemoryChangeJson {
	/** Position in the log of changes. */
	seq: number;
	id: string;
	bank: string;
	change: "added" | "forgotten";
	provenance: MemoryProvenanceJson;
}

export interface MemoryChangesJson {
	changes: MemoryChangeJson[];
}
