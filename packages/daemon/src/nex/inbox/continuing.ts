/** Continues interrupted runs, or answers their messages again: as a new run, delivered to the original chats (A1). */

import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Broker, Continuation } from "../../broker/broker.ts";
import type { InboundEvent } from "../../ledger/inbox/port.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Turn } from "../../ledger/turns/port.ts";
import { type InboxMessage, recorded } from "./message.ts";
import type { Sessions } from "./sessions.ts";

export interface ContinuingDeps {
	broker: Pick<Broker, "continuation" | "resumption">;
	ledger: Pick<Ledger, "turns" | "inbox">;
	clock: Clock;
}

/** The answer to the approval or question at which the run was interrupted. */
export type Answered = NonNullable<Continuation["answer"]>;

export class Continuing {
	readonly #deps: ContinuingDeps;
	readonly #sessions: Sessions;
	/** Calls whose new run has not begun yet, by the interrupted run. */
	readonly #beginning = new Map<string, Promise<{ runId: string }>>();
	readonly #retrying = new Map<string, Promise<{ runId: string }>>();

	constructor(deps: ContinuingDeps, sessions: Sessions) {
		this.#deps = deps;
		this.#sessions = sessions;
	}

	/** A second call returns the same new run. Rejects with `not_found`, or with `conflict` and the reason. */
	continue(runId: string, answer: Answered | undefined): Promise<{ runId: string }> {
		const pending = this.#beginning.get(runId);
		if (pending) return pending;
		const begun = this.#begin(runId, answer).finally(() => this.#beginning.delete(runId));
		this.#beginning.set(runId, begun);
		return begun;
	}

	/**
	 * A new run of the same messages, for any engine. The first run stays on record and in the context, because its tools may have acted.
	 * Rejects as `continue` does.
	 */
	retry(runId: string): Promise<{ runId: string }> {
		const pending = this.#retrying.get(runId);
		if (pending) return pending;
		const begun = this.#again(runId).finally(() => this.#retrying.delete(runId));
		this.#retrying.set(runId, begun);
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
		const { runId: id } = await this.#sessions.resume({
			session: turn.session,
			messages,
			begin: () => [],
			settle: () => [],
		});
		return { runId: id };
	}

	/** All user messages of the run and of the runs that it continues, oldest first. */
	async #userMessagesOf(last: Turn): Promise<InboxMessage[]> {
		const { ledger, clock } = this.#deps;
		const userMessages: Turn["messages"][number][] = [];
		for (let turn: Turn | undefined = last; turn; ) {
			userMessages.unshift(...turn.messages.filter(({ role }) => role === "user"));
			turn = turn.continues === undefined ? undefined : await ledger.turns.get(turn.continues);
		}
		const events = await Promise.all(userMessages.map(async ({ eventId = "" }) => ledger.inbox.get(eventId)));
		return events.filter((event) => event !== undefined).map((event) => restarted(event, clock.now()));
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
		const { runId: id } = await this.#sessions.resume({
			session: root.session,
			messages,
			begin: () => [],
			settle: () => [],
			continues: answer ? { ...continues, answer } : continues,
		});
		return { runId: id };
	}

	/** The messages that started the first run; later user messages are in the checkpoint. */
	async #messagesOf(root: Turn | undefined): Promise<InboxMessage[]> {
		const { ledger, clock } = this.#deps;
		const all = root?.messages ?? [];
		const answered = all.findIndex(({ role }) => role === "assistant");
		const first = all.slice(0, answered < 0 ? all.length : answered);
		const events = await Promise.all(first.map(async ({ eventId = "" }) => ledger.inbox.get(eventId)));
		// Messages that joined the run before its first text are in the checkpoint, too.
		const isInitial = (event: InboundEvent | undefined) =>
			event !== undefined && event.disposition.state !== "injected";
		return events.filter(isInitial).map((event) => restarted(event!, clock.now()));
	}
}

/** The recorded message with fresh timings, so that the new run gets its own trace. */
function restarted(event: InboundEvent, now: number): InboxMessage {
	const message = recorded(event);
	return { ...message, facts: { ...message.facts, timings: [], queuedAt: now } };
}
