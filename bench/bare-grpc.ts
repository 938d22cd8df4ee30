/** The baseline of remote procedures: connect-node and nothing else. The same messages as the daemon's, 32 bytes of text each. */

import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { RuntimeAiService, type Scenario, ScenarioType } from "../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { paced, rhythmOf } from "./pace.ts";

const RUN = "run_01KA4XJ5T5M1V6E4WX2Q8N7B3C";
const BASE = { runId: RUN, scenarioType: ScenarioType.TEXT_GENERATE, modelId: "bench" };
const CHUNK_CHARS_MIN = 32;

const askedIn = ({ spec }: Scenario) => (spec.case === "textGenerate" ? (spec.value.messages.at(-1)?.text ?? "") : "");

async function* streamOf(text: string) {
	// Connect sends the headers with the first message, and a client has to know that it is there.
	yield BASE;
	let sequence = 0;
	let textDelta = "";
	for await (const token of paced(rhythmOf(text))) {
		sequence++;
		textDelta += token;
		if (textDelta.length < CHUNK_CHARS_MIN) continue;
		yield { ...BASE, sequence: BigInt(sequence), textDelta };
		textDelta = "";
	}
	yield { ...BASE, sequence: BigInt(sequence + 1), textDelta, done: true };
}

const server = createServer(
	connectNodeAdapter({
		routes: (router) => {
			router.service(RuntimeAiService, {
				streamScenario: ({ scenario }) => streamOf(scenario ? askedIn(scenario) : ""),
			});
		},
	}),
);
server.listen(0, "127.0.0.1", () => {
	const { port } = server.address() as AddressInfo;
	console.log(JSON.stringify({ url: `http://127.0.0.1:${port}`, grpc: `http://127.0.0.1:${port}` }));
});
