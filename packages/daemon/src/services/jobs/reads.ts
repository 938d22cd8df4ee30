/** Job queries. Everything is read from the store except the live queue position. */

import { LOG_KINDS, NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Bus, Cursor } from "../../bus/bus.ts";
import { gone } from "../kit/gone.ts";
import { checkedAppId, type Principal, seesApp } from "../kit/principal.ts";
import type { Job, Jobs } from "./port.ts";
import type { JobRows, StoredJob } from "./rows.ts";
import { type JobSchedule, positionsOf } from "./schedule.ts";
import { isTerminal, storedJob } from "./snapshot.ts";

export interface JobReads {
	find: Jobs["find"];
	list: Jobs["list"];
	cursor: Jobs["cursor"];
	/** Without its result. Of another application: `not_found`, as if it were not there. */
	row(id: string, principal: Principal): Promise<StoredJob>;
}

export interface JobReadsDeps {
	bus: Bus;
	rows: { jobs: JobRows };
	clock: Pick<Clock, "now">;
	/** Text that the job's run has written so far. */
	textOf(job: Job): Promise<string | undefined>;
}

export function jobReads({ bus, rows: { jobs }, clock, textOf }: JobReadsDeps, schedule: () => JobSchedule): JobReads {
	const row = async (id: string, principal: Principal): Promise<StoredJob> => {
		const found = await jobs.head(id);
		if (!found || !seesApp(principal, found.appId)) throw noJob(id);
		return found;
	};
	return {
		row,
		async find(id, principal) {
			const found = await jobs.get(id);
			if (!found || !seesApp(principal, found.appId)) return undefined;
			const job = placed(storedJob(found), positionsOf(schedule()));
			const text = job.state === "running" ? await textOf(job) : undefined;
			return text === undefined ? job : { ...job, text };
		},
		async list(query, principal) {
			const appId = listedApp(query.appId, principal);
			const rows = await jobs.list({ ...query, ...(appId !== undefined && { appId }) });
			const now = schedule();
			const positions = positionsOf(now);
			const isListed = (app: string) => appId === undefined || app === appId;
			return {
				jobs: rows.map(({ job }) => placed(job as Job, positions)),
				queued: now.waiting.filter((job) => isListed(job.appId)).length,
				running: [...now.running.values()].filter(isListed).length,
			};
		},
		async cursor(id, after, principal) {
			const found = await jobs.head(id);
			if (!found || !seesApp(principal, found.appId)) throw gone("job", id, LOG_KINDS.job.keptMs, clock.now());
			return openCursor(bus, id, after);
		},
	};
}

function listedApp(claimed: string | undefined, { owner, appId }: Principal): string | undefined {
	if (claimed !== undefined) checkedAppId(claimed);
	if (owner) return claimed;
	if (claimed === undefined || claimed === appId) return appId;
	throw new NexusError("forbidden", `this token belongs to the application ${appId}, not to ${claimed}`);
}

function placed(job: Job, positions: ReadonlyMap<string, number>): Job {
	const queuePosition = isTerminal(job) ? 0 : (positions.get(job.id) ?? 0);
	return job.queuePosition === queuePosition ? job : { ...job, queuePosition };
}

/** No reader is let go without the terminal, also when it has seen it (Z5). */
async function openCursor(bus: Bus, id: string, after: number | undefined): Promise<Cursor> {
	const info = await bus.describe(id);
	if (!info) throw new NexusError("expired", `the events of ${id} were removed by retention; get the job instead`);
	const newest = Math.max(0, info.head - 1);
	const isBeyond = info.sealedAt !== undefined && after !== undefined && after > newest;
	const cursor = await bus.cursor({ log: id }, after === undefined || isBeyond ? newest : after);
	if (!cursor.ended) return cursor;
	// It was sealed meanwhile.
	cursor.close();
	return bus.cursor({ log: id }, cursor.offset - 1);
}

export const noJob = (id: string) => new NexusError("not_found", `there is no job ${id}`);
