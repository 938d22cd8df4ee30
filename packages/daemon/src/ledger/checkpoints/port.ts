/** Checkpoints: where a run can go on after it was cut off. One per run, replaced by the next, removed when the run completes. */

import { type Reading, writesOf } from "../../std/write.ts";

/** The fields that decide whether a checkpoint can be used, without its data. */
export interface CheckpointInfo {
	runId: string;
	session: string;
	engine: string;
	/** Digest of the configuration that the data belongs to, as the engine made it. */
	configHash: string;
	at: number;
}

export interface StoredCheckpoint extends CheckpointInfo {
	/** The run whose messages are answered: the first of those that continue each other. */
	root: string;
	/** The engine's, as JSON text; `null` = the run's beginning. */
	data: string;
	/** Text that earlier runs showed after the data was made. */
	shown: string;
	/** Characters that each assistant message of the run had when the data was made, by its id. */
	lengths: Readonly<Record<string, number>>;
	/** The outcome of the question at which an earlier run was cut off; JSON. */
	answer?: unknown;
}

export interface Checkpoints {
	get(runId: string): Reading<StoredCheckpoint | undefined>;
	info(runId: string): Reading<CheckpointInfo | undefined>;
}

export interface CheckpointOps {
	/** Takes the place of the run's earlier one. */
	put(checkpoint: StoredCheckpoint): void;
	remove(runId: string): void;
	/** Forgets those made before a time. */
	forget(before: number): void;
	/** Removes those whose data has this text in it, such as the id of a note that was forgotten. */
	removeNaming(text: string): void;
}

export const checkpointWrites = writesOf<CheckpointOps>("checkpoints", ["put", "remove", "forget", "removeNaming"]);
