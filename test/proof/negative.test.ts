/** Must never happen (R4-73 to R4-77): a provider's fault as a status in mode A, and a consumer that goes by the types of events. */

import { mkdtempSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRouterTransport } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import {
	RuntimeAiService,
	ScenarioJobEventType,
	ScenarioJobState,
	type StreamScenarioResponse,
} from "../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import {
	RuntimeWorkflowService,
	WorkflowEventType,
	WorkflowState,
} from "../../packages/client/src/gen/nexus/runtime/v1/workflow_pb.ts";
import { createRuntime, lastOf, ReasonCode } from "../../packages/client/src/runtime/runtime-client.ts";
import { type Daemon, startDaemon } from "../../packages/daemon/src/runtime/runtime.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { readStream } from "../edge/grpc/kit.ts";
import { atEffort } from "../effort.ts";
import { removeFolder } from "../runtime/folder.ts";
import { until } from "../until.ts";
import { seededRandom } from "./random.ts";
import { type Clients, clientsOf, speechOf, textOf } from "./runtime.ts";

const OWNER_TOKEN = "the-owner's-token-of-this-proof";
const SHORT_MS = 400;
const SAID = "What was said before the fault, and is kept.";
const random = seededRandom();
const garbage = (length: number) => Buffer.from(Array.from({ length }, () => random.between(0, 255)));

const data = (value: unknown) => `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`;
const word = (content: unknown) =>
	data({
		id: "c",
		object: "chat.completion.chunk",
		created: 1,
		model: "m",
		choices: [{ index: 0, delta: { content } }],
	});

interface Fault {
	name: string;
	/** After some of the answer. */
	play(response: ServerResponse): void;
	/** The pieces of the answer so far. */
	begins?: boolean;
	timeoutMs?: number;
	reason?: ReasonCode;
	/** The bytes alone do not show that they are not speech. */
	textOnly?: boolean;
	/** A provider's text is not always recognised as a fault: it is enough that it ends in the stream. */
	mayComplete?: boolean;
}

const FAULTS: readonly Fault[] = [
	{ name: "breaks off in the middle", begins: true, play: (response) => response.socket?.destroy() },
	{ name: "breaks off before its headers", play: (response) => response.socket?.destroy() },
	{ name: "hangs in the middle", begins: true, timeoutMs: SHORT_MS, reason: ReasonCode.TIMEOUT, play: () => {} },
	{ name: "never answers", timeoutMs: SHORT_MS, reason: ReasonCode.TIMEOUT, play: () => {} },
	{ name: "answers 500", play: (response) => response.writeHead(500).end("no") },
	{ name: "answers 401", play: (response) => response.writeHead(401).end('{"error":{"message":"wrong key"}}') },
	{
		name: "answers a redirect",
		play: (response) => response.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
	},
	{
		name: "answers a page",
		textOnly: true,
		mayComplete: true,
		play: (response) => response.writeHead(200).end("<html>"),
	},
	{
		name: "answers broken JSON",
		textOnly: true,
		play: (response) => response.writeHead(200, { "content-type": "text/event-stream" }).end(data('{"choices":[{')),
	},
	{
		name: "answers JSON of another shape",
		textOnly: true,
		mayComplete: true,
		play: (response) =>
			response
				.writeHead(200, { "content-type": "text/event-stream" })
				.end(data({ choices: "none" }) + word({ not: "text" }) + data("[DONE]")),
	},
	{
		name: "answers nothing",
		textOnly: true,
		mayComplete: true,
		play: (response) => response.writeHead(200, { "content-type": "text/event-stream" }).end(),
	},
	{ name: "ends without its end", begins: true, textOnly: true, mayComplete: true, play: (response) => response.end() },
	...Array.from(
		{ length: atEffort(40, 4) },
		(_, n): Fault => ({
			name: `answers garbage ${n}`,
			begins: n % 2 === 0 ? true : undefined,
			textOnly: true,
			mayComplete: true,
			play(response) {
				if (!response.headersSent) response.writeHead(200, { "content-type": "text/event-stream" });
				for (let line = 0; line < 20; line++)
					response.write(
						random.between(0, 1) === 0 ? garbage(random.between(1, 300)) : `data: ${garbage(40).toString()}\n\n`,
					);
				response.end();
			},
		}),
	),
];

const folder = mkdtempSync(join(tmpdir(), "nexus-negative-"));
let provider: Server;
let daemon: Daemon;
let clients: Clients;

/** Which fault is in the text that is asked for. */
function answer(body: string, path: string, response: ServerResponse): void {
	const fault = FAULTS[Number(/fault (\d+)\b/.exec(body)?.[1])]!;
	if (!fault.begins) {
		fault.play(response);
		return;
	}
	const isSpeech = path.endsWith("/speech");
	response.writeHead(200, { "content-type": isSpeech ? "audio/mpeg" : "text/event-stream" });
	response.write(isSpeech ? Buffer.alloc(4096, 1) : word(SAID.slice(0, 20)) + word(SAID.slice(20)));
	// So that it has arrived.
	setTimeout(() => fault.play(response), 50);
}

beforeAll(async () => {
	provider = createServer((request, response) => {
		response.on("error", () => {});
		let body = "";
		request.setEncoding("utf8").on("data", (part: string) => {
			body += part;
		});
		request.on("end", () => answer(body, request.url ?? "", response));
	});
	await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", resolve));
	daemon = await startDaemon({
		data: folder,
		port: 0,
		token: OWNER_TOKEN,
		engine: "demo",
		logger: silentLog,
		stopDeadlineMs: 1000,
		connectors: { allowLoopback: true },
	});
	clients = clientsOf(daemon.grpc!, OWNER_TOKEN);
	await clients.connectors.createConnector({
		connectorId: "faulty",
		providerType: "openai-compatible",
		apiKey: "sk-0123456789",
		defaultModelId: "m",
		endpoint: `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`,
	});
});

afterAll(async () => {
	await daemon?.close();
	provider?.closeAllConnections();
	provider?.close();
	removeFolder(folder);
});

const NOTHING = new Uint8Array();

function expectTerminal({ messages, error }: Awaited<ReturnType<typeof read>>, fault: Fault): StreamScenarioResponse {
	expect(error, fault.name).toBeUndefined();
	const [terminal, ...others] = messages.filter(({ done }) => done);
	expect(others).toEqual([]);
	expect(messages.at(-1)).toBe(terminal);
	const { reasonCode, reason } = terminal!;
	if (!fault.mayComplete) expect([fault.name, reasonCode]).not.toEqual([fault.name, ReasonCode.UNSPECIFIED]);
	if (fault.reason !== undefined)
		expect([fault.reason, ReasonCode.AI_PROVIDER_TIMEOUT], fault.name).toContain(reasonCode);
	expect(reason !== "", fault.name).toBe(reasonCode !== ReasonCode.UNSPECIFIED);
	expect(reason).not.toContain("sk-0123456789");
	return terminal!;
}

const head = ({ timeoutMs = 30_000 }: Fault) => ({ connectorId: "faulty", timeoutMs });
const read = (scenario: ReturnType<typeof textOf> | ReturnType<typeof speechOf>) =>
	readStream(clients.ai.streamScenario({ scenario }));

describe("R4-28, R4-64, R4-76: whatever the provider does once a call is established, the status is OK", () => {
	it("K-STREAM-003: of a text, the terminal has the reason and the usage, and what was said is kept", async () => {
		const printed = vi.spyOn(console, "error");
		const all = FAULTS.map(async (fault, n) => [fault, await read(textOf(`fault ${n} `, head(fault)))] as const);
		for (const [fault, ended] of await Promise.all(all)) {
			const { usage } = expectTerminal(ended, fault);
			expect(usage, fault.name).toBeDefined();
			for (const { textDelta, done } of ended.messages) if (!done) expect(textDelta).not.toBe("");
			const said = ended.messages.map(({ textDelta }) => textDelta).join("");
			// How much of it came before the time was up depends on the machine.
			if (fault.timeoutMs !== undefined) expect(SAID.startsWith(said), fault.name).toBe(true);
			else if (fault.begins) expect(said.startsWith(SAID), fault.name).toBe(true);
		}
		// A provider's text must not become a line of the log, whatever a library makes of it.
		expect(printed).not.toHaveBeenCalled();
	});

	it("K-STREAM-004: of speech, the terminal has the reason and no audio", async () => {
		const all = FAULTS.map(async (fault, n) =>
			fault.textOnly ? undefined : ([fault, await read(speechOf(`fault ${n} `, head(fault)))] as const),
		);
		for (const one of await Promise.all(all)) {
			if (!one) continue;
			const [fault, ended] = one;
			expect(expectTerminal(ended, fault).audioChunk).toEqual(NOTHING);
			for (const { audioChunk, done } of ended.messages) if (!done) expect(audioChunk.length).toBeGreaterThan(0);
			if (fault.begins && fault.timeoutMs === undefined) expect(ended.messages.length, fault.name).toBeGreaterThan(1);
		}
	});

	it("a run that a person stops ends in its stream, too", async () => {
		let runId = "";
		const reading = readStream(
			clients.ai.streamScenario({ scenario: textOf("/demo tokens=900 rate=400 stall_after=60") }),
			(event) => {
				runId = event.runId;
			},
		);
		await until("it has begun", () => runId !== "");
		await clients.agents.abortRun({ runId });
		const { messages, error } = await reading;
		expect(error).toBeUndefined();
		expect(messages.at(-1)).toMatchObject({ done: true, reasonCode: ReasonCode.ABORTED });
	});
});

const RUNNING_TYPES = [
	ScenarioJobEventType.SUBMITTED,
	ScenarioJobEventType.QUEUED,
	ScenarioJobEventType.RUNNING,
	ScenarioJobEventType.PROGRESS,
	ScenarioJobEventType.RETRYING,
	// A type alone ends nothing: the state of the snapshot does.
	ScenarioJobEventType.COMPLETED,
];

describe("R4-48, R4-49, R4-77: types of events repeat and come in any order", () => {
	it.each(Array.from({ length: atEffort(50, 5) }, (_, n) => n))("the newest snapshot counts (%i)", async () => {
		const count = random.between(3, 30);
		const types = random.shuffled(Array.from({ length: count }, (_, n) => RUNNING_TYPES[n % RUNNING_TYPES.length]!));
		const flowTypes = random.shuffled(
			Array.from({ length: count }, (_, n) => (n % 14) + 1).filter(
				(type) => type < WorkflowEventType.COMPLETED || type > WorkflowEventType.CANCELED,
			) as WorkflowEventType[],
		);
		const transport = createRouterTransport(({ service }) => {
			service(RuntimeAiService, {
				async *subscribeScenarioJobEvents() {
					for (const [n, eventType] of types.entries())
						yield {
							sequence: BigInt(n + 1),
							eventType,
							job: { jobId: "j", state: ScenarioJobState.RUNNING, text: `snapshot ${n}` },
						};
					const job = { jobId: "j", state: ScenarioJobState.TIMEOUT, text: "the last" };
					yield { sequence: BigInt(count + 1), eventType: types[0]!, job };
				},
			});
			service(RuntimeWorkflowService, {
				async *subscribeWorkflowEvents() {
					for (const [n, eventType] of flowTypes.entries())
						yield {
							sequence: BigInt(n + 1),
							eventType,
							workflow: { state: WorkflowState.RUNNING, name: `snapshot ${n}` },
						};
					const workflow = { state: WorkflowState.CANCELED, name: "the last" };
					yield { sequence: BigInt(count + 1), eventType: WorkflowEventType.NODE_STARTED, workflow };
				},
			});
		});
		const runtime = createRuntime({ transport });
		const { job } = await lastOf(runtime.ai.subscribeScenarioJobEvents({ jobId: "j", after: 0n }));
		expect(job).toMatchObject({ state: ScenarioJobState.TIMEOUT, text: "the last" });
		const { workflow } = await lastOf(runtime.workflows.subscribeWorkflowEvents({ workflowId: "w", after: 0n }));
		expect(workflow).toMatchObject({ state: WorkflowState.CANCELED, name: "the last" });
		const seen: string[] = [];
		for await (const event of runtime.ai.subscribeScenarioJobEvents({ jobId: "j", after: 0n }))
			seen.push(event.job!.text);
		expect(seen).toEqual([...types.map((_, n) => `snapshot ${n}`), "the last"]);
		runtime.close();
	});
});
