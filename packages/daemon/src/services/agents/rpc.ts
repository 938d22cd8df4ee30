/** Agents, and the runs of all sessions. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
	AgentEventType,
	type RuntimeAgentService,
	type SendMessageRequest,
	type SubscribeAgentEventsResponseSchema,
} from "@nexus-stream/client/gen/nexus/runtime/v1/agent_pb";
import { isSessionLabel, NexusError, STREAM_PROCEDURES } from "@nexus-stream/protocol";
import type { Broker } from "../../broker/broker.ts";
import { afterOf, filtered, logStream, principalOf } from "../../edge/rpc/rpc.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Accepted, ClientMessage } from "../../nex/nex.ts";
import type { AuditLog } from "../audit/audit.ts";
import type { AgentEvent } from "../audit/events.ts";
import type { NoticeLogs } from "../audit/notices.ts";
import { AGENTS_TOPIC } from "../audit/topics.ts";
import { inCapitals, reasonCodeOf } from "../kit/codec.ts";
import { type Principal, requireOwner } from "../kit/principal.ts";
import type { Scenarios } from "../scenarios/port.ts";

const { closes } = STREAM_PROCEDURES["nexus.runtime.v1.RuntimeAgentService/SubscribeAgentEvents"];

export interface AgentRpcParts {
	engine: { readonly name: string };
	/** The agents of the engine, by name. */
	agents: Readonly<Record<string, { model?: string }>> | undefined;
	submit(message: ClientMessage): Promise<Accepted>;
	broker: Pick<Broker, "abort">;
	ledger: Pick<Ledger, "turns">;
	scenarios: Pick<Scenarios, "abort">;
	audit: Pick<AuditLog, "abortAsked">;
	notices: Pick<NoticeLogs, "cursor">;
}

export const agentMethods = (parts: AgentRpcParts): Partial<ServiceImpl<typeof RuntimeAgentService>> => ({
	listAgents(_, context) {
		requireOwner(principalOf(context));
		const { engine, agents = {} } = parts;
		const named = Object.entries(agents).map(([name, { model = "" }]) => ({ name, modelId: model }));
		return { engine: engine.name, agents: named };
	},

	async sendMessage(request, context) {
		requireOwner(principalOf(context));
		const { eventId, disposition, runId = "" } = await send(parts, request);
		return { eventId, disposition: disposition.state, runId };
	},

	async abortRun({ runId }, context) {
		const principal = requireOwner(principalOf(context));
		return { runId, status: await abort(parts, runId, principal) };
	},

	async *subscribeAgentEvents({ session, agent, after }, context) {
		requireOwner(principalOf(context));
		const fits = agentMatcher(session, agent);
		const cursor = await parts.notices.cursor(AGENTS_TOPIC, afterOf(after));
		yield* logStream(context, {
			cursor,
			closes,
			...filtered<AgentEvent, AgentEventMessage>({ fits, message: messageOf }),
		});
	},
});

async function send({ submit }: AgentRpcParts, { session, text, idempotencyKey }: SendMessageRequest) {
	if (!isSessionLabel(session)) throw new NexusError("invalid", "session: a label is needed, such as `main`");
	try {
		const accepted = await submit({ session, text, idempotencyKey: idempotencyKey || undefined });
		const { disposition } = accepted;
		if ("because" in disposition) throw new NexusError("precondition", `not accepted: ${disposition.because}`);
		return accepted;
	} catch (cause) {
		const isConflict = cause instanceof NexusError && cause.code === "conflict" && idempotencyKey !== "";
		if (!isConflict) throw cause;
		// A key that another message has (Z15).
		throw new NexusError("invalid", cause.message, { cause, reason: "IDEMPOTENCY_CONFLICT" });
	}
}

async function abort(parts: AgentRpcParts, runId: string, principal: Principal): Promise<string> {
	const { broker, ledger, scenarios, audit } = parts;
	const aborting = broker.abort(runId) ?? scenarios.abort(runId, principal);
	if (aborting) audit.abortAsked(runId, principal.address);
	const ended = (await aborting) ?? (await ledger.turns.get(runId));
	if (!ended) throw new NexusError("not_found", `there is no run ${runId}`);
	return ended.status;
}

type AgentEventMessage = MessageInitShape<typeof SubscribeAgentEventsResponseSchema>;

const messageOf = (sequence: number, { at, ...event }: AgentEvent): AgentEventMessage => ({
	...event,
	sequence: BigInt(sequence),
	eventType: AgentEventType[inCapitals(event.event_type)],
	runId: event.run_id,
	reasonCode: reasonCodeOf(event.reason_code ?? "UNSPECIFIED"),
	at: timestampFromMs(at),
});

/** Undefined: the reader wants all events. */
function agentMatcher(session: string, agent: string): ((event: AgentEvent) => boolean) | undefined {
	if (session === "" && agent === "") return undefined;
	return (event) => (session === "" || event.session === session) && (agent === "" || event.agent === agent);
}
