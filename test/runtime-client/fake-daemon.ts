/** A daemon of scripts: each stream is a log that is cut where the test says, over a transport in memory. */

import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import {
	Code,
	ConnectError,
	type ConnectRouter,
	createRouterTransport,
	type HandlerContext,
} from "@connectrpc/connect";
import {
	RuntimeAccountService,
	SubscribeAccountSessionEventsResponseSchema,
} from "../../packages/client/src/gen/nexus/runtime/v1/account_pb.ts";
import {
	RuntimeAiService,
	ScenarioJobEventType,
	ScenarioJobState,
	StreamScenarioResponseSchema,
	SubscribeScenarioJobEventsResponseSchema,
} from "../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import {
	ExportAuditEventsResponseSchema,
	RuntimeAuditService,
} from "../../packages/client/src/gen/nexus/runtime/v1/audit_pb.ts";
import {
	ReadRealtimeEventsResponseSchema,
	RealtimeEventType,
	RuntimeRealtimeService,
} from "../../packages/client/src/gen/nexus/runtime/v1/realtime_pb.ts";
import {
	createRuntime,
	type Runtime,
	type RuntimeEvent,
	type RuntimeOptions,
} from "../../packages/client/src/runtime/runtime-client.ts";
import type { Clock } from "../../packages/protocol/src/clock.ts";

/** Where one connection breaks: after so many messages, with this status; `undefined` = a clean close without a terminal. */
export interface Cut {
	messages: number;
	code: Code | undefined;
	reason?: string;
}

/** The behaviour of a connection without further cuts. */
export interface Script {
	/** One for each connection, in order; those after them are whole. */
	cuts?: readonly Cut[];
	/** Messages of the log, the terminal included. */
	length?: number;
	/** Mode D: where a reader begins that names no place. */
	now?: bigint;
	/** Mode D: closes cleanly after the last message. */
	closesD?: boolean;
}

export interface FakeDaemon {
	runtime: Runtime;
	events: RuntimeEvent[];
	/** How often a model was called, by idempotency key. */
	executions: Map<string, number>;
	/** The requests of streams, in order. */
	asked: { after?: bigint | undefined; runId?: string; idempotencyKey?: string }[];
	/** The waits before each try. */
	waits: number[];
	authorizations: (string | null)[];
}

const refusal = (code: Code, reason?: string) =>
	new ConnectError("as the script says", code, reason === undefined ? {} : { "x-nexus-reason-code": reason });

export const RUN = "run_1";

export function fakeDaemon(script: Script = {}, options: Partial<RuntimeOptions> = {}): FakeDaemon {
	const { cuts = [], length = 5 } = script;
	const executions = new Map<string, number>();
	const asked: FakeDaemon["asked"] = [];
	const authorizations: (string | null)[] = [];
	let connections = 0;

	async function* log<Desc extends DescMessage>(
		schema: Desc,
		{ requestHeader, signal }: HandlerContext,
		after: bigint,
		message: (sequence: bigint, isLast: boolean) => MessageInitShape<Desc>,
		stays = false,
	) {
		authorizations.push(requestHeader.get("authorization"));
		const cut = cuts[connections++];
		let sent = 0;
		const cutNow = () => cut !== undefined && sent === cut.messages;
		for (let at = after + 1n; at <= BigInt(length); at++) {
			if (cutNow()) break;
			yield create(schema, message(at, at === BigInt(length)));
			sent++;
		}
		if (cutNow()) {
			if (cut!.code !== undefined) throw refusal(cut!.code, cut!.reason);
			return;
		}
		if (!stays) return;
		await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
		throw signal.reason;
	}

	const routes = (router: ConnectRouter) => {
		router.service(RuntimeAiService, {
			streamScenario(request, context) {
				asked.push(request);
				if (request.runId === "") {
					const key = request.idempotencyKey;
					if (!executions.has(key)) executions.set(key, 1);
				} else if (request.runId !== RUN || request.scenario) throw refusal(Code.NotFound, "NOT_FOUND");
				// A position at or after the terminal yields the terminal again.
				const after = request.after ?? 0n;
				const from = after >= BigInt(length) ? BigInt(length - 1) : after;
				return log(StreamScenarioResponseSchema, context, from, (sequence, done) => ({
					runId: RUN,
					sequence,
					textDelta: `${sequence} `,
					done,
					usage: done ? { inputTokens: -1n, outputTokens: -1n } : undefined,
				}));
			},
			executeScenario(request) {
				const key = request.idempotencyKey;
				const cut = cuts[connections++];
				if (!executions.has(key)) executions.set(key, 1);
				if (cut?.code !== undefined) throw refusal(cut.code, cut.reason);
				return { runId: RUN, text: "once" };
			},
			getScenarioJob() {
				const cut = cuts[connections++];
				if (cut?.code !== undefined) throw refusal(cut.code, cut.reason);
				return { job: { jobId: "job_1" } };
			},
			subscribeScenarioJobEvents(request, context) {
				asked.push(request);
				const after = request.after ?? 0n;
				const from = after >= BigInt(length) ? BigInt(length - 1) : after;
				return log(SubscribeScenarioJobEventsResponseSchema, context, from, (sequence, isLast) => ({
					sequence,
					// The same type again and again, with a newer snapshot.
					eventType: isLast ? ScenarioJobEventType.COMPLETED : ScenarioJobEventType.PROGRESS,
					job: {
						jobId: "job_1",
						progressPercent: Number(sequence),
						state: isLast ? ScenarioJobState.COMPLETED : ScenarioJobState.RUNNING,
					},
				}));
			},
		});
		router.service(RuntimeAuditService, {
			exportAuditEvents(request, context) {
				asked.push(request);
				return log(ExportAuditEventsResponseSchema, context, request.after ?? 0n, (sequence, eof) => ({
					chunk: eof ? new Uint8Array() : new TextEncoder().encode(`${sequence}\n`),
					eof,
					lastAuditSequence: sequence,
				}));
			},
		});
		router.service(RuntimeRealtimeService, {
			readRealtimeEvents(request, context) {
				asked.push(request);
				const message = (sequence: bigint) => ({
					sequence,
					eventType: RealtimeEventType.TEXT_DELTA,
					textDelta: `${sequence} `,
				});
				const after = request.after ?? script.now ?? 0n;
				context.responseHeader.set("x-nexus-after", String(after));
				return log(ReadRealtimeEventsResponseSchema, context, after, message, script.closesD !== true);
			},
		});
		router.service(RuntimeAccountService, {
			subscribeAccountSessionEvents(_, context) {
				asked.push({});
				const message = (sequence: bigint) => ({ sequence, account: { accountId: `a${sequence}` } });
				return log(SubscribeAccountSessionEventsResponseSchema, context, 0n, message, true);
			},
		});
	};

	const waits: number[] = [];
	const runtime = createRuntime({
		transport: createRouterTransport(routes),
		token: "secret",
		clock: hastyClock(waits),
		random: () => 1,
		...options,
	});
	const events: RuntimeEvent[] = [];
	runtime.on("runtime.disconnected", (event) => events.push(event));
	runtime.on("runtime.reconnected", (event) => events.push(event));
	return { runtime, events, executions, asked, waits, authorizations };
}

/** Turns of the event loop within which everything in memory has answered. */
const TURNS = 5;

/** Runs due timers once nothing else happens, and advances the time. */
function hastyClock(waits: number[]): Clock {
	let now = 0;
	return {
		now: () => now,
		after(ms, callback) {
			let timer: NodeJS.Immediate;
			const turn = (left: number) => {
				timer = setImmediate(() => {
					if (left > 0) return turn(left - 1);
					now += ms;
					waits.push(ms);
					callback();
				});
			};
			turn(TURNS);
			return () => clearImmediate(timer);
		},
	};
}
