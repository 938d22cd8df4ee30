/** Goes on with runs that were cut off, or answers their messages from the start: as a new run, delivered to where they came from (A1). */

import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Broker, Continuation } from "../../broker/broker.ts";
import type { InboundEvent, Ledger, Turn } from "../../ledger/ledger.ts";
import { type InboxMessage, recorded } from "./message.ts";
import type { Sessions } from "./sessions.ts";

export interface ContinuingDeps {
	broker: Pick<Broker, "continuation" | "retryRefusal">;
	ledger: Pick<Ledger, "turns" | "inbox">;
	clock: Clock;
}

/** What became of the question that the run was cut off at. */
export type Answered = NonNullable<Continuation["answer"]>;

export class Continuing {
	readonly #deps: ContinuingDeps;
	readonly #sessions: Sessions;
	/** By the run that is continued, or retried: its new run has not begun yet. */
	readonly #beginning = new Map<string, Promise<{ runId: string }>>();
	readonly #retrying = new Map<string, Promise<{ runId: string }>>();

	constructor(deps: ContinuingDeps, sessions: Sessions) {
		this.#deps = deps;
		this.#sessions = sessions;
	}

	/** Asked twice, it is the same new run. Rejects with `not_found`, or with `conflict` and the reason. */
	continue(runId: string, answer: Answered | undefined): Promise<{ runId: string }> {
		const known = this.#beginning.get(runId);
		if (known) return known;
		const begun = this.#begin(runId, answer).finally(() => this.#beginning.delete(runId));
		this.#beginning.set(runId, begun);
		return begun;
	}

	/**
	 * A new run of the same messages, for any engine. What the first run said and did stays on record and in its context: its tools may have
	 * acted. Rejects as `continue` does.
	 */
	retry(runId: string): Promise<{ runId: string }> {
		const known = this.#retrying.get(runId);
		if (known) return known;
		const begun = this.#again(runId).finally(() => this.#retrying.delete(runId));
		this.#retrying.set(runId, begun);
		return begun;
	}

	async #again(runId: string): Promise<{ runId: string }> {
		const { broker, ledger } = this.#deps;
		const turn = await ledger.turns.get(runId);
		if (!turn) throw new NexusError("not_found", `there is no run ${runId} that has ended`);
		const because = await broker.retryRefusal(turn);
		if (because !== undefined) throw new NexusError("conflict", `run ${runId} cannot be retried: ${because}`);
		const messages = await this.#askedIn(turn);
		if (messages.length === 0)
			throw new NexusError("conflict", `run ${runId} cannot be retried: its messages are not on record`);
		const { runId: id } = await this.#sessions.resume({
			session: turn.session,
			messages,
			begin: () => [],
			settle: () => [],
		});
		return { runId: id };
	}

	/** Everything that people wrote to the run and to those that it continues, oldest first. */
	async #askedIn(last: Turn): Promise<InboxMessage[]> {
		const { ledger, clock } = this.#deps;
		const said: Turn["messages"][number][] = [];
		for (let turn: Turn | undefined = last; turn; ) {
			said.unshift(...turn.messages.filter(({ role }) => role === "user"));
			turn = turn.continues === undefined ? undefined : await ledger.turns.get(turn.continues);
		}
		const events = await Promise.all(said.map(async ({ eventId = "" }) => ledger.inbox.get(eventId)));
		return events.filter((event) => event !== undefined).map((event) => anew(event, clock.now()));
	}

	async #begin(runId: string, answer: Answered | undefined): Promise<{ runId: string }> {
		const before = await this.#continuedBy(runId);
		if (before) return before;
		try {
			return await this.#start(runId, answer);
		} catch (cause) {
			// Another daemon of the same store may have been faster.
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
		const { runId: id } = await this.#sessions.resume({
			session: root.session,
			messages,
			begin: () => [],
			settle: () => [],
			continues: { ...continues, ...(answer && { answer }) },
		});
		return { runId: id };
	}

	/** What the first run was asked; later messages of people are in the checkpoint. */
	async #messagesOf(root: Turn | undefined): Promise<InboxMessage[]> {
		const { ledger, clock } = this.#deps;
		const said = root?.messages ?? [];
		const answered = said.findIndex(({ role }) => role === "assistant");
		const asked = said.slice(0, answered < 0 ? said.length : answered);
		const events = await Promise.all(asked.map(async ({ eventId = "" }) => ledger.inbox.get(eventId)));
		// One that joined it before its first word.
		const isOwn = (event: InboundEvent | undefined) => event !== undefined && event.disposition.state !== "injected";
		return events.filter(isOwn).map((event) => anew(event!, clock.now()));
	}
}

/** As it was let in, with the times of now: the trace of the new run is not that of the old one. */
function anew(event: InboundEvent, now: number): InboxMessage {
	const message = recorded(event);
	return { ...message, facts: { ...message.facts, timings: [], queuedAt: now } };
}
