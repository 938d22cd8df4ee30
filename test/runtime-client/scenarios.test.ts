/** The three reader scenarios of the contract against a real daemon, with the TypeScript client and with plain grpcio in Python. */

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { SubscribeAccountSessionEventsResponseSchema } from "../../packages/client/src/gen/nexus/runtime/v1/account_pb.ts";
import {
	StreamScenarioResponseSchema,
	SubscribeScenarioJobEventsResponseSchema,
} from "../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import {
	Code,
	ConnectError,
	createRuntime,
	ReasonCode,
	type Runtime,
	reasonCodeOf,
} from "../../packages/client/src/runtime/runtime-client.ts";
import type { Daemon } from "../../packages/daemon/src/runtime/runtime.ts";
import { ownPort } from "../port.ts";
import { daemonForTest } from "../runtime/daemon.ts";
import { freshFolder, removeFolder } from "../runtime/folder.ts";
import { until } from "../until.ts";
import { cuttingProxy } from "./cutting-proxy.ts";
import {
	buildDescriptors,
	hasPython,
	itInPython,
	type Line,
	type Reading,
	readInPython,
	type Where,
} from "./python.ts";

const TOKEN = "a-token-of-the-reader-scenarios";
const folder = mkdtempSync(join(tmpdir(), "nexus-descriptors-"));
const descriptors = join(folder, "runtime.binpb");
beforeAll(() => void (hasPython && buildDescriptors(descriptors)));
afterAll(() => removeFolder(folder));

interface Ports {
	port?: number;
	grpc?: number;
	data?: string;
}

const start = ({ grpc = 0, ...options }: Ports = {}): Promise<Daemon> =>
	daemonForTest({ ...options, token: TOKEN, grpc: { port: grpc }, stopDeadlineMs: 2000 });

/** A short, fast answer of the demo engine. */
const PROMPT = "/demo tokens=80 rate=400 seed=7";

/** Takes long enough for a job to tell of its progress. */
const SLOW_PROMPT = "/demo tokens=60 rate=40 seed=7";
/** Does not end by itself. */
const ENDLESS_PROMPT = "/demo tokens=60 rate=400 stall_after=10";

const whereOf = (grpc: string): Where => ({ grpc, token: TOKEN, descriptors });

/** The example's commands. */
type Command = "text" | "job" | "accounts";

const scenario = (prompt: string, connectorId = "default") => ({
	head: { appId: "example", connectorId },
	spec: { case: "textGenerate" as const, value: { messages: [{ role: "user", text: prompt }] } },
});

/** The Python example's steps with the TypeScript client over gRPC: the same output. */
function readInTypeScript([command, prompt]: readonly [Command, string], { grpc }: Where, env: Env = {}): Reading {
	const runtime = createRuntime({ transport: createGrpcTransport({ baseUrl: grpc }), token: TOKEN });
	const lines: Line[] = [];
	for (const type of ["runtime.disconnected", "runtime.reconnected"] as const)
		runtime.on(type, (event) => lines.push({ ...event, ...("code" in event && { code: nameOf(event.code) }) }));
	const say = <Desc extends DescMessage>(schema: Desc, event: MessageShape<Desc>) =>
		void lines.push(toJson(schema, event, { useProtoFieldName: true }) as Line);
	const ended = play(runtime, command, prompt, env, say, lines).then(
		() => true,
		(cause: unknown) => {
			const error = ConnectError.from(cause);
			const reason = `REASON_CODE_${Object.entries(ReasonCode).find(([, code]) => code === reasonCodeOf(error))?.[0]}`;
			lines.push({ refused: nameOf(error.code), reason_code: reason, message: error.rawMessage });
			return false;
		},
	);
	return { lines, ended, stop: () => runtime.close() };
}

interface Env {
	NEXUS_CONNECTOR?: string;
}

/** As gRPC spells it. */
const nameOf = (code: Code): string =>
	code === Code.Canceled ? "CANCELLED" : Code[code].replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();

async function play(
	runtime: Runtime,
	command: Command,
	prompt: string,
	{ NEXUS_CONNECTOR }: Env,
	say: <Desc extends DescMessage>(schema: Desc, event: MessageShape<Desc>) => void,
	lines: Line[],
): Promise<void> {
	if (command === "text") {
		const stream = runtime.ai.streamScenario({ scenario: scenario(prompt, NEXUS_CONNECTOR) });
		for await (const event of stream) say(StreamScenarioResponseSchema, event);
	} else if (command === "job") {
		const { job } = await runtime.ai.submitScenarioJob({ scenario: scenario(prompt) });
		const stream = runtime.ai.subscribeScenarioJobEvents({ jobId: job!.jobId, after: 0n });
		for await (const event of stream) say(SubscribeScenarioJobEventsResponseSchema, event);
		lines.push({ result: (lines.at(-1) as { job: Line }).job });
	} else {
		const stream = runtime.accounts.subscribeAccountSessionEvents({});
		for await (const event of stream) say(SubscribeAccountSessionEventsResponseSchema, event);
	}
}

/** The page of a person who signs in is an account session, too. */
async function signIn(daemon: Daemon): Promise<void> {
	const code = daemon.signInUrl().split("#code=")[1];
	const headers = { "content-type": "application/json", origin: daemon.url };
	const { ok } = await fetch(`${daemon.url}/v1/sign-in`, { method: "POST", headers, body: JSON.stringify({ code }) });
	expect(ok).toBe(true);
}

/** Ids of all jobs. */
async function jobsOf({ url }: Daemon): Promise<string[]> {
	const runtime = createRuntime({ url, token: TOKEN });
	const { jobs } = await runtime.ai.listScenarioJobs({ appId: "example" });
	return jobs.map(({ jobId }) => jobId);
}

type Read = (args: readonly [Command, string], where: Where, env?: Env) => Reading;

const CLIENTS: readonly (readonly [name: string, test: typeof it | typeof itInPython, read: Read])[] = [
	["TypeScript", it, readInTypeScript],
	["Python", itInPython, readInPython],
];

const typesOf = (lines: readonly Line[]): unknown[] => lines.map(({ type }) => type);

describe.each(CLIENTS)("reader scenarios in %s", (_, test, read) => {
	test("K-STREAM-003: a text call: deltas, then a terminal with usage, then OK", async () => {
		const { grpc } = await start();
		const { lines, ended } = read(["text", PROMPT], whereOf(grpc!));
		expect(await ended, JSON.stringify(lines)).toBe(true);
		const terminal = lines.at(-1)!;
		expect(lines.length).toBeGreaterThan(2);
		for (const { done, text_delta: delta } of lines.slice(0, -1)) {
			expect(done).toBeUndefined();
			expect(delta).toMatch(/\S/);
		}
		expect(terminal).toMatchObject({ done: true, demo: true, usage: expect.anything() });
		expect(terminal.reason_code).toBeUndefined();
	});

	test("K-STREAM-002: what fails before the call is established is a status with a reason, and no event", async () => {
		const { grpc } = await start();
		const { lines, ended } = read(["text", PROMPT], whereOf(grpc!), { NEXUS_CONNECTOR: "nobody" });
		expect(await ended).toBe(false);
		expect(lines).toMatchObject([{ refused: "NOT_FOUND", reason_code: "REASON_CODE_AI_CONNECTOR_NOT_FOUND" }]);
	});

	test("R4-58: a call whose connection breaks is read on, and executed once", async () => {
		const { grpc } = await start();
		const proxy = await cuttingProxy(grpc!, 800);
		const { lines, ended } = read(["text", PROMPT], whereOf(proxy.url));
		expect(await ended, JSON.stringify(lines)).toBe(true);
		expect(proxy.cuts()).toBe(1);
		const events = lines.filter(({ type }) => type === undefined);
		expect(typesOf(lines).filter((type) => type !== undefined)).toEqual([
			"runtime.disconnected",
			"runtime.reconnected",
		]);
		expect(new Set(events.map(({ run_id: run }) => run)).size).toBe(1);
		const sequences = events.map(({ sequence }) => Number(sequence));
		expect(sequences).toEqual([...new Set(sequences)].toSorted((one, other) => one - other));
		const again = read(["text", PROMPT], whereOf(grpc!));
		await again.ended;
		const textOf = (all: readonly Line[]) => all.map(({ text_delta: delta = "" }) => String(delta)).join("");
		expect(textOf(events)).toBe(textOf(again.lines));
	});

	test("K-STREAM-010: a subscription survives a restart of the daemon, and waits for no terminal", async () => {
		const [port, grpcPort] = [await ownPort(), await ownPort()];
		const data = join(freshFolder(), "data");
		const first = await start({ port, grpc: grpcPort, data });
		await signIn(first);
		const { lines, stop } = read(["accounts", ""], whereOf(first.grpc!));
		onTestFinished(stop);
		await until("the current state", () => lines.length > 0);
		expect(lines[0]).toMatchObject({ account: { kind: "ACCOUNT_KIND_SIGN_IN" } });
		await first.close();
		await until("the cut", () => typesOf(lines).includes("runtime.disconnected"));
		expect(lines.find(({ type }) => type === "runtime.disconnected")).toMatchObject({ code: "CANCELLED" });
		await start({ port, grpc: grpcPort, data });
		await until(
			"the same state again",
			() => lines.at(-1)!.account !== undefined && typesOf(lines).includes("runtime.reconnected"),
		);
		expect((lines.at(-1)!.account as Line).account_id).toBe((lines[0]!.account as Line).account_id);
		stop();
	});

	test("K-STREAM-005, R4-69, R4-70: a job's events repeat; the newest snapshot counts; after the terminal the stream ends", async () => {
		const { grpc } = await start();
		const { lines, ended } = read(["job", SLOW_PROMPT], whereOf(grpc!));
		expect(await ended, JSON.stringify(lines)).toBe(true);
		const events = lines.slice(0, -1);
		const progress = events.filter(({ event_type: type }) => type === "SCENARIO_JOB_EVENT_TYPE_PROGRESS");
		expect(progress.length).toBeGreaterThan(1);
		expect(new Set(progress.map((event) => JSON.stringify(event.job))).size).toBe(progress.length);
		const states = events.map(({ job }) => (job as Line).state);
		expect(states.at(-1)).toBe("SCENARIO_JOB_STATE_COMPLETED");
		expect(states.slice(0, -1)).not.toContain("SCENARIO_JOB_STATE_COMPLETED");
		expect(lines.at(-1)).toMatchObject({
			result: { state: "SCENARIO_JOB_STATE_COMPLETED", text: expect.stringMatching(/\S/) },
		});
	});

	test("R4-72: a daemon that stops cuts a job's events; the subscription is rebuilt and finds the terminal", async () => {
		const [port, grpcPort] = [await ownPort(), await ownPort()];
		const data = join(freshFolder(), "data");
		const first = await start({ port, grpc: grpcPort, data });
		const { lines, ended } = read(["job", ENDLESS_PROMPT], whereOf(first.grpc!));
		await until("the job runs", () => lines.some(({ job }) => (job as Line)?.state === "SCENARIO_JOB_STATE_RUNNING"));
		await first.close();
		const second = await start({ port, grpc: grpcPort, data });
		expect(await ended, JSON.stringify(lines)).toBe(true);
		expect(lines.find(({ type }) => type === "runtime.disconnected")).toMatchObject({ code: "CANCELLED" });
		expect(typesOf(lines)).toContain("runtime.reconnected");
		const { result } = lines.at(-1) as { result: Line };
		expect(result.state).toMatch(/FAILED|CANCELED/);
		expect(await jobsOf(second)).toEqual([result.job_id]);
	});
});
