/** Recovery after the end of another daemon: ends its runs and restores the messages that waited in it. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Broker } from "../../broker/broker.ts";
import { ADMIT_MS_MAX, type Bus } from "../../bus/bus.ts";
import { inboxWrites } from "../../ledger/inbox/port.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Turn } from "../../ledger/turns/port.ts";
import type { Write } from "../../std/write.ts";
import type { Hooks } from "../plugins/hooks.ts";
import type { DeliveryPort } from "../port.ts";
import { stagesOf, traceWrite } from "./answer.ts";
import type { InboxLimits } from "./config.ts";
import { recorded, together } from "./message.ts";
import type { Sessions } from "./sessions.ts";

export interface InboxRecoveryDeps {
	broker: Broker;
	bus: Bus;
	ledger: Ledger;
	outbound: Pick<DeliveryPort, "deliveries">;
	hooks(): Hooks;
	inboxLimits: Pick<InboxLimits, "queuedStaleMs">;
	clock: Clock;
	log: Log;
}

/** Deliveries that a trace lists. */
const DELIVERIES_MAX = 100;

/** Delay before the takeover is retried after a store failure. */
const RETRY_MS = 5_000;

/** `planned` starts the pending deliveries of the ended runs, so that a chat gets those answers before newer ones (I7). */
export async function recover(
	deps: InboxRecoveryDeps,
	sessions: Sessions,
	planned: () => Promise<void>,
): Promise<{ recovered: number }> {
	const { recovered, later } = await deps.broker.recover((turn) => settleOrphans(deps, turn));
	await Promise.all(later.map(({ session, saved }) => sessions.occupy(session, saved)));
	await planned();
	await takeOver(deps, sessions);
	return { recovered };
}

/** Adopts messages that wait in no living daemon. A failing store does not prevent this daemon from starting. */
async function takeOver(deps: InboxRecoveryDeps, sessions: Sessions): Promise<void> {
	const { bus, ledger, clock, log, inboxLimits } = deps;
	try {
		const oldest = clock.now() - inboxLimits.queuedStaleMs;
		const { stale = [], fresh = [] } = Object.groupBy(await ledger.inbox.orphaned(), ({ receivedAt }) =>
			receivedAt < oldest ? "stale" : "fresh",
		);
		const rejected = { state: "rejected", because: "stale" } as const;
		const writes = stale.map(({ eventId }) => inboxWrites.dispose(eventId, rejected, ["queued"]));
		if (fresh.length > 0) writes.push(inboxWrites.adopt(fresh.map(({ eventId }) => eventId)));
		if (writes.length > 0) await bus.write(writes, ADMIT_MS_MAX);
		await sessions.restore(fresh.map(recorded));
	} catch (cause) {
		if (sessions.closed) return;
		log.error({ err: cause, againMs: RETRY_MS }, "waiting messages of another daemon could not be taken over yet");
		clock.after(RETRY_MS, () => void takeOver(deps, sessions));
	}
}

/** The trace of a run that another daemon began, as far as it is on record; the results of `prepare` were lost with that daemon. */
async function settleOrphans({ ledger, outbound, hooks }: InboxRecoveryDeps, turn: Turn): Promise<Write[]> {
	const { runId, messages, startedAt } = turn;
	const eventIds = messages.flatMap(({ eventId }) => eventId ?? []);
	const events = await Promise.all(eventIds.map(async (eventId) => ledger.inbox.get(eventId)));
	const found = events.flatMap((event) => (event ? [recorded(event)] : []));
	if (found.length === 0) return [];
	const deliveries = (await outbound.deliveries({ runId, limit: DELIVERIES_MAX })).map(({ id }) => id);
	const isComplete = deliveries.length === 0 && !hooks().has("onComplete");
	return [traceWrite({ runId, message: together(found, startedAt), deliveries }, stagesOf(turn, isComplete))];
}
