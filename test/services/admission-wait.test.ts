/** A waiting caller soon learns that nothing can be stored; work that no caller waits for may take its time. */

import { expect, it } from "vitest";
import { ADMIT_MS_MAX, type Bus } from "../../packages/daemon/src/bus/bus.ts";
import * as jobs from "./jobs-rig.ts";
import * as scenarios from "./scenarios/rig.ts";

/** How long each beginning of a log may wait for the store. */
function patienceOf(bus: Bus): unknown[] {
	const seen: unknown[] = [];
	const create = bus.create.bind(bus);
	bus.create = (spec, records, together = {}) => {
		seen.push(together.patienceMs);
		return create(spec, records, together);
	};
	return seen;
}

it("a job is refused soon, but not the job of a workflow's node", async () => {
	const rig = jobs.jobsRig();
	const seen = patienceOf(rig.bus);
	await rig.jobs.submit(jobs.admittedOf());
	await rig.jobs.submit(jobs.admittedOf(), { workflow: { workflowId: "w", nodeId: "n" } });
	expect(seen).toEqual([ADMIT_MS_MAX, Number.POSITIVE_INFINITY]);
});

it("a scenario run is refused soon, but not that of a job", async () => {
	const rig = scenarios.rig(scenarios.saying("a"));
	const seen = patienceOf(rig.bus);
	for (const options of [{}, { patient: true as const }]) {
		const { outcome } = await rig.scenarios.start(scenarios.admittedOf(), options);
		await outcome();
	}
	expect(seen).toEqual([ADMIT_MS_MAX, Number.POSITIVE_INFINITY]);
});
