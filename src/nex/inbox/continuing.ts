/** Goes on with runs that were cut off: each becomes a new run for the same messages, delivered to where they came from (A1). */

import type { Broker, Continuation } from "../../broker/broker.ts";
import type { InboundEvent, Ledger, Turn } from "../../ledger/ledger.ts";
import { NexusError } from "../../protocol/protocol.ts";
import type { Clock } from "../../std/clock.ts";
import { type Message, recorded } from "./message.ts";
import type { Sessions } from "./sessions.ts";

export interface ContinuingDeps {
	broker: Pick<Broker, "continuation">;
	ledger: Pick<Ledger, "turns" | "inbox">;
	clock: Clock;
}

/** What became of the question that the run was cut off at. */
export type Answered = NonNullable<Continuation["answer"]>;

export class Continuing {
	readonly #deps: ContinuingDeps;
	readonly #sessions: Sessions;
	/** By the run that is continued: its new run has not begun yet. */
	readonly #beginning = new Map<string, Promise<{ runId: string }>>();

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
		const continues = await broker.continuation(runId);
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
	async #messagesOf(root: Turn | undefined): Promise<Message[]> {
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
function anew(event: InboundEvent, now: number): Message {
	const message = recorded(event);
	return { ...message, facts: { ...message.facts, timings: [], queuedAt: now } };
}
