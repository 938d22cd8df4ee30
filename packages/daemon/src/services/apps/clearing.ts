/** Removes what an application has stored and what is over: finished jobs and workflows, their logs and those of model calls, and artifacts. */

import type { Bus } from "../../bus/bus.ts";
import type { Artifacts } from "../artifacts/port.ts";
import type { Audit } from "../audit/port.ts";
import { type JobRows, jobWrites } from "../jobs/rows.ts";
import { type Principal, requireOwner } from "../kit/principal.ts";
import { type WorkflowRows, workflowWrites } from "../workflows/rows.ts";

const JOBS_PER_COMMIT = 500;
/** Each with its nodes. */
const WORKFLOWS_PER_COMMIT = 50;

export interface ClearingDeps {
	bus: Pick<Bus, "write" | "removeOf">;
	rows: { jobs: JobRows; workflows: WorkflowRows };
	artifacts: Pick<Artifacts, "clear">;
	audit: Audit;
}

/** Messages stay for their week: their recipients read them without a gap. */
export type ClearApp = (appId: string, principal: Principal) => Promise<void>;

export const createClearing =
	({ bus, rows, artifacts, audit }: ClearingDeps): ClearApp =>
	async (appId, principal) => {
		requireOwner(principal);
		await bus.write([audit({ domain: "apps", operation: "cleared", appId, caller: principal.address })]);
		const ever = Number.MAX_SAFE_INTEGER;
		while (await rows.jobs.isOlder(ever, appId)) await bus.write([jobWrites.forget(ever, JOBS_PER_COMMIT, appId)]);
		while (await rows.workflows.isOlder(ever, appId))
			await bus.write([workflowWrites.forget(ever, WORKFLOWS_PER_COMMIT, appId)]);
		await bus.removeOf(appId);
		await artifacts.clear(appId);
	};
