/** Sessions: their turns, settings and phases, and the log of their runs. */

import { z } from "zod";
import { type Broker, chainOf, type LiveRun } from "../../broker/broker.ts";
import type { Bus } from "../../bus/bus.ts";
import type { InboundEvent } from "../../ledger/inbox/port.ts";
import { sessionSnapshot } from "../../ledger/ledger.ts";
import type { SessionInfo } from "../../ledger/sessions/port.ts";
import type { Turn } from "../../ledger/turns/port.ts";
import type { EdgeDeps, EdgeLimits } from "../port.ts";
import { QueuedView, queuedView, writerOf } from "./messages.ts";
import {
	author,
	component,
	count,
	get,
	type HandlersOf,
	LIMIT_DEFAULT,
	limit,
	name,
	named,
	offset,
	put,
	sessionParams,
	time,
	viewOf,
} from "./resource.ts";
import { RunView } from "./run-view.ts";
import { pageQuery, runReader } from "./runs.ts";

const SessionView = component("Session", {
	session: z.string(),
	created_at: time,
	updated_at: time,
	turns: count,
	title: z.string().describe("The beginning of the first message that was answered; empty until then."),
	live_run_id: z.string().exactOptional(),
	channel: z.string().exactOptional().describe("The platform of a session that a person other than the owner began."),
	...author("The id, on the platform, of the person who began the session."),
	group: z.literal(true).exactOptional().describe("Several people write in it."),
	chat_name: z.string().exactOptional(),
});
const SessionList = component("SessionList", {
	sessions: z.array(SessionView),
	engine: z.string().exactOptional().describe("The name of what answers a message that is sent now."),
	scripted: z.literal(true).exactOptional().describe("No model answers, but a script."),
});
const SessionTurns = component("SessionTurns", {
	turns: z.array(RunView).describe("Oldest first."),
	live: RunView.nullable(),
	queued: z.array(QueuedView),
	stream_offset: count.describe("Subscribe to the session stream after it: nothing is missed, nothing repeated."),
});

const PhaseRequest = component("PhaseRequest", {
	name: z.string().min(1).max(64),
	because: z.string().max(1000).exactOptional(),
});
const PhaseView = named("PhaseJson", {
	name: z.string(),
	since: time,
	from: z.string().exactOptional().describe("The phase before."),
	because: z.string().exactOptional(),
	turns: count.describe("Turns that settled in it."),
	completions: count.describe("Times that an agent completed its work in it."),
});
const SessionPhase = component("SessionPhase", {
	session: z.string(),
	phase: PhaseView.nullable(),
	known: z.array(z.string()).exactOptional().describe("The names that the engine knows."),
});

const trustHistory = z
	.boolean()
	.describe(
		"Everything in the session's history may act with the rights of the sender of a run. Holds for its next runs.",
	);
const SessionSettingsRequest = component("SessionSettingsRequest", z.strictObject({ trust_history: trustHistory }));
const SessionSettings = component("SessionSettings", { session: z.string(), trust_history: trustHistory });

const LogEntryView = named("LogEntryJson", {
	id: count,
	run_id: z.string().exactOptional(),
	at: time,
	kind: z.string(),
	agent: z.string().exactOptional(),
	text: z.string(),
	data: z.record(z.string(), z.unknown()).exactOptional(),
});
const SessionLog = component("SessionLog", { entries: z.array(LogEntryView).describe("Oldest first.") });

export const SESSION_ROUTES = {
	listSessions: get("/v1/sessions", "Sessions, most recently used first.", {
		query: z.object({
			limit,
			before: offset
				.optional()
				.describe("Only sessions last used before this time (`updated_at` of the last one seen)."),
		}),
		answer: SessionList,
	}),
	listTurns: get(
		"/v1/sessions/{session}/turns",
		"A session's turns, what is live and queued, and where its stream continues.",
		{ params: sessionParams, query: pageQuery, answer: SessionTurns },
	),
	getPhase: get("/v1/sessions/{session}/phase", "What a session works on, since when, and what was done in it.", {
		params: sessionParams,
		answer: SessionPhase,
	}),
	setPhase: put(
		"/v1/sessions/{session}/phase",
		"Sets a session's phase; a name that the engine does not know is refused with those it knows.",
		{ params: sessionParams, body: PhaseRequest, answer: SessionPhase },
	),
	getSettings: get(
		"/v1/sessions/{session}/settings",
		"What the owner has set for a session, by this or in the configuration.",
		{ params: sessionParams, answer: SessionSettings },
	),
	setSettings: put(
		"/v1/sessions/{session}/settings",
		"Sets whether a session's history is trusted; it holds for the next runs, and is stronger than the configuration.",
		{ params: sessionParams, body: SessionSettingsRequest, answer: SessionSettings },
	),
	listLog: get(
		"/v1/sessions/{session}/log",
		"The execution log of a session: tools, routing, phases, attempts; the newest entries, oldest first.",
		{
			params: sessionParams,
			query: z.object({
				run: name.optional().describe("Only this run's entries."),
				before: offset.optional().describe("An entry's id: only older ones."),
				limit,
			}),
			answer: SessionLog,
		},
	),
};

const ENTRIES_DEFAULT = 200;
const BECAUSE = "set by the owner";

export function sessionHandlers(deps: EdgeDeps, { listItemsMax }: EdgeLimits): HandlersOf<typeof SESSION_ROUTES> {
	const { bus, broker, ledger, trust, engine } = deps;
	const { settled, running } = runReader(deps);
	const clamp = (limit: number) => Math.min(limit, listItemsMax);
	const settingsOf = async (session: string) => ({ session, trust_history: await trust.of(session) });
	const phaseOf = async (session: string) => {
		const { phase, known } = await broker.phases.of(session);
		return { session, phase: phase ? viewOf(PhaseView, phase) : null, known: known && [...known] };
	};
	return {
		async listSessions({ query: { limit = LIMIT_DEFAULT, before } }) {
			const sessions = await ledger.sessions.list({ limit: clamp(limit), before });
			const liveRunIds = new Map(broker.liveRuns().map((run) => [run.session, run.runId]));
			return {
				sessions: sessions.map((info) => sessionView(info, liveRunIds.get(info.session))),
				engine: engine.name,
				scripted: engine.scripted || undefined,
			};
		},
		async listTurns({ params: { session }, query: { limit = LIMIT_DEFAULT, before } }) {
			const page = { limit: clamp(limit), before: before || undefined };
			const found = await takeSnapshot(bus, broker, session, page);
			return {
				turns: await Promise.all(found.turns.toReversed().map(settled)),
				live: found.live ? await running(found.live) : null,
				queued: found.queued.slice(-listItemsMax).map(queuedView),
				stream_offset: found.offset,
			};
		},
		getPhase: ({ params: { session } }) => phaseOf(session),
		async setPhase({ params: { session }, body: { name, because = BECAUSE } }) {
			await broker.phases.enter(session, name, because);
			return phaseOf(session);
		},
		getSettings: ({ params: { session } }) => settingsOf(session),
		async setSettings({ params: { session }, body: { trust_history: trusted } }) {
			await trust.set(session, trusted);
			return settingsOf(session);
		},
		async listLog({ params: { session }, query: { run: runId, before, limit = ENTRIES_DEFAULT } }) {
			const entries = await ledger.execution.list({ session, runId, before, limit: clamp(limit) });
			return { entries: entries.toReversed().map((entry) => viewOf(LogEntryView, entry)) };
		},
	};
}

function sessionView(info: SessionInfo, liveRunId: string | undefined) {
	const writer = writerOf(info.origin);
	const { type, name } = info.origin?.chat ?? {};
	const group = writer && type === "group" ? (true as const) : undefined;
	const chatName = writer && typeof name === "string" ? name : undefined;
	return { ...viewOf(SessionView, { ...info, liveRunId, group, chatName }), ...writer };
}

interface Snapshot {
	turns: Turn[];
	queued: InboundEvent[];
	live: LiveRun | undefined;
	offset: number;
}

/**
 * Turns, queued messages, live run and stream offset of one moment (ST17): the store is asked once. A run begins in one commit with what
 * became of its messages, and ends in one commit with its turn, so nothing is shown twice.
 */
async function takeSnapshot(
	bus: Bus,
	broker: Broker,
	session: string,
	page: { limit: number; before?: string },
): Promise<Snapshot> {
	const before = broker.liveRuns();
	const { newest, head, answer } = await bus.describeChainWith(chainOf(session), sessionSnapshot(session, page));
	const { turns, newestTurn, queued } = answer;
	if (!newest) return { turns, queued, live: undefined, offset: head };
	const { log: runId, base, sealedAt } = newest;
	// Frames without a turn are all that there is of a run, also when it has ended and its turn could not be saved.
	const offset = newestTurn?.runId === runId ? base + newest.head : base;
	// The run may have settled since, or the Broker may not yet know that it began.
	const found = broker.live(runId) ?? before.find((run) => run.runId === runId);
	return { turns, queued, live: sealedAt === undefined ? found : undefined, offset };
}
