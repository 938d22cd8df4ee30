/**
 * Records every change in the change's own commit: the audit log, and the events of agents and of memory. It reads the writes
 * themselves, so that no path to a change can skip it. Records hold ids, names and states, never the text of a message.
 */

import { reasonOfEnd, traceIdOf } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { RunMeta } from "../../broker/broker.ts";
import type { Changes, LogSpec, Tell } from "../../bus/bus.ts";
import type { ApprovalOps, OpenQuestion } from "../../ledger/approvals/port.ts";
import type { DeliveryOps } from "../../ledger/deliveries/port.ts";
import type { ExecutionOps, StoredEntry } from "../../ledger/execution/port.ts";
import type { GrantOps } from "../../ledger/grants/port.ts";
import type { Disposition, InboxOps, Origin } from "../../ledger/inbox/port.ts";
import type { PairingOps, Person } from "../../ledger/pairings/port.ts";
import type { TurnOps } from "../../ledger/turns/port.ts";
import type { Write } from "../../std/write.ts";
import type { MemoryItem, MemoryOps, MemoryProvenance } from "../memory/rows.ts";
import { type AgentEvent, agentText, type MemoryEvent, memoryText } from "./events.ts";
import { type AuditEntry, Flood } from "./port.ts";
import { auditText } from "./record.ts";
import { noticeWrites } from "./rows.ts";
import { AGENTS_TOPIC, AUDIT_TOPIC, MEMORY_TOPIC } from "./topics.ts";

/** Tells of one unit. */
class Telling {
	readonly #at: number;
	readonly #audit: string[] = [];
	readonly #agents: string[] = [];
	readonly #memory: string[] = [];
	readonly #refusals: Flood;
	/** The session of the run that the unit belongs to. */
	readonly session: string | undefined;

	constructor(at: number, refusals: Flood, log: LogSpec | undefined) {
		this.#at = at;
		this.#refusals = refusals;
		this.session = log?.kind === "run" ? (log.meta as RunMeta).session : undefined;
	}

	audit(entry: AuditEntry): void {
		this.#audit.push(auditText(entry, this.#at));
	}

	/** Strangers must not be able to fill the disk. */
	refusal({ payload, ...entry }: AuditEntry): void {
		const told = this.#refusals.next(this.#at);
		if (told) this.audit({ ...entry, payload: { ...payload, ...told } });
	}

	agent(event: Omit<AgentEvent, "at">): void {
		this.#agents.push(agentText({ ...event, at: this.#at }));
	}

	memory(event: Omit<MemoryEvent, "at">): void {
		this.#memory.push(memoryText({ ...event, at: this.#at }));
	}

	/** One row for each topic. */
	get writes(): Write[] {
		const posts = [
			[AUDIT_TOPIC, this.#audit],
			[AGENTS_TOPIC, this.#agents],
			[MEMORY_TOPIC, this.#memory],
		] as const;
		const some = posts.filter(([, records]) => records.length > 0);
		return some.map(([topic, records]) => noticeWrites.postAll(topic, records, this.#at));
	}
}

type Tellers<Ops> = {
	[Op in keyof Ops]?: (telling: Telling, ...args: Ops[Op] extends (...args: infer Args) => void ? Args : never) => void;
};

export function createTelling(clock: Clock): Tell {
	const refusals = new Flood();
	return ({ writes, log, isNew = false }: Changes) => {
		const telling = new Telling(clock.now(), refusals, log);
		if (isNew && log?.kind === "run") begun(telling, log, writes);
		const tell = ({ table, op, args }: Write) => TELLERS[table]?.[op]?.(telling, ...args);
		for (const write of writes) if (write.table !== "turns") tell(write);
		// The end of a run is the last record about it.
		for (const write of writes) if (write.table === "turns") tell(write);
		return telling.writes;
	};
}

function begun(telling: Telling, { log: run_id, meta }: LogSpec, writes: readonly Write[]): void {
	const { session, engine, events, continues } = meta as RunMeta;
	const asked = writes.find(({ table, op }) => table === "inbox" && op === "accept")?.args[0];
	const { origin, traceId = traceIdOf(run_id) } = (asked ?? {}) as { origin?: Origin; traceId?: string };
	telling.audit({
		domain: "runs",
		operation: "started",
		traceId,
		caller: origin && callerOf(origin),
		payload: { run_id, session, engine, messages: events.length, continues },
	});
	telling.agent({ event_type: "started", session, run_id, state: "running" });
}

const callerOf = ({ channel, account, sender }: Person): string => `${channel}/${account}/${sender}`;

const runIn = (disposition: Disposition): string | undefined =>
	"runId" in disposition ? disposition.runId : undefined;

/** The audit's operation for each outcome of a message. */
const OPERATION_OF: Readonly<Record<Disposition["state"], string>> = {
	started: "accepted",
	queued: "accepted",
	batched: "accepted",
	injected: "accepted",
	superseded: "superseded",
	rejected: "refused",
	dropped: "dropped",
	answered: "handled",
	handled: "handled",
	cancelled: "cancelled",
};

const inbox: Tellers<InboxOps> = {
	accept(telling, { eventId: event_id, session, disposition, origin, traceId }) {
		const { state } = disposition;
		const run_id = runIn(disposition);
		const operation = OPERATION_OF[state];
		const entry: AuditEntry = {
			domain: "messages",
			operation,
			traceId,
			caller: origin && callerOf(origin),
			payload: { event_id, session, state, run_id },
		};
		if (operation === "refused") telling.refusal({ ...entry, reason: "FORBIDDEN" });
		else telling.audit(entry);
		if (operation === "accepted") telling.agent({ event_type: "message", session, run_id, id: event_id, state });
	},
	dispose(telling, event_id, disposition) {
		const { state } = disposition;
		const { session } = telling;
		const run_id = runIn(disposition);
		const isAccepted = OPERATION_OF[state] === "accepted";
		// That it was accepted is on record: what is new is what became of it.
		const operation = isAccepted ? state : OPERATION_OF[state];
		telling.audit({ domain: "messages", operation, payload: { event_id, session, run_id } });
		if (session !== undefined) telling.agent({ event_type: "message", session, run_id, id: event_id, state });
	},
};

const turns: Tellers<TurnOps> = {
	settle(telling, turn) {
		const { runId: run_id, session, status, reason, usage, toolCalls, startedAt, endedAt } = turn;
		const why = reasonOfEnd(turn);
		telling.audit({
			domain: "runs",
			operation: "settled",
			reason: why,
			traceId: traceIdOf(run_id),
			payload: {
				run_id,
				session,
				status,
				reason,
				ms: endedAt - startedAt,
				tools: toolCalls.length,
				input_tokens: usage.input,
				output_tokens: usage.output,
			},
		});
		const reason_code = why === "UNSPECIFIED" ? undefined : why;
		telling.agent({ event_type: "settled", session, run_id, state: status, reason_code });
	},
	rollBack: (telling, run_id) => telling.audit({ domain: "runs", operation: "rolled_back", payload: { run_id } }),
};

const execution: Tellers<ExecutionOps> = {
	add(telling, entries) {
		for (const entry of entries) if (entry.kind === "tool") toolUsed(telling, entry);
	},
};

/** The entry of a tool is made by the Broker (`broker/recorder.ts`); an engine's own of that kind has no call. */
function toolUsed(telling: Telling, { session, runId: run_id, agent, data = {} }: StoredEntry): void {
	const { call_id, tool, status, ms } = data;
	if (run_id === undefined || typeof call_id !== "string" || typeof tool !== "string" || !isToolState(status)) return;
	telling.audit({
		domain: "tools",
		operation: status,
		caller: agent,
		payload: { run_id, session, call_id, tool, ms: typeof ms === "number" ? ms : undefined },
	});
	telling.agent({ event_type: "tool", session, run_id, agent, id: call_id, tool, state: status });
}

const isToolState = (status: unknown): status is string =>
	status === "started" || status === "completed" || status === "failed";

const approvals: Tellers<ApprovalOps> = {
	open: (telling, row) => questioned(telling, row, row.state === "pending" ? "asked" : row.state, row.by),
	decide: (telling, question, { state, by }) => questioned(telling, question, state, by),
	withdrawRun(telling, run_id) {
		const { session } = telling;
		telling.audit({ domain: "approvals", operation: "withdrawn", payload: { run_id } });
		if (session !== undefined) telling.agent({ event_type: "approval", session, run_id, state: "withdrawn" });
	},
	withdrawSession(telling, session) {
		telling.audit({ domain: "approvals", operation: "withdrawn", payload: { session } });
		telling.agent({ event_type: "approval", session, state: "withdrawn" });
	},
};

function questioned(telling: Telling, question: OpenQuestion, operation: string, by: string | undefined): void {
	const { id, runId: run_id, session, tool, agent } = question;
	telling.audit({ domain: "approvals", operation, caller: by, payload: { approval_id: id, run_id, session, tool } });
	const state = operation === "asked" ? "pending" : operation;
	telling.agent({ event_type: "approval", session, run_id, agent, id, tool, state });
}

const deliveries: Tellers<DeliveryOps> = {
	open(telling, { id: delivery_id, runId: run_id, channel, account }) {
		const caller = `${channel}/${account}`;
		telling.audit({ domain: "deliveries", operation: "begun", caller, payload: { delivery_id, run_id } });
	},
	finish: (telling, delivery_id, state) =>
		telling.audit({ domain: "deliveries", operation: "ended", payload: { delivery_id, state } }),
	failed: (telling, delivery_id) =>
		telling.audit({ domain: "deliveries", operation: "failed_later", payload: { delivery_id } }),
	reopen: (telling, delivery_id) =>
		telling.audit({ domain: "deliveries", operation: "reopened", payload: { delivery_id } }),
};

const memory: Tellers<MemoryOps> = {
	add: (telling, item) => remembered(telling, "retained", item, item.provenance),
	forget: (telling, item, by) => remembered(telling, "forgotten", item, by),
};

function remembered(
	telling: Telling,
	event_type: MemoryEvent["event_type"],
	{ id: memory_id, bank }: Pick<MemoryItem, "id" | "bank">,
	{ runId: run_id, agent }: MemoryProvenance,
): void {
	telling.audit({ domain: "memory", operation: event_type, caller: agent, payload: { memory_id, bank, run_id } });
	telling.memory({ event_type, memory_id, bank, run_id, agent });
}

const grants: Tellers<GrantOps> = {
	save: (telling, { id: grant_id, session, tool, by: caller }) =>
		telling.audit({ domain: "grants", operation: "given", caller, payload: { grant_id, session, tool } }),
	revoke: (telling, grant_id) => telling.audit({ domain: "grants", operation: "revoked", payload: { grant_id } }),
};

const pairings: Tellers<PairingOps> = {
	save(telling, pairing) {
		const operation = pairing.state === "approved" ? "approved" : "asked";
		telling.audit({ domain: "pairings", operation, caller: callerOf(pairing) });
	},
	remove: (telling, person) =>
		telling.audit({ domain: "pairings", operation: "removed", payload: { person: callerOf(person) } }),
};

type AnyTeller = (telling: Telling, ...args: readonly unknown[]) => void;

/** By thing and operation: a write that is missing here is not recorded. */
const TELLERS = { inbox, turns, execution, approvals, deliveries, memory, grants, pairings } as unknown as Readonly<
	Record<string, Readonly<Record<string, AnyTeller | undefined>> | undefined>
>;
