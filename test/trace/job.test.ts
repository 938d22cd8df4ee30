/** ARCHITECTURE.md, "The way of a job", names exactly the files of the services that run for every job: counted while jobs pass one at a time. */

import { expect, onTestFinished, test } from "vitest";
import { RuntimeAiService, ScenarioJobState } from "../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import type { Jobs } from "../../packages/daemon/src/services/jobs/port.ts";
import type { Scenarios } from "../../packages/daemon/src/services/scenarios/port.ts";
import { startCoverage } from "./coverage.ts";
import { filesListed } from "./document.ts";

const JOBS = 20;
/** Until everything that happens once has happened. */
const JOBS_BEFORE = 3;

test("the files between the submission of a job and its watcher are those that the document names", async () => {
	const coverage = await startCoverage();
	// Only what is loaded from here on is counted block by block: hence the imports inside.
	const { startGrpcKit } = await import("../edge/grpc/kit.ts");
	const { openPlainStore } = await import("../store.ts");
	const services: { jobs?: Jobs; scenarios?: Scenarios } = {};
	// Without a limit to keep to, the event loop's load is not measured: that happens by time, not by job.
	const kit = await startGrpcKit({ services, open: openPlainStore, limits: { flushMsMax: 0 } });
	onTestFinished(() => kit.close());
	Object.assign(services, await playedServices(kit.rig));
	const ai = kit.client(RuntimeAiService);

	const pass = async (count: number) => {
		for (let n = 0; n < count; n++) {
			const { job } = await ai.submitScenarioJob({
				scenario: {
					head: { appId: "shop", connectorId: "main" },
					spec: { case: "textGenerate", value: { messages: [{ role: "user", text: "hello" }] } },
				},
			});
			let last: ScenarioJobState | undefined;
			for await (const event of ai.subscribeScenarioJobEvents({ jobId: job!.jobId, after: 0n }))
				last = event.job?.state;
			expect(last).toBe(ScenarioJobState.COMPLETED);
		}
	};
	await pass(JOBS_BEFORE);
	await coverage.take();
	await pass(JOBS);
	const counts = await coverage.take();
	const ran = Object.keys(counts).filter((file) => file.startsWith("daemon/services/") && counts[file]! >= JOBS / 2);
	expect(ran.sort()).toEqual([...new Set(filesListed("The way of a job"))].sort());
});

/** Scenarios and jobs as the daemon makes them; only the connectors and their provider are played. */
async function playedServices(store: Parameters<typeof import("../services/parts.ts")["durableParts"]>[0]) {
	const { createJobs } = await import("../../packages/daemon/src/services/jobs/jobs.ts");
	const { createScenarios } = await import("../../packages/daemon/src/services/scenarios/scenarios.ts");
	const { noUserTokens } = await import("../../packages/daemon/src/services/scenarios/user-token.ts");
	const { durableParts } = await import("../services/parts.ts");
	const { connectorOf, fakeConnectors, playedProvider, saying } = await import("../services/scenarios/rig.ts");
	const parts = durableParts(store);
	const connectors = fakeConnectors(playedProvider(saying("Hello", " there")), [connectorOf("main")]);
	const scenarios = createScenarios({ ...parts, connectors, verifyUser: noUserTokens });
	const unused = () => Promise.reject(new Error("text needs no artifact"));
	const jobs = createJobs({ ...parts, scenarios, artifacts: { store: unused, whole: unused } });
	onTestFinished(() => jobs.close(0));
	return { scenarios, jobs };
}
