/** Jobs: the newest snapshot of each, and apart from it what is large: the request and the result. Their history is in their logs, which have the same ids. */

import { type Reading, writesOf } from "../../std/write.ts";

export interface StoredJob {
	id: string;
	appId: string;
	state: string;
	createdAt: number;
	/** Undefined until it is terminal. */
	finishedAt?: number;
	/** The newest snapshot without its result, as JSON. */
	job: unknown;
}

export interface StoredJobChange extends Pick<StoredJob, "id" | "state" | "job" | "finishedAt"> {
	/** The result so far, as JSON; left out: unchanged. */
	result?: unknown;
}

export interface StoredJobQuery {
	appId?: string;
	/** Empty or left out: all. */
	states?: readonly string[];
	limit: number;
	/** Only jobs that were submitted before this one. */
	before?: string;
}

export interface JobRows {
	get(id: string): Reading<(StoredJob & { result?: unknown }) | undefined>;
	/** The same without its result. */
	head(id: string): Reading<StoredJob | undefined>;
	/** The admitted scenario. */
	scenario(id: string): Reading<unknown>;
	/** Newest first. Reads neither requests nor results. */
	list(query: StoredJobQuery): Reading<StoredJob[]>;
	/** Whether any ended before a time, of all or of one application. */
	isOlder(before: number, appId?: string): Reading<boolean>;
	/** The size of all jobs of an application, with requests and results. */
	bytes(appId: string): Reading<number>;
}

export interface StoredJobOps {
	/** `scenario` is what was admitted, as JSON. Never a key: connectors have theirs. */
	submit(job: StoredJob, scenario: unknown): void;
	/** Changes only a job that is not terminal: an ended job never changes. */
	change(change: StoredJobChange): void;
	/** Forgets some that ended before a time, at most so many; of all or of one application. */
	forget(before: number, rowsMax: number, appId?: string): void;
}

export const jobWrites = writesOf<StoredJobOps>("jobs", ["submit", "change", "forget"]);
