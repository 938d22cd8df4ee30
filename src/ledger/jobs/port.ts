/** Jobs: one row each, with the newest snapshot and what is needed to run it again. Their history is in their logs, which have the same ids. */

import { type Reading, writesOf } from "../../std/write.ts";

export interface StoredJob {
	id: string;
	appId: string;
	state: string;
	createdAt: number;
	/** Undefined until it is terminal. */
	finishedAt?: number;
	/** What was admitted, as JSON. Never a key: connectors have theirs. */
	scenario: unknown;
	/** The newest snapshot, as JSON. */
	job: unknown;
}

export interface StoredJobQuery {
	appId?: string;
	/** Empty or left out: all. */
	states?: readonly string[];
	limit: number;
	/** Only jobs that were submitted before this one. */
	before?: string;
}

export interface StoredJobs {
	get(id: string): Reading<StoredJob | undefined>;
	/** Newest first. */
	list(query: StoredJobQuery): Reading<StoredJob[]>;
	/** Whether any ended before a time. */
	isOlder(before: number): Reading<boolean>;
}

export interface StoredJobOps {
	submit(job: StoredJob): void;
	/** Of a job that is not terminal only: what has ended never changes. */
	change(change: Pick<StoredJob, "id" | "state" | "job" | "finishedAt">): void;
	/** Forgets some that ended before a time, at most so many. */
	forget(before: number, rowsMax: number): void;
}

export const jobWrites = writesOf<StoredJobOps>("jobs", ["submit", "change", "forget"]);
