/** After an interruption: ends the runs of a dead daemon, restores the messages that waited in it, and continues or repeats interrupted runs. */

import { NexusError, Refused } from "@nexus-stream/protocol";
import type { Continuation } from "../../broker/broker.ts";
import { ADMIT_MS_MAX, orphans } from "../../bus/bus.ts";
import { type InboundEvent, inboxWrites } from "../../ledger/inbox/port.ts";
import type { Turn } from "../../ledger/turns/port.ts";
import type { Write } from "../../std/write.ts";
import { stagesOf, traceWrite } from "./answer.ts";
import type { InboxDeps } from "./deps.ts";
import { type InboxMessage, recorded, together } from "./message.ts";
import type { Sessions } from "./sessions.ts";

/** Deliveries that a trace lists. */
const DELIVERIES_MAX = 100;

/** Delay before the takeover is retried after a store failure. */
const RETRY_MS = 5_000;

/** `planned` starts the pending deliveries of the ended runs, so that a chat gets those answers before newer ones (I7). */
export async function recover(
	deps: InboxDeps,
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
async function takeOver(deps: InboxDeps, sessions: Sessions): Promise<void> {
	const { bus, ledger, clock, log, inboxLimits } = deps;
	try {
		const oldest = clock.now() - inboxLimits.queuedStaleMs;
		const orphaned = await ledger.inbox.orphaned();
		// The messages of a session stay together, so that one daemon answers them in order.
		const groups = bus.isShared ? [...Map.groupBy(orphaned, ({ session }) => session).values()] : [orphaned];
		for (const portion of orphans.portions(groups, bus))
			await Promise.all(portion.map((messages) => adopt(deps, sessions, messages, oldest)));
	} catch (cause) {
		if (sessions.closed) return;
		log.error({ err: cause, againMs: RETRY_MS }, "waiting messages of another daemon could not be taken over yet");
		clock.after(RETRY_MS, () => void takeOver(deps, sessions));
	}
}

/** Refused as a whole when another daemon was faster. */
async function adopt(
	{ bus }: InboxDeps,
	sessions: Sessions,
	messages: readonly InboundEvent[],
	oldest: number,
): Promise<void> {
	const { stale = [], fresh = [] } = Object.groupBy(messages, ({ receivedAt }) =>
		receivedAt < oldest ? "stale" : "fresh",
	);
	const rejected = { state: "rejected", because: "stale" } as const;
	const writes = stale.map(({ eventId }) => inboxWrites.dispose(eventId, rejected, ["queued"]));
	if (fresh.length > 0) writes.push(inboxWrites.adopt(fresh.map(({ eventId }) => eventId)));
	if (writes.length === 0) return;
	try {
		await bus.write(writes, ADMIT_MS_MAX);
	} catch (cause) {
		if (bus.isShared && cause instanceof Refused && cause.refusal === "conflict") return;
		throw cause;
	}
	await sessions.restore(fresh.map(recorded));
}

/** The trace of a run that another daemon began, as far as it is on record; the results of `prepare` were lost with that daemon. */
async function settleOrphans({ ledger, outbound, hooks }: InboxDeps, turn: Turn): Promise<Write[]> {
	const { runId, messages, startedAt } = turn;
	const eventIds = messages.flatMap(({ eventId }) => eventId ?? []);
	const events = await Promise.all(eventIds.map(async (eventId) => ledger.inbox.get(eventId)));
	const found = events.flatMap((event) => (event ? [recorded(event)] : []));
	if (found.length === 0) return [];
	const deliveries = (await outbound.deliveries({ runId, limit: DELIVERIES_MAX })).map(({ id }) => id);
	const isComplete = deliveries.length === 0 && !hooks().has("onComplete");
	return [traceWrite({ runId, message: together(found, startedAt), deliveries }, stagesOf(turn, isComplete))];
}

/** The answer to the approval or question at which the run was interrupted. */
export type Answered = NonNullable<Continuation["answer"]>;

/** Continues interrupted runs, or answers their messages again: as a new run, delivered to the original chats (A1). */
export class Continuing {
	readonly #deps: InboxDeps;
	readonly #sessions: Sessions;
	/** Calls whose new run has not begun yet, by verb and interrupted run. */
	readonly #beginning = new Map<string, Promise<{ runId: string }>>();

	constructor(deps: InboxDeps, sessions: Sessions) {
		this.#deps = deps;
		this.#sessions = sessions;
	}

	/** A second call returns the same new run. Rejects with `not_found`, or with `conflict` and the reason. */
	continue(runId: string, answer: Answered | undefined): Promise<{ runId: string }> {
		return this.#once(`continue ${runId}`, () => this.#begin(runId, answer));
	}

	/**
	 * A new run of the same messages, for any engine. The first run stays on record and in the context, because its tools may have acted.
	 * Rejects as `continue` does.
	 */
	retry(runId: string): Promise<{ runId: string }> {
		return this.#once(`retry ${runId}`, () => this.#again(runId));
	}

	#once(key: string, begin: () => Promise<{ runId: string }>): Promise<{ runId: string }> {
		const begun = this.#beginning.get(key) ?? begin().finally(() => this.#beginning.delete(key));
		this.#beginning.set(key, begun);
		return begun;
	}

	async #again(runId: string): Promise<{ runId: string }> {
		const { broker, ledger } = this.#deps;
		const turn = await ledger.turns.get(runId);
		if (!turn) throw new NexusError("not_found", `there is no run ${runId} that has ended`);
		const { retryRefusal: because } = await broker.resumption(turn);
		if (because !== undefined) throw new NexusError("conflict", `run ${runId} cannot be retried: ${because}`);
		const messages = await this.#userMessagesOf(turn);
		if (messages.length === 0)
			throw new NexusError("conflict", `run ${runId} cannot be retried: its messages are not on record`);
		return this.#sessions.resume({ session: turn.session, messages });
	}

	/** All user messages of the run and of the runs that it continues, oldest first. */
	async #userMessagesOf(last: Turn): Promise<InboxMessage[]> {
		const { ledger } = this.#deps;
		const userMessages: Turn["messages"] = [];
		for (let turn: Turn | undefined = last; turn; ) {
			userMessages.unshift(...turn.messages.filter(({ role }) => role === "user"));
			turn = turn.continues === undefined ? undefined : await ledger.turns.get(turn.continues);
		}
		return this.#restarted(userMessages);
	}

	async #begin(runId: string, answer: Answered | undefined): Promise<{ runId: string }> {
		const before = await this.#continuedBy(runId);
		if (before) return before;
		try {
			return await this.#start(runId, answer);
		} catch (cause) {
			// Another daemon of the same store may have continued it first.
			const other = await this.#continuedBy(runId);
			if (other) return other;
			throw cause;
		}
	}

	async #continuedBy(runId: string): Promise<{ runId: string } | undefined> {
		const { continuedBy } = (await this.#deps.ledger.turns.get(runId)) ?? {};
		return continuedBy === undefined ? undefined : { runId: continuedBy };
	}

	async #start(runId: string, answer: Answered | undefined): Promise<{ runId: string }> {
		const { broker, ledger } = this.#deps;
		const continues = await broker.continuation(runId, answer !== undefined);
		const root = await ledger.turns.get(continues.root);
		const messages = await this.#messagesOf(root);
		if (!root || messages.length === 0)
			throw new NexusError("conflict", `run ${runId} cannot be continued: its messages are not on record`);
		return this.#sessions.resume({
			session: root.session,
			messages,
			continues: answer ? { ...continues, answer } : continues,
		});
	}

	/** The messages that started the first run; later user messages are in the checkpoint. */
	async #messagesOf(root: Turn | undefined): Promise<InboxMessage[]> {
		const all = root?.messages ?? [];
		const answered = all.findIndex(({ role }) => role === "assistant");
		const first = await this.#restarted(all.slice(0, answered < 0 ? all.length : answered));
		// Messages that joined the run before its first text are in the checkpoint, too.
		return first.filter(({ disposition }) => disposition.state !== "injected");
	}

	/** The recorded messages with fresh timings, so that the new run gets its own trace. */
	async #restarted(messages: Turn["messages"]): Promise<InboxMessage[]> {
		const { ledger, clock } = this.#deps;
		const events = await Promise.all(messages.map(async ({ eventId = "" }) => ledger.inbox.get(eventId)));
		return events.flatMap((event) => {
			if (!event) return [];
			const message = recorded(event);
			return [{ ...message, facts: { ...message.facts, timings: [], queuedAt: clock.now() } }];
		});
	}
}
