/** What a dead daemon left: its runs are ended, and the messages that waited in it go on. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Broker } from "../../broker/broker.ts";
import { ADMIT_MS_MAX, type Bus } from "../../bus/bus.ts";
import { inboxWrites, type Ledger, type Turn } from "../../ledger/ledger.ts";
import type { Write } from "../../std/write.ts";
import type { Hooks } from "../plugins/hooks.ts";
import type { Outbound } from "../port.ts";
import { stagesOf, traceWrite } from "./answer.ts";
import type { InboxLimits } from "./limits.ts";
import { recorded, together } from "./message.ts";
import type { Sessions } from "./sessions.ts";

export interface InboxRecoveryDeps {
	broker: Broker;
	bus: Bus;
	ledger: Ledger;
	outbound: Pick<Outbound, "deliveries">;
	hooks(): Hooks;
	inboxLimits: Pick<InboxLimits, "queuedStaleMs">;
	clock: Clock;
	log: Log;
}

/** That a trace names. */
const DELIVERIES_MAX = 100;

/** A store that does not let them be taken over is asked again after this. */
const RETRY_MS = 5_000;

/** `missing` begins with what the ended runs still owe: a chat gets those answers before the ones to what waited (I7). */
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

/** Messages that wait in no living daemon wait here from now on. A failing store does not keep this one from starting. */
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
		log.error({ err: cause, againMs: RETRY_MS }, "messages that waited could not be taken over yet");
		clock.after(RETRY_MS, () => void takeOver(deps, sessions));
	}
}

/** The way of a message whose run another daemon began, as far as it is on record: what `prepare` did died with it. */
async function settleOrphans({ ledger, outbound, hooks }: InboxRecoveryDeps, turn: Turn): Promise<Write[]> {
	const { runId, messages, startedAt } = turn;
	const asked = messages.flatMap(({ eventId }) => eventId ?? []);
	const events = await Promise.all(asked.map(async (eventId) => ledger.inbox.get(eventId)));
	const known = events.flatMap((event) => (event ? [recorded(event)] : []));
	if (known.length === 0) return [];
	const deliveries = (await outbound.deliveries({ runId, limit: DELIVERIES_MAX })).map(({ id }) => id);
	const isWhole = deliveries.length === 0 && !hooks().has("onComplete");
	return [traceWrite({ runId, message: together(known, startedAt), deliveries }, stagesOf(turn, isWhole))];
}
