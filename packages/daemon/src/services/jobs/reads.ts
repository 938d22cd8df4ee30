/** Job queries. Everything is read from the store except the live queue position. */

import { NexusError } from "@nexus-stream/protocol";
import { type FairQueue, positionsOf } from "../kit/fair-queue.ts";
import { appToList, type Principal, seesApp } from "../kit/principal.ts";
import type { Job, Jobs } from "./port.ts";
import type { JobRows, StoredJob } from "./rows.ts";
import { isTerminal, storedJob } from "./snapshot.ts";

export class JobReads {
	readonly #jobs: JobRows;
	readonly #queue: Pick<FairQueue, "state">;
	readonly #textOf: (job: Job) => Promise<string | undefined>;

	/** `textOf` is the text that a running job's run has written so far. */
	constructor(jobs: JobRows, queue: Pick<FairQueue, "state">, textOf: (job: Job) => Promise<string | undefined>) {
		this.#jobs = jobs;
		this.#queue = queue;
		this.#textOf = textOf;
	}

	/** For a caller that may see it. Rejects with `not_found`. */
	async get(id: string): Promise<Job> {
		const found = await this.#jobs.get(id);
		if (!found) throw noJob(id);
		return this.#shown(found);
	}

	/** Without its result. Of another application: `not_found`, as if it were not there. */
	async row(id: string, principal: Principal): Promise<StoredJob> {
		const found = await this.#jobs.head(id);
		if (!found || !seesApp(principal, found.appId)) throw noJob(id);
		return found;
	}

	async find(id: string, principal: Principal): Promise<Job | undefined> {
		const found = await this.#jobs.get(id);
		return found && seesApp(principal, found.appId) ? this.#shown(found) : undefined;
	}

	async list(query: Parameters<Jobs["list"]>[0], principal: Principal) {
		const appId = appToList(principal, query.appId);
		const rows = await this.#jobs.list({ ...query, appId });
		const { waiting, running } = this.#queue.state;
		const positions = positionsOf(this.#queue.state);
		const isListed = (app: string) => appId === undefined || app === appId;
		return {
			jobs: rows.map(({ job }) => placed(job as Job, positions)),
			queued: waiting.filter((job) => isListed(job.appId)).length,
			running: [...running.values()].filter(isListed).length,
		};
	}

	async #shown(row: StoredJob): Promise<Job> {
		const job = placed(storedJob(row), positionsOf(this.#queue.state));
		const text = job.state === "running" ? await this.#textOf(job) : undefined;
		return text === undefined ? job : { ...job, text };
	}
}

const placed = (job: Job, positions: ReadonlyMap<string, number>): Job => ({
	...job,
	queuePosition: isTerminal(job) ? 0 : (positions.get(job.id) ?? 0),
});

export const noJob = (id: string) => new NexusError("not_found", `there is no job ${id}`);
