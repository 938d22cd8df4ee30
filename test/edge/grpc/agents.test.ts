/** RuntimeAgentService over gRPC: messages, aborts, and the events of all sessions' runs. */

import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import {
	AgentEventType,
	RuntimeAgentService,
	type SubscribeAgentEventsResponse,
} from "../../../packages/client/src/gen/nexus/runtime/v1/agent_pb.ts";
import { ReasonCode } from "../../../packages/client/src/gen/nexus/runtime/v1/common_pb.ts";
import { manualClock } from "../../clock.ts";
import { until } from "../../until.ts";
import { auditOptions } from "../audit-kit.ts";
import { errorOf, following, kitForTest, readStream, statusOf } from "./kit.ts";

async function started() {
	const agents = { lead: { model: "m1" }, helper: {} };
	const kit = await kitForTest({ ...auditOptions(), agents });
	return { kit, client: kit.client(RuntimeAgentService) };
}

const typesOf = (events: readonly SubscribeAgentEventsResponse[]) => events.map(({ eventType }) => eventType);
const { STARTED, MESSAGE, TOOL, SETTLED } = AgentEventType;

describe("RuntimeAgentService", () => {
	it("sends a message, follows its run, and aborts it", async () => {
		const { kit, client } = await started();
		const all = following((signal) => client.subscribeAgentEvents({ after: 0n }, { signal }));
		const { runId, disposition, eventId } = await client.sendMessage({ session: "main", text: "hi" });
		expect(disposition).toBe("started");
		const tool = { type: "tool", callId: "c1", name: "look" } as const;
		kit.rig.puppet(runId).yield({ ...tool, status: "started" }, { ...tool, status: "completed" });
		await until("the tool", () => all.seen.length === 4);
		expect(await client.abortRun({ runId })).toMatchObject({ runId, status: "aborted" });
		await until("the end", () => all.seen.length === 5);
		expect(typesOf(all.seen)).toEqual([STARTED, MESSAGE, TOOL, TOOL, SETTLED]);
		expect(all.seen).toMatchObject([
			{ sequence: 1n, session: "main", runId },
			{ sequence: 2n, id: eventId, state: "started" },
			{ sequence: 3n, id: "c1", tool: "look", state: "started" },
			{ sequence: 4n, state: "completed" },
			{ sequence: 5n, state: "aborted", reasonCode: ReasonCode.ABORTED },
		]);
		await until("who asked is on record", async () => {
			const { events } = (await (await kit.rig.get("/v1/audit?filter.operation=abort_asked")).json()) as {
				events: object[];
			};
			return events.length === 1;
		});
	});

	it("P8.7: events that do not match move a quiet reader on: it is sent its position, which is not an event", async () => {
		const clock = manualClock(Date.now());
		const kit = await kitForTest({ ...auditOptions(), clock, limits: { heartbeatMs: 1e9 } });
		const client = kit.client(RuntimeAgentService);
		const quiet = following((signal) => client.subscribeAgentEvents({ after: 0n, session: "quiet" }, { signal }));
		const all = following((signal) => client.subscribeAgentEvents({ after: 0n }, { signal }));
		await client.sendMessage({ session: "busy", text: "hi" });
		await until("the events of the other session", () => all.seen.length === 2);
		await until("the place", () => {
			clock.advance(60_000);
			return quiet.seen.length > 0;
		});
		expect(quiet.seen).toMatchObject([{ sequence: 2n, eventType: AgentEventType.UNSPECIFIED, session: "" }]);
		clock.advance(600_000);
		const { runId } = await client.sendMessage({ session: "quiet", text: "hi" });
		await until("an event that matches", () => quiet.seen.length >= 3);
		expect(quiet.seen.slice(1)).toMatchObject([
			{ sequence: 3n, eventType: STARTED, runId },
			{ sequence: 4n, eventType: MESSAGE, runId },
		]);
		expect(all.seen.every(({ eventType }) => eventType !== AgentEventType.UNSPECIFIED)).toBe(true);
	});

	it("Z3: begins now without a place, resumes after one, and is filtered by session and agent", async () => {
		const { kit, client } = await started();
		const first = await client.sendMessage({ session: "one", text: "hi" });
		kit.rig.puppet(first.runId).finish();
		await kit.rig.settled(first.runId);
		const resumed = following((signal) => client.subscribeAgentEvents({ after: 2n }, { signal }));
		const other = following((signal) => client.subscribeAgentEvents({ after: 0n, session: "two" }, { signal }));
		const lead = following((signal) => client.subscribeAgentEvents({ after: 0n, agent: "lead" }, { signal }));
		const now = following((signal) => client.subscribeAgentEvents({}, { signal }));
		await until("what was before", () => resumed.seen.length === 1);
		const second = await client.sendMessage({ session: "two", text: "hi" });
		const by = { type: "tool", callId: "c1", name: "look", agent: "lead" } as const;
		kit.rig.puppet(second.runId).yield({ ...by, status: "started" });
		await until("the tool", () => lead.seen.length === 1 && other.seen.length === 3 && resumed.seen.length === 4);
		expect(typesOf(resumed.seen)).toEqual([SETTLED, STARTED, MESSAGE, TOOL]);
		expect(lead.seen).toMatchObject([{ session: "two", agent: "lead", tool: "look" }]);
		expect(other.seen.every(({ session }) => session === "two")).toBe(true);
		expect(now.seen.every(({ sequence }) => sequence > 3n)).toBe(true);
		expect((await readStream(client.subscribeAgentEvents({ after: 99n }))).error?.code).toBe(Code.InvalidArgument);
	});

	it("Z15: the same key is the same message, another text under it INVALID_ARGUMENT", async () => {
		const { client } = await started();
		const message = { session: "main", text: "hi", idempotencyKey: "k1" };
		const first = await client.sendMessage(message);
		expect((await client.sendMessage(message)).eventId).toBe(first.eventId);
		const error = await errorOf(client.sendMessage({ ...message, text: "other" }));
		expect(statusOf(error)).toEqual({ code: "InvalidArgument", reason: "REASON_CODE_IDEMPOTENCY_CONFLICT" });
		expect((await errorOf(client.sendMessage({ session: "a b", text: "x" }))).code).toBe(Code.InvalidArgument);
		expect((await errorOf(client.abortRun({ runId: "run_x" }))).code).toBe(Code.NotFound);
	});

	it("lists the engine and its agents", async () => {
		const { client } = await started();
		expect(await client.listAgents({})).toMatchObject({
			engine: "puppet",
			agents: [
				{ name: "lead", modelId: "m1" },
				{ name: "helper", modelId: "" },
			],
		});
	});
});
