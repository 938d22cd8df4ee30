/** What a dead daemon left: its runs are ended, and the messages that waited in it go on. */

import type { Broker } from "../../broker/broker.ts";
import type { Bus } from "../../bus/bus.ts";
import { inboxWrites, type Ledger, type Turn } from "../../ledger/ledger.ts";
import type { Clock } from "../../std/clock.ts";
import type { Write } from "../../std/write.ts";
import type { Hooks } from "../hooks/hooks.ts";
import type { Outbound } from "../port.ts";
import { stagesOf, traceWrite } from "./answer.ts";
import type { InboxLimits } from "./limits.ts";
import { recorded, together } from "./message.ts";
import type { Sessions } from "./sessions.ts";

export interface RecoveryDeps {
	broker: Broker;
	bus: Bus;
	ledger: Ledger;
	outbound: Pick<Outbound, "deliveries">;
	hooks(): Hooks;
	inboxLimits: Pick<InboxLimits, "queuedStaleMs">;
	clock: Clock;
}

/** That a trace names. */
const DELIVERIES_MAX = 100;

export async function recover(deps: RecoveryDeps, sessions: Sessions): Promise<{ recovered: number }> {
	const { broker, bus, ledger, clock, inboxLimits } = deps;
	const { recovered, later } = await broker.recover((turn) => settleLeft(deps, turn));
	await Promise.all(later.map(({ session, saved }) => sessions.occupy(session, saved)));
	const oldest = clock.now() - inboxLimits.queuedStaleMs;
	const { stale = [], fresh = [] } = Object.groupBy(await ledger.inbox.left(), ({ receivedAt }) =>
		receivedAt < oldest ? "stale" : "fresh",
	);
	const rejected = { state: "rejected", because: "stale" } as const;
	const writes = stale.map(({ eventId }) => inboxWrites.dispose(eventId, rejected, ["queued"]));
	if (fresh.length > 0) writes.push(inboxWrites.adopt(fresh.map(({ eventId }) => eventId)));
	if (writes.length > 0) await bus.write(writes);
	await sessions.restore(fresh.map(recorded));
	return { recovered };
}

/** The way of a message whose run another daemon began, as far as it is on record: what `prepare` did died with it. */
async function settleLeft({ ledger, outbound, hooks }: RecoveryDeps, turn: Turn): Promise<Write[]> {
	const { runId, messages, startedAt } = turn;
	const asked = messages.flatMap(({ eventId }) => eventId ?? []);
	const events = await Promise.all(asked.map((eventId) => ledger.inbox.get(eventId)));
	const known = events.flatMap((event) => (event ? [recorded(event)] : []));
	if (known.length === 0) return [];
	const deliveries = (await outbound.deliveries({ runId, limit: DELIVERIES_MAX })).map(({ id }) => id);
	const isWhole = deliveries.length === 0 && !hooks().has("onComplete");
	return [traceWrite({ runId, message: together(known, startedAt), deliveries }, stagesOf(turn, isWhole))];
}
