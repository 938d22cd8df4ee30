/** Queries of the API: events, runs, sessions and turns, read from Ledger, Broker and Bus together. */

import {
	type EventJson,
	type EventListJson,
	NexusError,
	type RunJson,
	type RunListJson,
	type SessionListJson,
	type TurnsJson,
} from "@nexus-stream/protocol";
import { type Broker, chainOf, type LiveRun } from "../../broker/broker.ts";
import type { Bus } from "../../bus/bus.ts";
import type { InboundEvent } from "../../ledger/inbox/port.ts";
import { type Ledger, sessionSnapshot } from "../../ledger/ledger.ts";
import type { Turn } from "../../ledger/turns/port.ts";
import { eventView, liveView, queuedView, sessionView, turnView, writerOf } from "./present.ts";
import type { RouteInput } from "./routes.ts";

const LIMIT_DEFAULT = 50;

export interface Reads {
	event(eventId: string): Promise<EventJson>;
	events(query: RouteInput<"listEvents">["query"]): Promise<EventListJson>;
	run(runId: string): Promise<RunJson>;
	runs(query: RouteInput<"listRuns">["query"]): Promise<RunListJson>;
	sessions(query: RouteInput<"listSessions">["query"]): Promise<SessionListJson>;
	turns(session: string, query: RouteInput<"listTurns">["query"]): Promise<TurnsJson>;
}

export function createReads(bus: Bus, ledger: Ledger, broker: Broker, listItemsMax: number): Reads {
	const clamp = (limit: number | undefined) => Math.min(limit ?? LIMIT_DEFAULT, listItemsMax);
	/** Adds the author to messages of other people; the owner's messages carry no name. */
	const withWriters = async (run: RunJson): Promise<RunJson> => {
		const eventIds = run.messages.flatMap(({ event_id: eventId }) => eventId ?? []);
		const authors = eventIds.length === 0 ? [] : await ledger.inbox.authors(eventIds);
		const writers = new Map(authors.map(({ eventId, origin }) => [eventId, writerOf(origin)]));
		return { ...run, messages: run.messages.map((said) => ({ ...said, ...writers.get(said.event_id ?? "") })) };
	};
	const settled = async (turn: Turn): Promise<RunJson> => withWriters(await told(turn));
	const running = (run: LiveRun): Promise<RunJson> => withWriters(liveView(run));
	const told = async (turn: Turn): Promise<RunJson> => {
		const hasFrames = (await bus.describe(turn.runId)) !== undefined;
		if (turn.status === "completed") return turnView(turn, hasFrames, undefined);
		const { canContinue, retryRefusal } = await broker.resumption(turn);
		return turnView(turn, hasFrames, { canContinue, canRetry: retryRefusal === undefined });
	};
	/** A run is live until its turn is saved: the Ledger has the last word, because the Broker may learn of it later. */
	const unsettled = async (runs: readonly LiveRun[]): Promise<LiveRun[]> => {
		const turns = await Promise.all(runs.map(async (run) => ledger.turns.get(run.runId)));
		return runs.filter((_, index) => !turns[index]);
	};

	return {
		async event(eventId) {
			const event = await ledger.inbox.get(eventId);
			if (!event) throw new NexusError("not_found", `there is no event ${eventId}`);
			return eventView(event);
		},
		async events({ limit, ...query }) {
			const events = await ledger.inbox.list({ ...query, limit: clamp(limit) });
			return { events: events.map(eventView) };
		},
		async run(runId) {
			// Asked before the Ledger: a run that settles meanwhile is a turn then.
			const run = broker.live(runId);
			const turn = await ledger.turns.get(runId);
			if (turn) return await settled(turn);
			if (!run) throw new NexusError("not_found", `there is no run ${runId}`);
			return running(run);
		},
		async runs({ session, limit, before }) {
			const most = clamp(limit);
			const begun = broker
				.liveRuns()
				.filter((run) => (!session || run.session === session) && (!before || run.runId < before));
			const live = await unsettled(begun);
			const turns = await ledger.turns.begun({
				limit: most,
				session: session || undefined,
				before: before || undefined,
			});
			// A run that settled between the two reads is already among the turns.
			const others = live.filter(({ runId }) => turns.every((turn) => turn.runId !== runId));
			const runs = await Promise.all([...others.map(running), ...turns.map(settled)]);
			return { runs: runs.sort((left, right) => (left.run_id < right.run_id ? 1 : -1)).slice(0, most) };
		},
		async sessions({ limit, before }) {
			const sessions = await ledger.sessions.list({ limit: clamp(limit), before });
			const liveRunIds = new Map(broker.liveRuns().map((run) => [run.session, run.runId]));
			return { sessions: sessions.map((info) => sessionView(info, liveRunIds.get(info.session))) };
		},
		async turns(session, { limit, before }) {
			const found = await takeSnapshot(bus, broker, session, { limit: clamp(limit), before: before || undefined });
			return {
				turns: await Promise.all(found.turns.toReversed().map(settled)),
				live: found.live ? await running(found.live) : null,
				queued: found.queued.slice(-listItemsMax).map(queuedView),
				stream_offset: found.offset,
			};
		},
	};
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
