/** The rules behind the figures of remote procedures, exports and workflows. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { create, toBinary } from "@bufbuild/protobuf";
import { expect, it, onTestFinished } from "vitest";
import { fieldOf, framesInto } from "../../bench/grpc.ts";
import { fillAudit } from "../../bench/lines/audit.ts";
import { wide } from "../../bench/lines/workflow.ts";
import { ScenarioType, StreamScenarioResponseSchema } from "../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";

function framed(textDelta: string): Buffer {
	const base = { runId: "run_1", sequence: 300n, scenarioType: ScenarioType.TEXT_GENERATE, modelId: "bench" };
	const message = toBinary(StreamScenarioResponseSchema, create(StreamScenarioResponseSchema, { ...base, textDelta }));
	const head = Buffer.alloc(5);
	head.writeUInt32BE(message.length, 1);
	return Buffer.concat([head, message]);
}

it.each([1, 3, 7, 64, 10_000])("bench: the load client reads messages that come in pieces of %i bytes", (size) => {
	const sent = ["", "sixteen letters ", "x".repeat(200), "end"];
	const bytes = Buffer.concat(sent.map(framed));
	const read: (string | undefined)[] = [];
	const take = framesInto((message) => read.push(fieldOf(message, 4)?.toString()));
	for (let at = 0; at < bytes.length; at += size) take(bytes.subarray(at, at + size));
	expect(read).toEqual([undefined, ...sent.slice(1)]);
});

it("bench: a wide workflow has one node before all others and one behind them", () => {
	const nodes = wide(5, (n, before) => ({ id: `n${n}`, kind: "CONTROL_NOOP", depends_on: before.map((b) => `n${b}`) }));
	expect(nodes.map(({ depends_on }) => depends_on)).toEqual([[], ["n0"], ["n0"], ["n0"], ["n1", "n2", "n3"]]);
});

it("bench: the exported log has as many events as it says, one row each", async () => {
	const folder = mkdtempSync(join(tmpdir(), "nexus-bench-test-"));
	onTestFinished(() => rmSync(folder, { recursive: true }));
	await fillAudit(folder, 100);
	const db = new DatabaseSync(join(folder, "data", "nexus.db"), { readOnly: true });
	onTestFinished(() => db.close());
	const row = db.prepare("SELECT count(*) AS rows, max(seq) AS last FROM notice").get();
	expect({ ...row }).toEqual({ rows: 100, last: 100 });
});
