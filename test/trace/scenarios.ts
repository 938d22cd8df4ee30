/** Model calls and jobs over gRPC, to a model that is played. */

import { RuntimeAiService } from "../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { createJobs } from "../../packages/daemon/src/services/jobs/jobs.ts";
import { noUserTokens } from "../../packages/daemon/src/services/scenarios/metadata.ts";
import { createScenarios } from "../../packages/daemon/src/services/scenarios/scenarios.ts";
import { startGrpcKit } from "../edge/grpc/kit.ts";
import { durableParts } from "../services/parts.ts";
import { connectorOf, fakeConnectors, playedProvider } from "../services/scenarios/rig.ts";
import { openPlainStore } from "../store.ts";

/** Longer than the 32 bytes that a chunk waits for. */
const DELTAS = ["The first part of the answer is long enough, ", "and the second part of it is long enough too."];

async function* answer() {
	for (const delta of DELTAS) yield { type: "text" as const, delta };
}

const unused = () => Promise.reject(new Error("a text needs no artifact"));

export async function openScenarios() {
	const connectors = fakeConnectors(playedProvider(answer), [connectorOf("main")]);
	const kit = await startGrpcKit({
		open: openPlainStore,
		limits: { flushMsMax: 0 },
		services(store) {
			const parts = durableParts(store);
			const scenarios = createScenarios({ ...parts, connectors, verifyUser: noUserTokens });
			return { scenarios, jobs: createJobs({ ...parts, scenarios, artifacts: { store: unused, whole: unused } }) };
		},
	});
	const client = kit.client(RuntimeAiService);
	const scenarioOf = (text: string) => ({
		head: { appId: "shop", connectorId: "main", modelId: "small" },
		spec: { case: "textGenerate" as const, value: { messages: [{ role: "user", text }] } },
	});
	const check = (got: string) => {
		if (got !== DELTAS.join("")) throw new Error(`the answer was ${got}`);
	};
	return {
		/** To its last event. */
		async call(text: string) {
			let got = "";
			for await (const { textDelta } of client.streamScenario({ scenario: scenarioOf(text) })) got += textDelta;
			check(got);
		},
		/** From its submission to the last event that a watcher gets. */
		async job(text: string) {
			const { job } = await client.submitScenarioJob({ scenario: scenarioOf(text) });
			let got = "";
			for await (const event of client.subscribeScenarioJobEvents({ jobId: job!.jobId, after: 0n }))
				got = event.job!.text;
			check(got);
		},
		close: () => kit.close(),
	};
}
