/** A real edge on a real port over a real Bus, Ledger and Broker; only the agent is played by the test. */

import { mkdtempSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import type { Engine, EngineEvent } from "@nexus-stream/protocol/engine";
import { createParser } from "eventsource-parser";
import { expect, onTestFinished } from "vitest";
import { type Broker, createBroker } from "../../packages/daemon/src/broker/broker.ts";
import type { Bus, Cursor } from "../../packages/daemon/src/bus/bus.ts";
import { ROUTES, type RouteId } from "../../packages/daemon/src/edge/api/api.ts";
import type { Route } from "../../packages/daemon/src/edge/api/resource.ts";
import {
	createEdge,
	type Edge,
	type EdgeDeps,
	type EdgeLimits,
	type Lab,
} from "../../packages/daemon/src/edge/edge.ts";
import { httpRoutes } from "../../packages/daemon/src/edge/rest/http-rules.ts";
import { SERVICES } from "../../packages/daemon/src/edge/rpc/routes.ts";
import type { Ledger } from "../../packages/daemon/src/ledger/ledger.ts";
import { createNex, createOutbound } from "../../packages/daemon/src/nex/nex.ts";
import type { ServiceRows } from "../../packages/daemon/src/runtime/data/tables.ts";
import type { MethodParts } from "../../packages/daemon/src/runtime/wiring/methods.ts";
import type { Services } from "../../packages/daemon/src/runtime/wiring/port.ts";
import { createApplications } from "../../packages/daemon/src/services/apps/apps.ts";
import type { Applications } from "../../packages/daemon/src/services/apps/port.ts";
import type { ArtifactInfo } from "../../packages/daemon/src/services/artifacts/port.ts";
import { createAudit } from "../../packages/daemon/src/services/audit/record.ts";
import { once } from "../../packages/daemon/src/services/kit/once.ts";
import { createMemory, type MemoryConfig } from "../../packages/daemon/src/services/memory/memory.ts";
import { createSignIns } from "../../packages/daemon/src/services/signins/signins.ts";
import { type Clock, systemClock } from "../../packages/protocol/src/clock.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { quiet } from "../quiet.ts";
import { removeFolder } from "../runtime/folder.ts";
import { type OpenStore, openStore } from "../store.ts";
import { until } from "../until.ts";

export const TOKEN = "a-token-of-the-tests-0123456789";
export const BEARER = { authorization: `Bearer ${TOKEN}` };

/** An agent that says what the test tells it to. */
export class Puppet {
	readonly #queue: (EngineEvent | "finish" | Error)[] = [];
	#wake = () => {};
	/** Does not heed its signal until it is finished. */
	isDeaf = false;

	say(...deltas: string[]): void {
		this.yield(...deltas.map((delta): EngineEvent => ({ type: "text", delta })));
	}

	yield(...events: EngineEvent[]): void {
		this.#queue.push(...events);
		this.#wake();
	}

	finish(): void {
		this.#queue.push("finish");
		this.#wake();
	}

	fail(message: string): void {
		this.#queue.push(new Error(message));
		this.#wake();
	}

	async *run(signal: AbortSignal): AsyncGenerator<EngineEvent> {
		signal.addEventListener("abort", () => this.#wake());
		while (!signal.aborted || this.isDeaf) {
			const next = this.#queue.shift();
			if (next === undefined) await new Promise<void>((resolve) => (this.#wake = resolve));
			else if (next === "finish") return;
			else if (next instanceof Error) throw next;
			else yield next;
		}
	}
}

export interface RigOptions {
	limits?: Partial<EdgeLimits>;
	deps?: Partial<EdgeDeps>;
	clock?: Clock;
	engine?: Engine;
	open?: OpenStore;
	agents?: MethodParts["agents"];
	memory?: MemoryConfig;
	/** Created again at every start. */
	services?(store: { bus: Bus; rows: ServiceRows }): Partial<Services>;
}

export interface Rig {
	url: string;
	port: number;
	edge: Edge;
	bus: Bus;
	ledger: Ledger;
	rows: ServiceRows;
	broker: Broker;
	apps: Applications;
	/** Or another method without a body. */
	get(path: string, headers?: Record<string, string>, method?: string): Promise<Response>;
	post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
	/** Sends a message that starts a run, and gives its agent's strings. */
	start(session: string, text?: string): Promise<{ runId: string; eventId: string; puppet: Puppet }>;
	puppet(runId: string): Puppet;
	/** The run is over for all who could ask: its turn is saved, and its log tells the end. */
	settled(runId: string): Promise<void>;
	/** Everything but the data goes and comes back. */
	restart(): Promise<void>;
	close(): Promise<void>;
}

const NO_CHANGES = { added: [], changed: [], removed: [] };

const refused = async (): Promise<never> => {
	throw new Error("the lab of this test is not running");
};
/** A lab that nothing has started. */
export const IDLE_LAB: Lab = {
	accounts: () => [],
	deliveries: async () => [],
	send: refused,
	state: refused,
	fault: refused,
	ask: refused,
	press: refused,
	health: refused,
};

/** The same object, which a test may fill later. Applications have stored nothing, unless it says otherwise. */
function withQuota(services: Partial<Services>): Services {
	const usage = async () => ({ jobs: 0, workflows: 0, logs: 0, artifacts: 0, messages: 0 });
	const quota = { usage, bytesPerAppMax: 1000 } as unknown as Services["quota"];
	return Object.assign(services as Services, { quota: services.quota ?? quota });
}

export async function createRig(options: RigOptions = {}): Promise<Rig> {
	const dir = mkdtempSync(join(tmpdir(), "nexus-edge-"));
	const puppets = new Map<string, Puppet>();
	const puppet = (runId: string): Puppet => {
		const found = puppets.get(runId) ?? new Puppet();
		puppets.set(runId, found);
		return found;
	};
	const { open = openStore } = options;
	const engine: Engine = options.engine ?? {
		name: "puppet",
		run: ({ runId }, { signal }) => puppet(runId).run(signal),
	};
	let stop = async () => {};
	const start = async () => {
		const { bus, ledger, rows, close } = open(join(dir, "nexus.db"));
		const broker = createBroker({ ...quiet, bus, ledger, engine, log: silentLog });
		const outbound = createOutbound({ bus, ledger, dataDir: dir, adapters: {}, log: silentLog });
		const nex = createNex({ broker, bus, ledger, outbound, engine, log: silentLog });
		await nex.recover();
		const clock = options.clock ?? systemClock;
		const signIns = createSignIns({ bus, rows, clock, log: silentLog, audit: createAudit(clock) });
		const apps = createApplications({ bus, rows, clock, log: silentLog, audit: createAudit(clock) });
		await Promise.all([signIns.load(), apps.load()]);
		const services = withQuota(options.services?.({ bus, rows }) ?? {});
		const edge = createEdge({
			bus,
			ledger,
			broker,
			submit: (message) => nex.receive(message),
			cancel: (eventId) => nex.cancel(eventId),
			proceed: (runId) => nex.continue(runId),
			retry: (runId) => nex.retry(runId),
			engine,
			approvals: nex.approvals,
			trust: nex.trust,
			channels: { outbound, pairing: nex.pairing, reload: async () => NO_CHANGES, idle: () => [], lab: IDLE_LAB },
			mcp: { status: () => [], start: async () => {} },
			token: TOKEN,
			signIns,
			apps,
			log: silentLog,
			readiness: () => ({ ready: true, state: "READY" }),
			metrics: { contentType: "text/plain; version=0.0.4", render: async () => "nexus_up 1\n" },
			health: { state: () => "READY", subscribe: () => () => {} },
			version: "0.0.0-test",
			pageDir: undefined,
			allowedHosts: [],
			trustedProxies: [],
			limits: options.limits ?? {},
			clock,
			async methods() {
				const { methodsOf } = await import("../../packages/daemon/src/runtime/wiring/methods.ts");
				const { agents, memory: memoryConfig } = options;
				const memory = createMemory({ bus, rows, config: memoryConfig, clock });
				const submit: EdgeDeps["submit"] = (message) => nex.receive(message);
				const core = {
					engine,
					agents,
					submit,
					broker,
					ledger,
					rows,
					memoryConfig,
					apps,
					memory,
					scenarios: { abort: () => undefined },
				};
				return methodsOf({ ...core, bus, ...services } as MethodParts);
			},
			artifacts: {
				find: async (id, principal) => services.artifacts?.find(id, principal),
				stream: (file, from, to) => services.artifacts.stream(file as ArtifactInfo, from, to),
			},
			deliverOnce: (request, begin) => once({ rows, clock }, { ...request, appId: "owner/deliveries" }, begin),
			abortAsked: (runId, address) => services.audit?.abortAsked(runId, address),
			...options.deps,
		});
		const { url } = await edge.listen("127.0.0.1", 0);
		Object.assign(rig, { url, port: Number(new URL(url).port), edge, bus, ledger, rows, broker, apps });
		stop = async () => {
			await edge.close(200);
			signIns.close();
			apps.close();
			nex.close();
			await broker.drain(0);
			await nex.stop(0);
			await outbound.stop(0);
			await close();
		};
	};
	const rig = {
		get: (path, headers = {}, method = "GET") => fetch(rig.url + path, { method, headers: { ...BEARER, ...headers } }),
		post: (path, body, headers = {}) =>
			fetch(rig.url + path, {
				method: "POST",
				headers: { ...BEARER, ...(body !== undefined && { "content-type": "application/json" }), ...headers },
				body: body === undefined ? undefined : JSON.stringify(body),
			}),
		async start(session, text = "hello") {
			const response = await rig.post(`/v1/sessions/${session}/messages`, { text });
			expect(response.status).toBe(202);
			const { run_id, event_id } = (await response.json()) as { run_id: string; event_id: string };
			return { runId: run_id, eventId: event_id, puppet: puppet(run_id) };
		},
		puppet,
		settled: (runId) =>
			until(`the end of ${runId}`, async () => {
				const log = await rig.bus.describe(runId);
				return log?.sealedAt !== undefined && !rig.broker.live(runId);
			}),
		async restart() {
			await stop();
			await start();
		},
		async close() {
			await stop();
			removeFolder(dir);
		},
	} as Rig;
	await start();
	return rig;
}

/** A rig that is closed with its test. */
export async function rigForTest(options?: RigOptions): Promise<Rig> {
	const rig = await createRig(options);
	onTestFinished(() => rig.close());
	return rig;
}

export interface SseEvent {
	id: string | undefined;
	event: string | undefined;
	data: string;
}

export interface SseReader {
	response: Response;
	events: SseEvent[];
	comments: string[];
	/** Resolves when the body ends: `clean`, or `cut` when it broke off. */
	ended: Promise<"clean" | "cut">;
	until(done: (events: SseEvent[]) => boolean): Promise<SseEvent[]>;
	stop(): void;
}

/** Reads an SSE answer with a parser that is not ours, at most until its test ends. */
export async function readSse(url: string, headers: Record<string, string> = {}): Promise<SseReader> {
	const abort = new AbortController();
	onTestFinished(() => abort.abort());
	const response = await fetch(url, { headers: { ...BEARER, ...headers }, signal: abort.signal });
	const events: SseEvent[] = [];
	const comments: string[] = [];
	const parser = createParser({
		onEvent: ({ id, event, data }) => void events.push({ id, event, data }),
		onComment: (comment) => void comments.push(comment),
	});
	const pump = async (): Promise<"clean" | "cut"> => {
		const decoder = new TextDecoder();
		try {
			for await (const chunk of response.body ?? []) parser.feed(decoder.decode(chunk, { stream: true }));
			return "clean";
		} catch {
			return "cut";
		}
	};
	const ended = pump();
	return {
		response,
		events,
		comments,
		ended,
		async until(done) {
			await waitFor(() => done(events));
			return events;
		},
		stop: () => abort.abort(),
	};
}

/** The offsets and frames of a finished answer. */
export async function readAll(url: string, headers: Record<string, string> = {}): Promise<SseEvent[]> {
	const reader = await readSse(url, headers);
	expect(reader.response.status).toBe(200);
	expect(await reader.ended).toBe("clean");
	return reader.events;
}

export const waitFor = (condition: () => boolean | Promise<boolean>): Promise<void> =>
	until(String(condition), condition);

export interface RawClient {
	socket: Socket;
	received(): string;
	closed: Promise<void>;
}

/** A bare socket, for what no HTTP client would do. It is closed with its test. */
export function rawClient(port: number, text: string): RawClient {
	const socket = connect(port, "127.0.0.1");
	onTestFinished(() => void socket.destroy());
	let received = "";
	socket.setEncoding("utf8");
	socket.on("data", (chunk: string) => {
		received += chunk;
	});
	socket.on("error", () => {});
	const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
	socket.write(text);
	return { socket, received: () => received, closed };
}

const DERIVED = httpRoutes(SERVICES);

/** An answer must be what the OpenAPI document promises: status and shape. A route of the runtime contract is named by its procedure. */
export async function expectAnswer(id: string, response: Response): Promise<unknown> {
	const body: unknown = await response.json();
	const derived = DERIVED.find(({ method }) => method.localName === id);
	if (derived) {
		expect(response.status, JSON.stringify(body)).toBe(derived.status);
		const { answer, method } = derived;
		const shape = answer ? { [answer.name]: body as JsonValue } : (body as JsonValue);
		const message = fromJson(method.output, shape);
		expect(toJson(method.output, message, { useProtoFieldName: true, alwaysEmitImplicit: true })).toMatchObject(
			shape as object,
		);
		return body;
	}
	const route: Route = ROUTES[id as RouteId];
	expect(response.status, JSON.stringify(body)).toBe(route.status);
	if (typeof route.answer !== "string") expect(route.answer.parse(body)).toEqual(body);
	return body;
}

export async function expectError(response: Response, status: number, code: string): Promise<void> {
	const body = (await response.json()) as { error: { code: string; message: string } };
	expect({ status: response.status, code: body.error.code }).toEqual({ status, code });
	expect(body.error.message).not.toBe("");
}

/** The cursors that are opened from now on, in order. */
export function watchCursors(bus: Bus): readonly Cursor[] {
	const cursors: Cursor[] = [];
	const open = bus.cursor.bind(bus);
	bus.cursor = async (source, after) => {
		const cursor = await open(source, after);
		cursors.push(cursor);
		return cursor;
	};
	return cursors;
}
