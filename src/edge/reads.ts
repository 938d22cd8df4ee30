/** What exists, as the API tells it: events, runs, sessions and turns, from Ledger, Broker and Bus together. */

import { type Broker, chainOf, type LiveRun } from "../broker/broker.ts";
import type { Bus } from "../bus/bus.ts";
import type { Ledger, Turn } from "../ledger/ledger.ts";
import {
	type EventJson,
	type EventListJson,
	NexusError,
	type RunJson,
	type RunListJson,
	type SessionListJson,
	type TurnsJson,
} from "../protocol/protocol.ts";
import { eventView, liveView, sessionView, turnView } from "./present.ts";
import type { Input } from "./routes.ts";

const LIMIT_DEFAULT = 50;
/** How often a page of turns is read again when a run settled meanwhile. */
const SNAPSHOT_TRIES_MAX = 20;

export interface Reads {
	event(eventId: string): EventJson;
	events(query: Input<"listEvents">["query"]): EventListJson;
	run(runId: string): Promise<RunJson>;
	runs(query: Input<"listRuns">["query"]): Promise<RunListJson>;
	sessions(query: Input<"listSessions">["query"]): SessionListJson;
	turns(session: string, query: Input<"listTurns">["query"]): Promise<TurnsJson>;
}

export function createReads(bus: Bus, ledger: Ledger, broker: Broker, listItemsMax: number): Reads {
	const clamp = (limit: number | undefined) => Math.min(limit ?? LIMIT_DEFAULT, listItemsMax);
	const settled = async (turn: Turn): Promise<RunJson> =>
		turnView(turn, (await bus.describe(turn.runId)) !== undefined);
	/** A run is live until its turn is saved: the Ledger is asked first, because the Broker may learn of it later. */
	const liveOnly = (run: LiveRun | undefined): run is LiveRun => run !== undefined && !ledger.turn(run.runId);
	const snapshot = createSnapshot(bus, ledger, broker);

	return {
		event(eventId) {
			const event = ledger.event(eventId);
			if (!event) throw new NexusError("not_found", `there is no event ${eventId}`);
			return eventView(event);
		},
		events: ({ limit, ...query }) => ({ events: ledger.events({ ...query, limit: clamp(limit) }).map(eventView) }),
		async run(runId) {
			const turn = ledger.turn(runId);
			if (turn) return await settled(turn);
			const run = broker.live(runId);
			if (!run) throw new NexusError("not_found", `there is no run ${runId}`);
			return liveView(run);
		},
		async runs({ session, limit, before }) {
			const most = clamp(limit);
			const running = broker
				.liveRuns()
				.filter((run) => liveOnly(run) && (!session || run.session === session) && (!before || run.runId < before))
				.map(liveView);
			const turns = ledger.turns({ limit: most, ...(session && { session }), ...(before && { before }) });
			const runs = [...running, ...(await Promise.all(turns.map(settled)))];
			return { runs: runs.sort((left, right) => (left.run_id < right.run_id ? 1 : -1)).slice(0, most) };
		},
		sessions({ limit, before }) {
			const liveRunIds = new Map(broker.liveRuns().map((run) => [run.session, run.runId]));
			const sessions = ledger.sessions({ limit: clamp(limit), ...(before !== undefined && { before }) });
			return { sessions: sessions.map((info) => sessionView(info, liveRunIds.get(info.session))) };
		},
		async turns(session, { limit, before }) {
			const found = await snapshot(session, { limit: clamp(limit), ...(before && { before }) });
			return {
				turns: await Promise.all(found.turns.reverse().map(settled)),
				live: liveOnly(found.live) ? liveView(found.live) : null,
				queued: ledger
					.events({ session, state: "queued", limit: listItemsMax })
					.reverse()
					.map(({ eventId, text, receivedAt }) => ({ event_id: eventId, text, received_at: receivedAt })),
				stream_offset: found.offset,
			};
		},
	};
}

interface Snapshot {
	turns: Turn[];
	live: LiveRun | undefined;
	offset: number;
}

/**
 * Turns, live run and stream offset of one moment. The Bus answers later than the Ledger, so a run may settle in
 * between; then the offset would repeat or miss it, and the moment is taken again.
 */
function createSnapshot(bus: Bus, ledger: Ledger, broker: Broker) {
	return async (session: string, page: { limit: number; before?: string }): Promise<Snapshot> => {
		const chain = chainOf(session);
		for (let tries = 0; tries < SNAPSHOT_TRIES_MAX; tries++) {
			const [range, [newest]] = await Promise.all([bus.describeChain(chain), bus.list({ chain, limit: 1 })]);
			// From here to the return nothing is awaited.
			const lastTurn = ledger.turns({ session, limit: 1 })[0];
			const live = broker.liveRuns().find((run) => run.session === session);
			const moment = { turns: ledger.turns({ session, ...page }), live };
			if (!newest) {
				if (!live) return { ...moment, offset: range?.head ?? 0 };
			} else if (!ledger.turn(newest.log)) {
				return { ...moment, offset: newest.base };
			} else if (newest.sealedAt !== undefined && lastTurn?.runId === newest.log) {
				return { ...moment, offset: newest.base + newest.head };
			}
		}
		throw new NexusError("busy", "runs of this session settle faster than they can be listed; try again");
	};
}
