/** Kill -9, again and again, with jobs, workflows, scenario runs, messages of applications and subscriptions under way. */

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
	type ScenarioJob,
	ScenarioJobEventType,
	ScenarioJobState,
	type StreamScenarioResponse,
	type SubscribeScenarioJobEventsResponse,
} from "../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import type { SubscribeAppMessagesResponse } from "../../packages/client/src/gen/nexus/runtime/v1/app_pb.ts";
import type { AuditEvent } from "../../packages/client/src/gen/nexus/runtime/v1/audit_pb.ts";
import {
	type SubscribeWorkflowEventsResponse,
	type Workflow,
	WorkflowEventType,
	WorkflowNodeKind,
	type WorkflowNodeSchema,
	WorkflowState,
} from "../../packages/client/src/gen/nexus/runtime/v1/workflow_pb.ts";
import {
	ConnectError,
	createRuntime,
	ReasonCode,
	type Runtime,
	reasonCodeOf,
} from "../../packages/client/src/runtime/runtime-client.ts";
import { readStream } from "../edge/grpc/kit.ts";
import { effort, FULL_EFFORT } from "../effort.ts";
import { removeFolder } from "../runtime/folder.ts";
import { until } from "../until.ts";
import { ANSWER, type CountingProvider, countingProvider, HANGS } from "./calls.ts";
import { TOKEN } from "./daemon.ts";
import { seededRandom } from "./random.ts";
import { addApps, clientsOf, type RuntimeProcess, runtimeIn, textOf } from "./runtime.ts";

const KILLS = effort >= FULL_EFFORT ? 30 : 2;
/** The most that may be asked for. */
const RETRIES = 10;
/** A kill comes with one of these calls of a life. */
const CALLS = { low: 1, high: 9 };
const ROOM = "jobs: { runningMax: 1000, runningPerAppMax: 12, backoffMsMax: 1000, progressMs: 10 }";
const APPS = ["one", "two"];

const random = seededRandom();
const folder = mkdtempSync(join(tmpdir(), "nexus-kill9-work-"));
let provider: CountingProvider;
let daemon: RuntimeProcess;
/** Reads on over every kill, and repeats a request with the same key when it may not have arrived. */
let runtime: Runtime;
let lives = 0;
/** One after the other, also those of a life behind those of the life before. */
let sending = Promise.resolve();

/** The events that a reader gets over all lives. */
interface Followed<Event> {
	events: Event[];
	ended: Promise<void>;
}

function follow<Event>(stream: AsyncIterable<Event>): Followed<Event> {
	const events: Event[] = [];
	const ended = (async () => {
		for await (const event of stream) events.push(event);
	})();
	ended.catch(() => {});
	return { events, ended };
}

interface Given<Event> {
	key: string;
	/** The mark in its prompt. */
	mark: string;
	/** Attempts that it may have. */
	attempts: number;
	/** Once the daemon has said so. */
	id?: string;
	reading?: Followed<Event>;
	/** Submits it once more with its key. */
	again(): Promise<string>;
}

const jobs: Given<SubscribeScenarioJobEventsResponse>[] = [];
const flows: Given<SubscribeWorkflowEventsResponse>[] = [];
const runs: Given<StreamScenarioResponse>[] = [];
const inboxes = new Map<string, Followed<SubscribeAppMessagesResponse>>();
/** Message types in the order in which they were sent, by recipient. */
const sent = new Map<string, string[]>();
const pending: Promise<unknown>[] = [];

/** To be waited for in the end. */
function keep(work: Promise<unknown>): void {
	work.catch(() => {});
	pending.push(work);
}

const asked = (mark: string, appId: string) => textOf(mark, { appId, connectorId: "counting" });

/** It may be killed in the middle of the request: the client asks again. */
const submit = (given: Given<never>, follow: (id: string) => void): void =>
	keep(
		given.again().then((id) => {
			given.id = id;
			follow(id);
		}),
	);

function submitJob(mark: string, attempts: number): void {
	const request = {
		scenario: asked(mark, random.shuffled(APPS)[0]!),
		idempotencyKey: `job ${mark}`,
		retryMaxAttempts: attempts,
		retryBackoffMs: 1,
	};
	const again = async () => (await runtime.ai.submitScenarioJob(request)).job!.jobId;
	const job: (typeof jobs)[number] = { key: request.idempotencyKey, mark, attempts, again };
	jobs.push(job);
	submit(job as never, (jobId) => {
		job.reading = follow(runtime.ai.subscribeScenarioJobEvents({ jobId, after: 0n }));
	});
}

function submitFlow(mark: string, attempts: number): void {
	const call = (nodeId: string, prompt: string, dependsOn: string[], retryMaxAttempts: number) => ({
		nodeId,
		kind: WorkflowNodeKind.AI_STREAM,
		dependsOn,
		retryMaxAttempts,
		retryBackoffMs: 1,
		config: { prompt, connector_id: "counting" },
	});
	const nodes: MessageInitShape<typeof WorkflowNodeSchema>[] = [
		{ nodeId: "first", kind: WorkflowNodeKind.TRANSFORM_TEMPLATE, config: { template: "the first" } },
		call("fast", `${mark} fast`, ["first"], 1),
		{
			nodeId: "script",
			kind: WorkflowNodeKind.TRANSFORM_SCRIPT,
			dependsOn: ["fast"],
			config: { code: "return { letters: inputs.fast.text.length }" },
		},
		call("slow", `${mark} ${HANGS}`, ["script"], attempts),
		{ nodeId: "last", kind: WorkflowNodeKind.CONTROL_NOOP, dependsOn: ["slow"] },
	];
	const request = { appId: APPS[0]!, definition: { name: mark, nodes }, idempotencyKey: `flow ${mark}` };
	const again = async () => (await runtime.workflows.submitWorkflow(request)).workflow!.workflowId;
	const flow: (typeof flows)[number] = { key: request.idempotencyKey, mark, attempts, again };
	flows.push(flow);
	submit(flow as never, (workflowId) => {
		flow.reading = follow(runtime.workflows.subscribeWorkflowEvents({ workflowId, after: 0n }));
	});
}

function startRun(mark: string): void {
	const request = { scenario: asked(mark, "one"), idempotencyKey: `run ${mark}` };
	const reading = follow(runtime.ai.streamScenario(request));
	const again = async () => {
		const { messages } = await readStream(clientsOf(daemon.grpc).ai.streamScenario(request));
		return messages.at(-1)!.runId;
	};
	runs.push({ key: request.idempotencyKey, mark, attempts: 1, reading, again });
	keep(reading.ended);
}

async function sendMessages(life: number): Promise<void> {
	for (const to of APPS)
		for (let n = 0; n < 3; n++) {
			const messageType = `${life}.${n}`;
			sent.set(to, [...(sent.get(to) ?? []), messageType]);
			// In their order: the next is sent when this one has arrived.
			const message = {
				fromAppId: "sender",
				toAppId: to,
				messageType,
				payload: Buffer.from(messageType),
				idempotencyKey: `message ${to} ${messageType}`,
			};
			// The work left by earlier lives takes more than a second.
			await until(`${messageType} may be sent`, () =>
				runtime.apps.sendAppMessage(message).then(
					() => true,
					(cause: unknown) => {
						if (reasonCodeOf(ConnectError.from(cause)) !== ReasonCode.APP_MESSAGE_RATE_LIMITED) throw cause;
						return false;
					},
				),
			);
		}
}

/** One life: work is submitted, and with a certain call of the provider the daemon dies. */
async function live(life: number): Promise<void> {
	const before = provider.total;
	await start();
	submitJob(`job ${life} fast`, 1);
	submitJob(`job ${life} ${HANGS} once`, 1);
	submitJob(`job ${life} ${HANGS} retried`, RETRIES);
	submitFlow(`flow ${life} once`, 1);
	submitFlow(`flow ${life} retried`, RETRIES);
	startRun(`run ${life} fast`);
	startRun(`run ${life} ${HANGS}`);
	sending = sending.then(() => sendMessages(life));
	keep(sending);
	const last = before + random.between(CALLS.low, CALLS.high);
	await until(`call ${last} in life ${life}`, () => provider.total >= last);
	expect(await daemon.kill()).toBe(true);
}

async function start(): Promise<void> {
	lives++;
	await daemon.start();
}

beforeAll(async () => {
	console.log(`kill -9 proof of jobs and workflows: NEXUS_SEED=${random.seed}`);
	provider = await countingProvider();
	daemon = await runtimeIn(folder, `connectors: { allowLoopback: true }\n${ROOM}\n`);
	runtime = createRuntime({
		transport: createGrpcTransport({ baseUrl: daemon.grpc }),
		token: TOKEN,
		limits: { retryFirstMs: 20, retryMaxMs: 100, giveUpMs: 600_000 },
	});
	await start();
	await addApps(daemon.url, "sender", ...APPS);
	await runtime.connectors.createConnector({
		connectorId: "counting",
		providerType: "openai-compatible",
		endpoint: provider.endpoint,
		apiKey: "sk-0123456789",
		defaultModelId: "m1",
	});
	for (const appId of APPS) inboxes.set(appId, follow(runtime.apps.subscribeAppMessages({ appId, after: 0n })));
	await daemon.kill();
});

// A hook each, so that each has its own time limit.
for (let life = 1; life <= KILLS; life++) beforeAll(() => live(life));

beforeAll(async () => {
	provider.release();
	await start();
	await Promise.all(pending);
	await Promise.all([...jobs, ...flows].map(({ reading }) => reading!.ended));
	await until("every message has arrived", () =>
		APPS.every((app) => inboxes.get(app)!.events.length >= (sent.get(app)?.length ?? 0)),
	);
});

afterAll(async () => {
	runtime?.close();
	await daemon?.stop();
	provider?.close();
	removeFolder(folder);
});

const isOver = ({ state }: ScenarioJob) => state >= ScenarioJobState.COMPLETED;
const callsOf = (mark: string) => provider.calls.get(mark) ?? 0;
const withoutText = (reading: Followed<SubscribeScenarioJobEventsResponse>) =>
	reading.events.map(({ sequence, eventType, job }) => [
		sequence,
		eventType,
		job!.state,
		job!.attempt,
		job!.afterCrash,
	]);

async function allJobs(): Promise<ScenarioJob[]> {
	const found: ScenarioJob[] = [];
	for (let pageToken = ""; ; ) {
		const page = await runtime.ai.listScenarioJobs({ pageSize: 100, pageToken });
		found.push(...page.jobs);
		pageToken = page.nextPageToken;
		if (pageToken === "") return found;
	}
}

async function allAudit(): Promise<AuditEvent[]> {
	const found: AuditEvent[] = [];
	for (let before: bigint | undefined; ; ) {
		const page = await runtime.audit.listAuditEvents({ pageSize: 500, before });
		found.push(...page.events);
		before = page.nextBefore;
		if (before === undefined) return found;
	}
}

describe(`proof: ${KILLS} kills of work`, () => {
	it("nothing is lost and nothing is there twice: every job is one, and over", async () => {
		const found = await allJobs();
		const own = found.filter(({ workflowId }) => workflowId === "");
		expect(own.map(({ jobId }) => jobId).toSorted()).toEqual(jobs.map(({ id }) => id!).toSorted());
		expect(found.filter((job) => !isOver(job))).toEqual([]);
		const { workflows } = await runtime.workflows.listWorkflows({ pageSize: 200 });
		expect(workflows.map(({ workflowId }) => workflowId).toSorted()).toEqual(flows.map(({ id }) => id!).toSorted());
	});

	it("Z18: a job is asked of its provider once for each attempt, and further attempts are permitted and flagged", async () => {
		let afterCrash = 0;
		for (const { id, mark, attempts, reading } of jobs) {
			const { job } = reading!.events.at(-1)!;
			const { state, attempt, reasonCode } = job!;
			expect(callsOf(mark), mark).toBeLessThanOrEqual(attempt);
			expect(attempt, mark).toBeLessThanOrEqual(attempts);
			if (state === ScenarioJobState.COMPLETED) expect(job!.text, mark).toBe(ANSWER.join(""));
			else expect([id, state, reasonCode], mark).toEqual([id, ScenarioJobState.FAILED, ReasonCode.CRASHED]);
			if (attempts > 1) expect(state, mark).toBe(ScenarioJobState.COMPLETED);
			for (const event of reading!.events)
				if (event.eventType === ScenarioJobEventType.RUNNING && event.job!.attempt > 1) {
					afterCrash++;
					expect(event.job!.afterCrash, mark).toBe(true);
				}
		}
		console.log(`jobs: ${jobs.length}, attempts after a crash: ${afterCrash}, calls in all: ${provider.total}`);
		expect(afterCrash).toBeGreaterThan(0);
	});

	it("R4-50: a reader that followed a job over the kills has read its log, once and whole", async () => {
		for (const { id, reading, mark } of jobs) {
			const fresh = follow(runtime.ai.subscribeScenarioJobEvents({ jobId: id!, after: 0n }));
			await fresh.ended;
			expect(withoutText(reading!), mark).toEqual(withoutText(fresh));
			expect(fresh.events.map(({ sequence }) => sequence)).toEqual(fresh.events.map((_, at) => BigInt(at + 1)));
			expect(
				fresh.events.filter(({ job }) => isOver(job!)),
				mark,
			).toHaveLength(1);
		}
	});

	it("every workflow is over; a node that completed is never done again, one that was cut is flagged or crashed", async () => {
		for (const { id, mark, attempts, reading } of flows) {
			const events = reading!.events;
			const workflow = events.at(-1)!.workflow as Workflow;
			const nodes = Object.fromEntries(workflow.nodes.map((node) => [node.nodeId, node]));
			expect([WorkflowState.COMPLETED, WorkflowState.FAILED], mark).toContain(workflow.state);
			expect(workflow.workflowId).toBe(id);
			for (const { nodeId, attempt, state, afterCrash } of workflow.nodes) {
				const completed = events.filter(
					(event) => event.nodeId === nodeId && event.eventType === WorkflowEventType.NODE_COMPLETED,
				);
				expect([nodeId, completed.length], mark).toEqual([nodeId, state === WorkflowState.COMPLETED ? 1 : 0]);
				if (attempt > 1) expect([nodeId, afterCrash], mark).toEqual([nodeId, true]);
			}
			expect(callsOf(`${mark} fast`), mark).toBeLessThanOrEqual(1);
			expect(callsOf(`${mark} ${HANGS}`), mark).toBeLessThanOrEqual(nodes.slow!.attempt);
			expect(nodes.slow!.attempt, mark).toBeLessThanOrEqual(attempts);
			const failed = workflow.nodes.filter(({ state }) => state === WorkflowState.FAILED);
			for (const { reasonCode } of failed) expect(reasonCode, mark).toBe(ReasonCode.CRASHED);
			if (nodes.fast!.state === WorkflowState.COMPLETED && attempts > 1)
				expect(workflow.state, mark).toBe(WorkflowState.COMPLETED);
			expect(
				events.map(({ sequence }) => sequence),
				mark,
			).toEqual(events.map((_, at) => BigInt(at + 1)));
		}
	});

	it("R4-58: a scenario run is executed once; its reader has what was said before the kill, and then the terminal", async () => {
		for (const { mark, reading } of runs) {
			expect(callsOf(mark), mark).toBeLessThanOrEqual(1);
			const terminal = reading!.events.at(-1)!;
			const said = reading!.events.map(({ textDelta }) => textDelta).join("");
			expect(terminal.done, mark).toBe(true);
			expect(terminal.usage, mark).toBeDefined();
			if (terminal.reasonCode === ReasonCode.UNSPECIFIED) expect(said, mark).toBe(ANSWER.join(""));
			else expect(terminal.reasonCode, mark).toBe(ReasonCode.CRASHED);
			expect(ANSWER.join("").startsWith(said), mark).toBe(true);
			const fresh = follow(runtime.ai.streamScenario({ runId: terminal.runId }));
			await fresh.ended;
			expect(fresh.events.map(({ textDelta }) => textDelta).join(""), mark).toBe(said);
		}
	});

	it("Z22: messages between applications arrive once, in their order", () => {
		for (const app of APPS)
			expect(inboxes.get(app)!.events.map(({ message }) => message!.messageType)).toEqual(sent.get(app));
	});

	it("Z15: the same keys give the same ids, and no provider is called again", async () => {
		const calls = provider.total;
		for (const { id, again } of [...jobs, ...flows]) expect(await again()).toBe(id);
		for (const { reading, again } of runs) expect(await again()).toBe(reading!.events.at(-1)!.runId);
		expect(provider.total).toBe(calls);
	});

	it("Z28: the audit log has exactly what happened", async () => {
		const events = await allAudit();
		const rows = (domain: string, operation?: string) =>
			events.filter((event) => event.domain === domain && (operation === undefined || event.operation === operation));
		const byId = (list: readonly AuditEvent[], id: string) => {
			const found = new Map<string, string[]>();
			for (const { payload, operation } of list) {
				const of = payload?.[id] as string;
				found.set(of, [operation, ...(found.get(of) ?? [])]);
			}
			return found;
		};
		expect(rows("configuration", "started")).toHaveLength(lives);
		expect(rows("connectors")).toHaveLength(1);
		const told = byId(rows("jobs"), "job_id");
		const names = { [ScenarioJobState.COMPLETED]: "completed", [ScenarioJobState.FAILED]: "failed" } as Record<
			number,
			string
		>;
		for (const { jobId, state } of await allJobs())
			expect([jobId, told.get(jobId)]).toEqual([jobId, ["submitted", names[state]]]);
		expect(told.size).toBe((await allJobs()).length);
		const flowRows = byId(rows("workflows"), "workflow_id");
		expect([...flowRows.keys()].toSorted()).toEqual(flows.map(({ id }) => id!).toSorted());
		for (const operations of flowRows.values()) expect(operations).toHaveLength(2);
		// Every run that began has its end, also those of jobs: a run is one call.
		const scenario = byId(rows("scenarios"), "run_id");
		for (const [run, operations] of scenario) expect([run, operations]).toEqual([run, ["started", expect.any(String)]]);
		for (const { reading } of runs) expect(scenario.has(reading!.events.at(-1)!.runId)).toBe(true);
		const probes = callsOf("/v1/models");
		expect(provider.total - probes).toBeLessThanOrEqual(scenario.size);
	});
});
