/** Job queries. Everything is read from the store except the live queue position. */

import { NexusError } from "@nexus-stream/protocol";
import { positionsOf, type QueueState } from "../kit/fair-queue.ts";
import { appToList, type Principal, seesApp } from "../kit/principal.ts";
import type { Job, Jobs } from "./port.ts";
import type { JobRows, StoredJob } from "./rows.ts";
import { isTerminal, storedJob } from "./snapshot.ts";

export interface JobReads {
	find: Jobs["find"];
	list: Jobs["list"];
	/** For a caller that may see it. Rejects with `not_found`. */
	get(id: string): Promise<Job>;
	/** Without its result. Of another application: `not_found`, as if it were not there. */
	row(id: string, principal: Principal): Promise<StoredJob>;
}

/** `textOf` is the text that a running job's run has written so far. */
export function jobReads(
	jobs: JobRows,
	queue: () => QueueState,
	textOf: (job: Job) => Promise<string | undefined>,
): JobReads {
	const shown = async (row: StoredJob): Promise<Job> => {
		const job = placed(storedJob(row), positionsOf(queue()));
		const text = job.state === "running" ? await textOf(job) : undefined;
		return text === undefined ? job : { ...job, text };
	};
	return {
		async get(id) {
			const found = await jobs.get(id);
			if (!found) throw noJob(id);
			return shown(found);
		},
		async row(id, principal) {
			const found = await jobs.head(id);
			if (!found || !seesApp(principal, found.appId)) throw noJob(id);
			return found;
		},
		async find(id, principal) {
			const found = await jobs.get(id);
			return found && seesApp(principal, found.appId) ? shown(found) : undefined;
		},
		async list(query, principal) {
			const appId = appToList(principal, query.appId);
			const rows = await jobs.list({ ...query, appId });
			const { waiting, running } = queue();
			const positions = positionsOf(queue());
			const isListed = (app: string) => appId === undefined || app === appId;
			return {
				jobs: rows.map(({ job }) => placed(job as Job, positions)),
				queued: waiting.filter((job) => isListed(job.appId)).length,
				running: [...running.values()].filter(isListed).length,
			};
		},
	};
}

function placed(job: Job, positions: ReadonlyMap<string, number>): Job {
	const queuePosition = isTerminal(job) ? 0 : (positions.get(job.id) ?? 0);
	return job.queuePosition === queuePosition ? job : { ...job, queuePosition };
}

export const noJob = (id: string) => new NexusError("not_found", `there is no job ${id}`);
