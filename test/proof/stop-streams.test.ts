/** SIGTERM while streams of every close mode are open: each ends as its mode says, and the next daemon agrees with what clients read. */

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ScenarioJobState, type StreamScenarioResponse } from "../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import type { SubscribeAppMessagesResponse } from "../../packages/client/src/gen/nexus/runtime/v1/app_pb.ts";
import type { ExportAuditEventsResponse } from "../../packages/client/src/gen/nexus/runtime/v1/audit_pb.ts";
import { ReasonCode } from "../../packages/client/src/gen/nexus/runtime/v1/common_pb.ts";
import { WorkflowNodeKind, WorkflowState } from "../../packages/client/src/gen/nexus/runtime/v1/workflow_pb.ts";
import { type CloseMode, STREAM_PROCEDURES } from "../../packages/protocol/src/protocol.ts";
import { type Ended, readStream, statusOf } from "../edge/grpc/kit.ts";
import { atEffort, effort, FULL_EFFORT } from "../effort.ts";
import { removeFolder } from "../runtime/folder.ts";
import { until } from "../until.ts";
import { addApps, type Clients, clientsOf, type RuntimeProcess, runtimeIn, speechOf, textOf } from "./runtime.ts";

const STREAMS = atEffort(500, 60);
const PER_CONNECTION = 50;
/** Jobs of one application that run at a time. */
const PLACES = 4;
const STOP_DEADLINE_MS = effort >= FULL_EFFORT ? 8000 : 2000;
/** An export has to be longer than the buffers hold while it is not read. */
const AUDITED_RUNS = 250;
const STOPPED = { code: "Canceled", reason: "REASON_CODE_STOPPING" };

interface Opened {
	procedure: keyof typeof STREAM_PROCEDURES;
	hasBegun: boolean;
	ended: Promise<Ended<unknown>>;
	/** Checks that what it read agrees with what the next daemon has on record. */
	resume?(clients: Clients): Promise<void>;
	/** For mode A: the run, and the reason with which it has to end. */
	wanted?: ReasonCode;
}

const folder = mkdtempSync(join(tmpdir(), "nexus-stop-"));
let daemon: RuntimeProcess;
const opened: Opened[] = [];
const endedAt: number[] = [];
const stopping = Promise.withResolvers<void>();
let stoppedMs = 0;
let endedByItself = false;

const modeOf = ({ procedure }: Opened): CloseMode => STREAM_PROCEDURES[procedure].closes;

function open<Message>(
	procedure: string,
	stream: (begin: { onHeader(): void }) => AsyncIterable<Message>,
	fields: Partial<Opened> & { seen?(message: Message): void } = {},
): Opened {
	const { seen, ...rest } = fields;
	const one: Opened = {
		procedure: (procedure.includes("/grpc.") ? procedure.slice(1) : `nexus.runtime.v1.${procedure}`) as never,
		hasBegun: false,
		ended: Promise.resolve({ messages: [] }),
		...rest,
	};
	const begin = () => {
		one.hasBegun = true;
	};
	one.ended = readStream(stream({ onHeader: begin }), (message) => {
		begin();
		seen?.(message);
	}).finally(() => void endedAt.push(performance.now()));
	opened.push(one);
	return one;
}

const words = (events: readonly StreamScenarioResponse[]): string => events.map(({ textDelta }) => textDelta).join("");
const bytes = (events: readonly StreamScenarioResponse[]): string =>
	Buffer.concat(events.map(({ audioChunk }) => audioChunk)).toString("base64");

/** Mode A. Every client, cut off or not, reads on after its last event: together that is the run's log. */
function openRun(
	{ ai }: Clients,
	scenario: ReturnType<typeof textOf> | ReturnType<typeof speechOf>,
	wanted: ReasonCode,
) {
	const one = open<StreamScenarioResponse>(
		"RuntimeAiService/StreamScenario",
		(begin) => ai.streamScenario({ scenario }, begin),
		{
			wanted,
			async resume(clients) {
				const { messages: seen } = (await one.ended) as Ended<StreamScenarioResponse>;
				const { runId } = seen[0]!;
				const parts = seen.filter(({ done }) => !done);
				const rest = await readStream(clients.ai.streamScenario({ runId, after: parts.at(-1)?.sequence ?? 0n }));
				const whole = await readStream(clients.ai.streamScenario({ runId }));
				expect([rest.error, whole.error]).toEqual([undefined, undefined]);
				expect(words([...parts, ...rest.messages])).toBe(words(whole.messages));
				expect(bytes([...parts, ...rest.messages])).toBe(bytes(whole.messages));
				const terminal = whole.messages.at(-1)!;
				expect(terminal).toMatchObject({ done: true, reasonCode: wanted });
				const told = seen.find(({ done }) => done);
				if (told) expect(told.reasonCode).toBe(terminal.reasonCode);
			},
		},
	);
	return one;
}

/** Mode B. The first jobs never end by themselves and hold every place; the others wait behind them. */
async function openJob({ ai }: Clients, prompt: string) {
	const { job } = await ai.submitScenarioJob({ scenario: textOf(prompt, { appId: "jobs" }) });
	const { jobId } = job!;
	const isEndless = prompt.includes("stall");
	open("RuntimeAiService/SubscribeScenarioJobEvents", (begin) => ai.subscribeScenarioJobEvents({ jobId }, begin), {
		async resume(clients) {
			const { messages, error } = await readStream(clients.ai.subscribeScenarioJobEvents({ jobId }));
			expect(error).toBeUndefined();
			const { state, reasonCode } = messages.at(-1)!.job!;
			if (isEndless) expect([state, reasonCode]).toEqual([ScenarioJobState.FAILED, ReasonCode.STOPPING]);
			else expect([jobId, state]).toEqual([jobId, ScenarioJobState.COMPLETED]);
		},
	});
}

/** As with jobs: those that come later wait, and are done by the next daemon. */
async function openWorkflow({ workflows }: Clients, isEndless: boolean) {
	const prompt = `/demo tokens=30 rate=400 ${isEndless ? "stall_after=10" : ""}`;
	const nodes = [
		{ nodeId: "first", kind: WorkflowNodeKind.CONTROL_NOOP },
		{ nodeId: "call", kind: WorkflowNodeKind.AI_STREAM, dependsOn: ["first"], config: { prompt } },
	];
	const { workflow } = await workflows.submitWorkflow({ appId: "flows", definition: { name: "stop", nodes } });
	const { workflowId } = workflow!;
	open(
		"RuntimeWorkflowService/SubscribeWorkflowEvents",
		(begin) => workflows.subscribeWorkflowEvents({ workflowId }, begin),
		{
			async resume(clients) {
				const { messages, error } = await readStream(clients.workflows.subscribeWorkflowEvents({ workflowId }));
				expect(error).toBeUndefined();
				const { state, nodes: found } = messages.at(-1)!.workflow!;
				expect([workflowId, state]).toEqual([workflowId, isEndless ? WorkflowState.FAILED : WorkflowState.COMPLETED]);
				const states = Object.fromEntries(found.map((node) => [node.nodeId, node]));
				expect(states.first).toMatchObject({ state: WorkflowState.COMPLETED, attempt: 1, afterCrash: false });
				expect(states.call!.attempt).toBe(1);
			},
		},
	);
}

/** Mode C. No client reads before the daemon logs that it stops. */
function openExport({ audit }: Clients) {
	const one = open<ExportAuditEventsResponse>("RuntimeAuditService/ExportAuditEvents", (begin) =>
		(async function* () {
			const chunks = audit.exportAuditEvents({}, begin)[Symbol.asyncIterator]();
			const first = await chunks.next();
			one.hasBegun = true;
			await stopping.promise;
			if (!first.done) yield first.value;
			for (let next = await chunks.next(); !next.done; next = await chunks.next()) yield next.value;
		})(),
	);
}

/** Mode D: one of each. */
async function openSubscriptions(clients: Clients) {
	const { audit, accounts, memory, agents, apps, local, realtime, health } = clients;
	open("RuntimeAuditService/SubscribeRuntimeHealthEvents", (begin) => audit.subscribeRuntimeHealthEvents({}, begin));
	open("RuntimeAuditService/SubscribeAIProviderHealthEvents", (begin) =>
		audit.subscribeAIProviderHealthEvents({}, begin),
	);
	open("RuntimeAccountService/SubscribeAccountSessionEvents", (begin) =>
		accounts.subscribeAccountSessionEvents({}, begin),
	);
	open("RuntimeMemoryService/SubscribeMemoryEvents", (begin) => memory.subscribeMemoryEvents({ after: 0n }, begin));
	open("RuntimeAgentService/SubscribeAgentEvents", (begin) => agents.subscribeAgentEvents({}, begin));
	open("RuntimeLocalService/WatchLocalTransfers", (begin) => local.watchLocalTransfers({ appId: "proof" }, begin));
	open("/grpc.health.v1.Health/Watch", (begin) => health.watch({}, begin), {
		seen: ({ status }) => void (status !== 1 && stopping.resolve()),
	});
	const { realtimeSessionId } = await realtime.openRealtimeSession({ appId: "proof" });
	open("RuntimeRealtimeService/ReadRealtimeEvents", (begin) =>
		realtime.readRealtimeEvents({ realtimeSessionId, after: 0n }, begin),
	);
	const messages = open<SubscribeAppMessagesResponse>(
		"RuntimeAppService/SubscribeAppMessages",
		(begin) => apps.subscribeAppMessages({ appId: "inbox", after: 0n }, begin),
		{
			async resume(next) {
				const seen = ((await messages.ended) as Ended<SubscribeAppMessagesResponse>).messages;
				const abort = new AbortController();
				const after = seen.at(-1)?.sequence ?? 0n;
				const rest = await readStream(
					next.apps.subscribeAppMessages({ appId: "inbox", after }, { signal: abort.signal }),
					({ message }) => message?.messageType === "last" && abort.abort(),
				);
				const types = [...seen, ...rest.messages].map(({ message }) => message!.messageType);
				expect(types).toEqual(["before", "last"]);
			},
		},
	);
}

const send = ({ apps }: Clients, messageType: string) =>
	apps.sendAppMessage({ fromAppId: "proof", toAppId: "inbox", messageType, payload: Buffer.from("x") });

/** One round of streams for one connection. */
async function openRound(round: number): Promise<void> {
	const clients = clientsOf(daemon.grpc);
	await openSubscriptions(clients);
	// It ends while the daemon drains; the next ones cannot.
	openRun(clients, textOf(`/demo tokens=12 rate=30 seed=${round}`), ReasonCode.UNSPECIFIED);
	for (let n = 0; n < 6; n++)
		openRun(clients, textOf(`/demo tokens=900000 rate=50 seed=${round * 10 + n}`), ReasonCode.STOPPING);
	openRun(clients, textOf("/demo tokens=90 rate=400 stall_after=40"), ReasonCode.STOPPING);
	openRun(clients, speechOf("a word ".repeat(20)), ReasonCode.UNSPECIFIED);
	for (let n = 0; n < 2; n++) openExport(clients);
	await openWorkflow(clients, round < PLACES);
	for (let n = 0; opened.length < Math.min(STREAMS, (round + 1) * PER_CONNECTION); n++)
		await openJob(clients, `/demo tokens=30 rate=400 ${round === 0 && n < PLACES ? "stall_after=10" : ""}`);
}

beforeAll(async () => {
	daemon = await runtimeIn(
		folder,
		`stopDeadlineMs: ${STOP_DEADLINE_MS}\nbroker: { abortGraceMs: 300 }\njobs: { queuedPerAppMax: 1000 }\n`,
	);
	await daemon.start();
	await addApps(daemon.url, "proof", "inbox");
	const clients = clientsOf(daemon.grpc);
	await Promise.all(
		Array.from({ length: AUDITED_RUNS }, () =>
			clients.ai.executeScenario({ scenario: textOf("/demo tokens=1 rate=0") }),
		),
	);
	for (let round = 0; opened.length < STREAMS; round++) await openRound(round);
	await send(clients, "before");
	await until("every stream is open", () => opened.every(({ hasBegun }) => hasBegun));
	const begun = performance.now();
	endedByItself = !(await daemon.stop());
	await Promise.all(opened.map(({ ended }) => ended));
	stoppedMs = Math.max(...endedAt) - begun;
});

afterAll(async () => {
	await daemon?.stop();
	removeFolder(folder);
});

const inMode = (mode: CloseMode) => opened.filter((one) => modeOf(one) === mode);
const tally = async (mode: CloseMode) => {
	const counts = new Map<string, number>();
	for (const { ended } of inMode(mode)) {
		const { error } = await ended;
		const status = error ? Code[error.code]! : "OK";
		counts.set(status, (counts.get(status) ?? 0) + 1);
	}
	return Object.fromEntries(counts);
};

describe(`proof: SIGTERM with ${STREAMS} streams`, () => {
	it("every streaming procedure was open, and the daemon stopped by itself within its deadline", async () => {
		console.log(
			`SIGTERM with ${opened.length} streams: all ended after ${Math.round(stoppedMs)} of ${STOP_DEADLINE_MS} ms`,
			JSON.stringify({ A: await tally("A"), B: await tally("B"), C: await tally("C"), D: await tally("D") }),
		);
		expect(new Set(opened.map(({ procedure }) => procedure))).toEqual(new Set(Object.keys(STREAM_PROCEDURES)));
		expect(endedByItself).toBe(true);
		// A machine that does much else is later by itself.
		expect(stoppedMs).toBeLessThan(STOP_DEADLINE_MS * (effort >= FULL_EFFORT ? 1 : 5));
	});

	it("R4-23, R4-46, R4-66, Z5: modes B and D are CANCELLED, every one", async () => {
		for (const one of [...inMode("B"), ...inMode("D")]) {
			const { error } = await one.ended;
			expect([one.procedure, statusOf(error)]).toEqual([one.procedure, STOPPED]);
		}
	});

	it("Z6: mode A ends with its true terminal and OK, or is CANCELLED without one", async () => {
		for (const { ended, wanted } of inMode("A")) {
			const { messages, error } = (await ended) as Ended<StreamScenarioResponse>;
			const terminals = messages.filter(({ done }) => done);
			if (error) expect([statusOf(error), terminals]).toEqual([STOPPED, []]);
			else expect(terminals.map(({ reasonCode }) => reasonCode)).toEqual([wanted]);
			if (!error) expect(messages.at(-1)?.done).toBe(true);
		}
		const endings = await Promise.all(inMode("A").map(async ({ ended, wanted }) => [wanted, (await ended).error]));
		// There was time for what ends by itself.
		for (const [wanted, error] of endings) if (wanted === ReasonCode.UNSPECIFIED) expect(error).toBeUndefined();
	});

	it("Z6: mode C ends with eof and OK, or is CANCELLED without one", async () => {
		for (const { ended } of inMode("C")) {
			const { messages, error } = (await ended) as Ended<ExportAuditEventsResponse>;
			if (error) expect([statusOf(error), messages.some(({ eof }) => eof)]).toEqual([STOPPED, false]);
			else expect(messages.at(-1)?.eof).toBe(true);
		}
	});

	it("R4-50, R4-72: the next daemon gives each reader that comes back the rest, and the truth", async () => {
		await daemon.start();
		const clients = clientsOf(daemon.grpc);
		await send(clients, "last");
		await Promise.all(opened.map(async ({ resume }) => resume?.(clients)));
		expect((await clients.health.check({})).status).toBe(1);
	});
});
