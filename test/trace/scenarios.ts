/** Model calls over gRPC, to a model that is played. */

import { RuntimeAiService } from "../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { createScenarios } from "../../packages/daemon/src/services/scenarios/scenarios.ts";
import { startGrpcKit } from "../edge/grpc/kit.ts";
import { connectorOf, fakeConnectors, playedProvider } from "../services/scenarios/rig.ts";
import { openPlainStore } from "../store.ts";

/** Longer than the 32 bytes that a chunk waits for. */
const DELTAS = ["The first part of the answer is long enough, ", "and the second part of it is long enough too."];

async function* answer() {
	for (const delta of DELTAS) yield { type: "text" as const, delta };
}

export async function openScenarios() {
	const connectors = fakeConnectors(playedProvider(answer), [connectorOf("main")]);
	const kit = await startGrpcKit({
		open: openPlainStore,
		limits: { flushMsMax: 0 },
		services: ({ bus, rows }) => ({ scenarios: createScenarios({ bus, rows, connectors }) }),
	});
	const client = kit.client(RuntimeAiService);
	return {
		/** To its last event. */
		async call(text: string) {
			const head = { appId: "shop", connectorId: "main", modelId: "small" };
			const spec = { case: "textGenerate" as const, value: { messages: [{ role: "user", text }] } };
			let got = "";
			for await (const { textDelta } of client.streamScenario({ scenario: { head, spec } })) got += textDelta;
			if (got !== DELTAS.join("")) throw new Error(`the answer was ${got}`);
		},
		close: () => kit.close(),
	};
}
