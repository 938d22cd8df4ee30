/** The audit log and the events of agents over HTTP. */

import { describe, expect, it, onTestFinished } from "vitest";
import { auditText } from "../../packages/daemon/src/services/audit/record.ts";
import { noticeWrites } from "../../packages/daemon/src/services/audit/rows.ts";
import { manualClock } from "../clock.ts";
import { until } from "../until.ts";
import { auditOptions } from "./audit-kit.ts";
import { readSse, rigForTest } from "./rig.ts";

async function started(limits = {}) {
	const rig = await rigForTest({ ...auditOptions(), limits });
	const fill = (count: number) =>
		rig.bus.write([
			noticeWrites.postAll(
				"audit",
				Array.from({ length: count }, (_, n) => auditText({ domain: "runs", operation: "started", payload: { n } }, n)),
				1,
			),
		]);
	return { rig, fill };
}

describe("GET /v1/audit/export", () => {
	it("P5.4, Z23: the whole log as a body that ends cleanly, NDJSON or CSV, resumable", async () => {
		const { rig, fill } = await started();
		await fill(2500);
		const ndjson = await rig.get("/v1/audit/export");
		expect(ndjson.headers.get("content-type")).toBe("application/x-ndjson");
		expect(ndjson.headers.get("content-disposition")).toContain("audit.ndjson");
		const lines = (await ndjson.text()).trimEnd().split("\n");
		expect(lines.map((line) => (JSON.parse(line) as { sequence: number }).sequence)).toEqual(
			Array.from({ length: 2500 }, (_, n) => n + 1),
		);
		const csv = (await (await rig.get("/v1/audit/export?format=csv&filter.domain=runs")).text()).split("\n");
		expect(csv[0]).toMatch(/^sequence,/);
		expect(csv).toHaveLength(2502);
		const rest = await (await rig.get("/v1/audit/export?after=2499&filter.domain=runs")).text();
		expect(rest).toBe(`${lines.at(-1)}\n`);
	});

	it("an empty one is an empty body, and what was removed is 410 before the first byte", async () => {
		const { rig, fill } = await started();
		await fill(3);
		await fill(3);
		await rig.bus.write([noticeWrites.forget("audit", 2, 1)]);
		expect((await rig.get("/v1/audit/export?after=1")).status).toBe(410);
		expect((await rig.get("/v1/audit/export?after=9999")).status).toBe(400);
		expect((await rig.get("/v1/audit/export?after=3")).status).toBe(200);
		expect(await (await rig.get("/v1/audit/export?filter.domain=none")).text()).toBe("");
	});
});

describe("GET /v1/agents/stream", () => {
	it("tells of the runs of all sessions, and resumes by Last-Event-ID over a restart", async () => {
		const { rig } = await started();
		const reader = await readSse(`${rig.url}/v1/agents/stream`);
		const { runId, puppet } = await rig.start("main");
		const before = await reader.until((events) => events.length === 2);
		expect(before.map(({ id, data }) => [id, (JSON.parse(data) as { event_type: string }).event_type])).toEqual([
			["1", "AGENT_EVENT_TYPE_STARTED"],
			["2", "AGENT_EVENT_TYPE_MESSAGE"],
		]);
		const seen = before.at(-1)!.id!;
		reader.stop();
		puppet.finish();
		await rig.settled(runId);
		await rig.restart();
		const again = await readSse(`${rig.url}/v1/agents/stream`, { "last-event-id": seen });
		onTestFinished(() => again.stop());
		const [settled] = await again.until((events) => events.length === 1);
		expect(settled).toMatchObject({ id: "3", event: "message" });
		expect(JSON.parse(settled!.data)).toMatchObject({
			event_type: "AGENT_EVENT_TYPE_SETTLED",
			run_id: runId,
			state: "completed",
		});
	});

	it("P6.18: events that do not match move a quiet reader on: a place without data has its id", async () => {
		const clock = manualClock(Date.now());
		const rig = await rigForTest({ ...auditOptions(), clock, limits: { heartbeatMs: 1000 } });
		const response = await rig.get("/v1/agents/stream?session=quiet");
		const reader = response.body!.getReader();
		await rig.start("busy");
		let text = "";
		const read = async (): Promise<void> => {
			const { value, done } = await reader.read();
			if (done) return;
			text += Buffer.from(value).toString();
			return read();
		};
		void read().catch(() => {});
		await until("the place", () => {
			clock.advance(1000);
			return text.includes("id: 2\n\n");
		});
		expect(text).not.toContain("data:");
		await reader.cancel();
	});
});
