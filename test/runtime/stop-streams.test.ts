/** A whole daemon stops while remote procedures stream: each ends as its close mode says (Z6). */

import { createClient } from "@connectrpc/connect";
import { expect, it } from "vitest";
import {
	Health,
	HealthCheckResponse_ServingStatus as Status,
} from "../../packages/client/src/gen/grpc/health/v1/health_pb.ts";
import { RuntimeAgentService } from "../../packages/client/src/gen/nexus/runtime/v1/agent_pb.ts";
import { RuntimeAiService } from "../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { RuntimeAuditService } from "../../packages/client/src/gen/nexus/runtime/v1/audit_pb.ts";
import { ReasonCode } from "../../packages/client/src/gen/nexus/runtime/v1/common_pb.ts";
import { asking, transportOf } from "../ai-client.ts";
import { readStream, statusOf } from "../edge/grpc/kit.ts";
import { until } from "../until.ts";
import { daemonForTest } from "./daemon.ts";

const STOPPED = { code: "Canceled", reason: "REASON_CODE_STOPPING" };

it("P8.6: readers of runs see the true end with OK, subscriptions are CANCELLED, and health says so first", async () => {
	const daemon = await daemonForTest({ stopDeadlineMs: 4000, broker: { abortGraceMs: 1000 } });
	const transport = transportOf(daemon);
	const [ai, audit] = [createClient(RuntimeAiService, transport), createClient(RuntimeAuditService, transport)];
	const begun = new Set<string>();
	const begin = (name: string) => () => void begun.add(name);
	const say = (text: string) => readStream(ai.streamScenario({ scenario: asking(text) }), begin(text));
	const short = say("/demo tokens=20 rate=20");
	const long = say("/demo tokens=5000 rate=20");
	const watched = readStream(createClient(Health, transport).watch({}), begin("watch"));
	const health = readStream(audit.subscribeRuntimeHealthEvents({}), begin("health"));
	const agents = readStream(
		createClient(RuntimeAgentService, transport).subscribeAgentEvents({}, { onHeader: begin("agents") }),
	);
	await until("all have begun", () => begun.size === 5);
	await daemon.close();
	for (const reading of [short, long]) {
		const { messages, error } = await reading;
		expect(error).toBeUndefined();
		expect(messages.filter(({ done }) => done)).toHaveLength(1);
		expect(messages.at(-1)?.done).toBe(true);
	}
	expect((await short).messages.at(-1)?.reasonCode).toBe(ReasonCode.UNSPECIFIED);
	expect((await long).messages.at(-1)?.reasonCode).toBe(ReasonCode.STOPPING);
	expect((await watched).messages.map(({ status }) => status)).toEqual([Status.SERVING, Status.NOT_SERVING]);
	for (const cut of [watched, health, agents]) expect(statusOf((await cut).error)).toEqual(STOPPED);
});
