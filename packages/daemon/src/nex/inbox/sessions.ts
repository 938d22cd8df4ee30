/**
 * The sessions with a run or waiting messages. Each is an actor (ST9): it handles one input after another, and commits the decision on an
 * input before it takes the next one. It does not wait for the runs that it starts.
 */

import { NexusError, toNexusError } from "@nexus-stream/protocol";
import { elapsing } from "@nexus-stream/protocol/clock";
import { createKeyedQueue } from "@nexus-stream/protocol/keyed-queue";
import { backoffMs } from "@nexus-stream/protocol/retry";
import type { Execution, RunInbox } from "../../broker/broker.ts";
import { ADMIT_MS_MAX } from "../../bus/bus.ts";
import { inboxWrites } from "../../ledger/inbox/port.ts";
import { COLLECT_MS } from "./config.ts";
import type { InboxDeps } from "./deps.ts";
import type { Launcher, Start } from "./launch.ts";
import { LiveSession, type SessionEvents } from "./live-session.ts";
import type { InboxMessage } from "./message.ts";
import { type Active, batchOf, dispose, idOf, joined, joiningOf, plan, startWrites, superseded } from "./plan.ts";
import type { LaneEffect, SessionLane } from "./queue.ts";
import { rejectUnstarted } from "./refusals.ts";

/** Back-off of recorded messages whose run the store refused. */
const START_RETRY = { firstMs: 250, maxMs: 5_000 };

/** The queue's decision. The outcome of a message that starts a run is known once the run has begun. */
export interface QueueDecision {
	outcome: InboxMessage | Promise<InboxMessage>;
}

export class Sessions {
	readonly #deps: InboxDeps;
	readonly #launcher: Launcher;
	readonly #sessions = new Map<string, LiveSession>();
	readonly #inputs = createKeyedQueue();
	readonly #events: SessionEvents;
	#busy = 0;

	constructor(deps: InboxDeps, launcher: Launcher) {
		this.#deps = deps;
		this.#launcher = launcher;
		const messagesMax = deps.inboxLimits.queueMessagesMax;
		this.#events = {
			clock: deps.clock,
			now: elapsing(deps.clock),
			settings: { mode: "followup", collectMs: COLLECT_MS, messagesMax, atCap: "drop_newest" },
			onBusy: (change) => {
				this.#busy += change;
			},
		};
	}

	/** Queues or starts a message. Resolves with the decision once it is durable; throws `busy` when the message is refused. */
	arrive(message: InboxMessage): Promise<QueueDecision> {
		return this.#input(message.session, (session) => this.#arrive(session, message));
	}

	/** Keeps the session busy until a run of a dead daemon has ended. */
	occupy(label: string, saved: Execution["saved"]): Promise<void> {
		return this.#input(label, async (session) => {
			session.occupy();
			void saved.then((turn) => turn && this.#free(session));
		});
	}

	/** Starts a run without a new message. Rejects with `conflict` when the session has a run or waiting messages. */
	async resume(start: Omit<Start, "inbox">): Promise<{ runId: string }> {
		const { established } = await this.#input(start.session, async (session) => {
			this.#launcher.refuseWhenClosed();
			if (!session.isIdle)
				throw new NexusError("conflict", `Session ${session.label} is busy; wait until its run has ended.`);
			this.#refuseWhenFull();
			session.occupy();
			const run = this.#launch(session, { ...start, patienceMs: ADMIT_MS_MAX });
			run.established.catch(() => this.#free(session));
			return run;
		});
		return established;
	}

	/** Queues the messages that waited in an earlier daemon, oldest first. */
	async restore(messages: readonly InboxMessage[]): Promise<void> {
		const bySession = Map.groupBy(messages, (message) => message.session);
		await Promise.all(
			[...bySession].map(([label, own]) =>
				this.#input(label, async (session) => {
					session.restore(own);
					this.#take(session, "tick");
				}),
			),
		);
	}

	/** Messages that wait for their turn. */
	get waitingInAll(): number {
		return [...this.#sessions.values()].reduce((sum, { waiting }) => sum + waiting.size, 0);
	}

	get closed(): boolean {
		return this.#launcher.isClosed;
	}

	/** No run starts any more: the next daemon starts what still waits. */
	close(): void {
		this.#launcher.isClosed = true;
		for (const session of this.#sessions.values()) session.disarm();
	}

	/** Handles the inputs of a session one after another. */
	#input<T>(label: string, work: (session: LiveSession) => Promise<T>): Promise<T> {
		const session = this.#sessions.get(label) ?? new LiveSession(label, this.#events);
		this.#sessions.set(label, session);
		return this.#inputs.run(label, async () => {
			try {
				return await work(session);
			} finally {
				// The queue still counts this input.
				if (this.#inputs.size(label) === 1 && session.isIdle) this.#sessions.delete(label);
			}
		});
	}

	async #arrive(session: LiveSession, message: InboxMessage): Promise<QueueDecision> {
		this.#launcher.refuseWhenClosed();
		const { eventId, queue: settings = this.#events.settings } = message;
		if (session.isIdle) this.#refuseWhenFull();
		const { lane, effects } = session.step({ type: "arrive", eventId, settings });
		const [first] = effects;
		if (first?.type === "refuse") throw new NexusError("busy", `Session ${session.label}: ${first.because}.`);
		if (first?.type === "admit") return this.#admit(session, lane, message);
		const { writes, waiting } = plan(session.waiting, message, effects);
		await this.#deps.bus.write(writes, ADMIT_MS_MAX);
		session.become(lane);
		session.waiting = waiting;
		this.#perform(session, effects);
		return { outcome: message };
	}

	/** Without plugins that prepare runs, the message is recorded with the run's begin: if the run is refused, the message is not accepted. */
	async #admit(session: LiveSession, lane: SessionLane, message: InboxMessage): Promise<QueueDecision> {
		const recorded = this.#prepares;
		if (recorded) await this.#deps.bus.write([inboxWrites.accept(message)], ADMIT_MS_MAX);
		session.become(lane);
		return { outcome: this.#start(session, [message], recorded, ADMIT_MS_MAX).then(() => message) };
	}

	/** Plugins prepare runs: messages must be durable before, so that a crash does not lose them (ST10). */
	get #prepares(): boolean {
		return this.#deps.hooks().has("onPrepare");
	}

	/** The session's run has settled, or could not start: the next messages get their turn. */
	#free(session: LiveSession): Promise<void> {
		return this.#input(session.label, async () => this.#take(session, "free"));
	}

	#take(session: LiveSession, type: "free" | "tick"): void {
		if (type === "free") session.active = undefined;
		if (this.closed) return;
		const { lane, effects } = session.step({ type });
		session.become(lane);
		this.#perform(session, effects);
	}

	/** Carries out the effects that are not writes. */
	#perform(session: LiveSession, effects: readonly LaneEffect[]): void {
		for (const effect of effects) {
			if (effect.type === "stop" && session.active) {
				session.active.stoppedBy = { eventId: effect.by, rollback: effect.rollback };
				session.active.abort();
			}
			if (effect.type === "start") {
				const messages = session.take(effect.eventIds);
				this.#start(session, messages, true).catch(() => {}); // Their rejection is on record.
			}
		}
		if (this.closed) session.disarm();
		else session.arm(() => void this.#input(session.label, async (live) => this.#take(live, "tick")));
	}

	/**
	 * Resolves once the run has begun, or its `recorded` messages wait for a retry. Rejects when they will never start. `patienceMs`: how long
	 * a waiting sender may wait for the store.
	 */
	async #start(
		session: LiveSession,
		messages: readonly InboxMessage[],
		recorded: boolean,
		patienceMs?: number,
	): Promise<void> {
		const batch = messages.length > 1 ? batchOf(messages, this.#deps.clock.now()) : undefined;
		const { active, established } = this.#launch(session, {
			session: session.label,
			messages,
			begin: (runId) => startWrites(messages, batch, runId, recorded),
			settle: (turn) => (active.stoppedBy ? superseded(turn, active, batch) : []),
			patienceMs,
		});
		try {
			const { runId } = await established;
			session.failures = 0;
			for (const message of messages) message.disposition = { state: batch ? "batched" : "started", runId };
		} catch (cause) {
			const isFinal = !recorded || (!this.closed && (await rejectUnstarted(this.#deps, messages, cause)));
			// Not awaited: the caller gets its answer before later inputs are handled.
			if (!isFinal) return void this.#retry(session, messages);
			void this.#free(session);
			throw toNexusError(cause);
		}
	}

	/** Frees the session when the run has settled; the caller does so when it could not begin. */
	#launch(
		session: LiveSession,
		start: Omit<Start, "inbox">,
	): { active: Active; established: Promise<{ runId: string }> } {
		const active: Active = { messages: [...start.messages], abort: () => launched.abort() };
		const take: RunInbox["take"] = (join) => this.#input(session.label, () => this.#handOver(session, active, join));
		const launched = this.#launcher.launch({ ...start, inbox: { take } });
		session.active = active;
		const established = launched.established.then(({ runId, saved }) => {
			active.runId = runId;
			void saved.then((turn) => turn && this.#free(session));
			return { runId };
		});
		return { active, established };
	}

	/** Waiting messages join the run in the commit that adds them to its log. */
	async #handOver(session: LiveSession, active: Active, join: Parameters<RunInbox["take"]>[0]): Promise<void> {
		// A plugin that prepares runs must see every message.
		if (this.closed || session.active !== active || active.runId === undefined || this.#prepares) return;
		const messages = joiningOf(session.lane, session.waiting, active.messages);
		if (messages.length === 0) return;
		const { runId } = active;
		if (!(await join(messages.map(joined), dispose(messages.map(idOf), { state: "injected", runId })))) return;
		for (const message of messages) message.disposition = { state: "injected", runId };
		active.messages.push(...messages);
		this.#leave(session, messages.map(idOf));
	}

	/** Cancels the waiting messages that match; returns how many. */
	cancel(label: string, matches: (message: InboxMessage) => boolean): Promise<number> {
		return this.#input(label, async (session) => {
			const eventIds = [...session.waiting.values()].filter(matches).map(idOf);
			if (eventIds.length === 0) return 0;
			await this.#deps.bus.write(dispose(eventIds, { state: "cancelled" }), ADMIT_MS_MAX);
			this.#leave(session, eventIds);
			return eventIds.length;
		});
	}

	/** Stops the session's run; waiting messages are answered next. False when there is no run. */
	stop(label: string): boolean {
		const active = this.#sessions.get(label)?.active;
		active?.abort();
		return active !== undefined;
	}

	/** How many messages wait. */
	waiting(label: string): number {
		return this.#sessions.get(label)?.waiting.size ?? 0;
	}

	#leave(session: LiveSession, eventIds: readonly string[]): void {
		const { lane, effects } = session.step({ type: "leave", eventIds });
		session.take(eventIds);
		session.become(lane);
		if (!this.closed) this.#perform(session, effects);
	}

	/** The session stays busy until the retry, so that later messages wait behind these. */
	async #retry(session: LiveSession, messages: readonly InboxMessage[]): Promise<void> {
		const { clock, log, bus } = this.#deps;
		const queued = messages.filter(({ disposition }) => disposition.state === "queued");
		await this.#input(session.label, async () => {
			session.active = undefined;
			session.restore(queued);
		});
		if (this.closed || bus.fenced.aborted) return;
		const againMs = backoffMs(START_RETRY, session.failures++);
		log.warn({ eventIds: queued.map(idOf), againMs }, "messages on record could not be started yet");
		clock.after(againMs, () => void this.#free(session));
	}

	#refuseWhenFull(): void {
		const { runsMax } = this.#deps.inboxLimits;
		if (this.#busy < runsMax) return;
		throw new NexusError("busy", `${runsMax} runs are live already; try again when one has ended.`);
	}
}
