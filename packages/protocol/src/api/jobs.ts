/** The JSON of the HTTP API about jobs and artifacts. */

import type { Reason } from "../reason.ts";

export type JobState = "submitted" | "queued" | "running" | "completed" | "failed" | "canceled" | "timeout";

export interface ArtifactJson {
	artifact_id: string;
	app_id: string;
	name: string;
	mime_type: string;
	size_bytes: number;
	/** In hex, once it is whole. */
	sha256?: string;
	created_at: number;
	expires_at: number;
	complete: boolean;
}

export interface JobJson {
	job_id: string;
	app_id: string;
	user_id: string;
	kind: "text" | "speech" | "image" | "embed" | "transcribe";
	connector_id: string;
	model: string;
	state: JobState;
	/** Of the last attempt, also while the next one waits. */
	error?: { code: string; message: string; reason?: Reason };
	/** 0 to 100; -1 = not known. */
	progress_percent: number;
	/** The first is 1. */
	attempt: number;
	attempts_max: number;
	/** This attempt was begun because the daemon died during the one before. */
	after_crash: boolean;
	/** How many are before it, while it is queued. */
	queue_position: number;
	created_at: number;
	started_at?: number;
	updated_at: number;
	finished_at?: number;
	usage?: { input: number; output: number };
	/** The run of a text or of speech, which StreamScenario reads. */
	run_id?: string;
	text?: string;
	artifacts: ArtifactJson[];
	embeddings?: number[][];
	workflow_id?: string;
	node_id?: string;
	/** No model answered, but the built-in demonstration. */
	demo: boolean;
}

export interface JobListJson {
	/** Newest first, without their texts and embeddings. */
	jobs: JobJson[];
	/** How many wait and run now. */
	queued: number;
	running: number;
}

export interface JobEventJson {
	type: JobState | "progress" | "retrying";
	at: number;
	/** As it was then: replaces what an earlier event said. */
	job: JobJson;
}

export interface JobCancellation {
	/** For the record. */
	reason?: string;
}
