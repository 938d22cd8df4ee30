/** Spans and counts of runs, from a daemon to a small OTLP receiver and to `/metrics`. */

import { globSync, readFileSync } from "node:fs";
import type { Engine, EngineEvent } from "@nexus-stream/protocol/engine";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { Delivery } from "../../packages/daemon/src/ledger/deliveries/port.ts";
import type { Turn } from "../../packages/daemon/src/ledger/turns/port.ts";
import { RunCounts } from "../../packages/daemon/src/runtime/observe/run-counts.ts";
import { openTracing, tracingConfig } from "../../packages/daemon/src/runtime/observe/tracing.ts";
import { dataPaths, readToken } from "../../packages/daemon/src/runtime/runtime.ts";
import { createOtlpFake, type OtlpFake } from "../../packages/lab/src/otlp.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { answered, call, daemonForTest } from "./daemon.ts";

const asking = { id: "K7Q2", kind: "approval", expiresAt: 1 } as const;

const acting: Engine = {
	name: "acting",
	async *run() {
		yield { type: "log", entry: { kind: "attempt", text: "first" } };
		yield { type: "log", entry: { kind: "model", agent: "main", text: "answered", data: { ms: 5, tokens: 12 } } };
		yield { type: "tool", callId: "1", name: "bash", status: "started", args: { command: "secret words" } };
		yield { type: "tool", callId: "1", name: "bash", status: "completed", result: "private result" };
		yield { type: "tool", callId: "2", name: "read", status: "started" };
		yield { type: "tool", callId: "2", name: "read", status: "failed", result: "no such file" };
		yield { type: "log", entry: { kind: "model", text: "failed", data: { ms: 1, failed: true } } };
		yield { type: "text", delta: "done" };
		yield { type: "usage", input: 7, output: 3 };
	},
};

async function place(otel: object, env: Record<string, string> = {}) {
	const fake = await createOtlpFake();
	onTestFinished(() => fake.close());
	for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value.replace("$URL", fake.url));
	const settings = Object.keys(otel).length === 0 ? {} : { otel: { endpoint: fake.url, ...otel } };
	const daemon = await daemonForTest({ engine: acting, ...settings });
	return { fake, daemon };
}

const named = ({ spans }: OtlpFake, name: string) => spans.filter((span) => span.name === name);

afterEach(() => vi.unstubAllEnvs());

describe("OpenTelemetry", () => {
	it("a run, its model calls and its tools are spans of the run's trace, without prompts and arguments", async () => {
		const { fake, daemon } = await place({});
		expect(fake.spans).toEqual([]);
		await answered(daemon, "no endpoint");
		await daemon.close();
		expect(fake.bodies).toEqual([]);

		const traced = await place({ flushMs: 5000 });
		const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
		const runId = await answered(traced.daemon, "my secret prompt", {
			traceparent: `00-${traceId}-00f067aa0ba902b7-01`,
		});
		await traced.daemon.close();
		const [run] = named(traced.fake, "run");
		expect(run).toMatchObject({
			traceId,
			service: "nexus",
			attributes: { "nexus.run_id": runId, "nexus.status": "completed" },
		});
		expect(new Set(traced.fake.spans.map((span) => span.traceId))).toEqual(new Set([traceId]));
		const children = traced.fake.spans.filter((span) => span !== run);
		for (const child of children) expect(child.parentSpanId).toBe(run?.spanId);
		expect(
			named(traced.fake, "tool").map(({ attributes, status }) => [attributes["gen_ai.tool.name"], status.code]),
		).toEqual([
			["bash", 0],
			["read", 2],
		]);
		const [model, failed] = named(traced.fake, "model call");
		expect(Number(model!.endTimeUnixNano) - Number(model!.startTimeUnixNano)).toBeCloseTo(5e6, -5);
		expect([model?.attributes["nexus.agent"], failed?.status.code]).toEqual(["main", 2]);
		const sent = traced.fake.bodies.join();
		for (const words of ["my secret prompt", "secret words", "private result"]) expect(sent).not.toContain(words);
		expect(sent).not.toContain(readToken(dataPaths(traced.daemon.data)));
	});

	it("prompts, arguments and results are in it when they are asked for; the endpoint may come from the environment", async () => {
		const { fake, daemon } = await place({}, { OTEL_EXPORTER_OTLP_ENDPOINT: "$URL/" });
		await answered(daemon, "hello");
		await daemon.close();
		expect(named(fake, "run")).toHaveLength(1);
		expect(tracingConfig({ arguments: true }, {})).toBeUndefined();
		expect(tracingConfig({ endpoint: "http://a" }, { OTEL_EXPORTER_OTLP_ENDPOINT: "http://b" })).toEqual({
			endpoint: "http://a",
		});

		vi.unstubAllEnvs();
		const asked = await place({ arguments: true });
		await answered(asked.daemon, "my prompt");
		await asked.daemon.close();
		const sent = asked.fake.bodies.join();
		for (const words of ["my prompt", "secret words", "private result"]) expect(sent).toContain(words);
	});

	it("a receiver that does not answer holds up neither a run nor the end for long", async () => {
		const { fake, daemon } = await place({ flushMs: 50 });
		fake.isSilent = true;
		await answered(daemon, "hello");
		await daemon.close();
		expect(fake.spans).toEqual([]);
		expect(daemon.state).toBe("STOPPED");
	});

	it("a delivery is a span below its run, once it has ended", async () => {
		const fake = await createOtlpFake();
		onTestFinished(() => fake.close());
		const row = {
			id: "d1",
			runId: "run_1",
			channel: "telegram",
			account: "main",
			target: { to: "1" },
			mode: "stream",
			state: "failed",
			cursor: 0,
			createdAt: 2000,
			updatedAt: 3000,
			endedAt: 2500,
			messages: [],
		} as unknown as Delivery;
		const outbound = { deliveries: async () => [row], settled: async () => row };
		const tracing = await openTracing(
			{ endpoint: fake.url },
			{ outbound: () => outbound, version: "0", log: silentLog },
		);
		const turn = {
			runId: "run_1",
			session: "s",
			engine: "e",
			status: "failed",
			reason: "timeout",
			error: { code: "timeout", message: "words" },
			startedAt: 1000,
			endedAt: 2000,
			usage: { input: 1, output: 1 },
			messages: [],
			toolCalls: [],
		} as unknown as Turn;
		tracing.settled(turn, "0af7651916cd43dd8448eb211c80319c");
		await tracing.close();
		const [run] = named(fake, "run");
		expect(run).toMatchObject({
			status: { code: 2, message: "timeout" },
			startTimeUnixNano: "1000000000",
			endTimeUnixNano: "2000000000",
		});
		expect(named(fake, "delivery")).toMatchObject([
			{
				parentSpanId: run?.spanId,
				startTimeUnixNano: "2000000000",
				endTimeUnixNano: "2500000000",
				status: { code: 2, message: "failed" },
				attributes: { "nexus.channel": "telegram" },
			},
		]);
		expect(fake.bodies.join()).not.toContain("words");
	});

	it("its libraries are loaded with an endpoint only", () => {
		for (const file of globSync("packages/daemon/src/runtime/**/*.ts")) {
			const source = readFileSync(file, "utf8");
			if (file.endsWith("/otlp.ts")) continue;
			expect(source, file).not.toContain('"@opentelemetry');
			expect(source.match(/^import (?!type)[^;]*?"\.\/otlp\.ts";/gm) ?? [], file).toEqual([]);
		}
	});
});

describe("A23: metrics of runs", () => {
	it("tools and approvals are counted", async () => {
		const { daemon } = await place({});
		await answered(daemon, "hello");
		const lines = (await (await call(daemon, "/metrics")).text()).split("\n");
		for (const line of [
			'nexus_tools_total{tool="bash",outcome="completed"} 1',
			'nexus_tools_total{tool="read",outcome="failed"} 1',
			'nexus_approvals_total{state="approved"} 0',
		])
			expect(lines).toContain(line);
	});

	it("labels are bounded, approvals are counted by what became of them", () => {
		const counts = new RunCounts();
		const tool = (name: string, fields: object): EngineEvent =>
			({ type: "tool", callId: name, name, ...fields }) as EngineEvent;
		for (let index = 0; index < 300; index++) counts.took("r", tool(`t${index}`, { status: "completed" }), 1);
		counts.took("r", tool("not a name\n", { status: "failed" }), 1);
		expect(counts.tools.size).toBe(101);
		expect(counts.tools.get("other")).toMatchObject({ completed: 200, failed: 1 });
		for (const [id, state] of [
			["A", "pending"],
			["A", "denied"],
			["A", "denied"],
			["B", "expired"],
		])
			counts.took("r", tool("t1", { status: "progress", asking: { ...asking, id, state } }), 1);
		expect(counts.approvals).toEqual({ approved: 0, denied: 1, expired: 1, withdrawn: 0 });
		counts.took("r", tool("t2", { status: "started" }), 10);
		counts.took("r", tool("t2", { status: "completed" }), 35);
		expect(counts.tools.get("t2")).toEqual({ completed: 2, failed: 0, ms: 25 });
	});
});
