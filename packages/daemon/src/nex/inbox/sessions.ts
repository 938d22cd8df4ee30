/**
 * The sessions with something under way. Each is an actor (ST9): it takes one input after another, and what an input decides is committed
 * before the next one is taken. It does not wait for the runs that it starts.
 */

import { NexusError, toNexusError } from "@nexus-stream/protocol";
import { type Clock, elapsing } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Join, RunInbox, Saved } from "../../broker/broker.ts";
import { ADMIT_MS_MAX, type Bus } from "../../bus/bus.ts";
import { type Disposition, inboxWrites, type QueueSettings } from "../../ledger/ledger.ts";
import { COLLECT_MS } from "./config.ts";
import { joined, joiningOf, joinWrites } from "./joins.ts";
import type { InboxLimits } from "./limits.ts";
import type { InboxMessage } from "./message.ts";
import { createOrder, type Order } from "./order.ts";
import { type Active, dispose, idOf, plan, QUEUED, superseded, without } from "./plan.ts";
import { EMPTY_LANE, type LaneEffect, restored, type SessionLane, step, wakeAt } from "./queue.ts";
import type { Launched, Start } from "./start.ts";
import { batchOf } from "./summary.ts";

export interface SessionsDeps {
	bus: Bus;
	limits: Pick<InboxLimits, "queueMessagesMax" | "runsMax">;
	clock: Clock;
	log: Log;
	/** The messages wait for plugins before they become a run: a crash must not lose them meanwhile (ST10). */
	prepares(): boolean;
	launch(start: Start): Launched;
}

/** Messages on record whose run the store does not let begin are started again after this, ever later. */
const START_AGAIN_MS = 250;
const START_AGAIN_MS_MAX = 5_000;

/** What the queue decided. The outcome of a message that starts a run is known once the run has begun. */
export interface QueueDecision {
	outcome: InboxMessage | Promise<InboxMessage>;
}

interface LiveSession {
	readonly label: string;
	lane: SessionLane;
	/** The messages that wait, by their ids. */
	waiting: ReadonlyMap<string, InboxMessage>;
	active: Active | undefined;
	/** Starts in a row that failed for a passing reason. */
	failures: number;
	/** Inputs that are not done yet. */
	inputs: number;
	disarm: (() => void) | undefined;
}

export class Sessions {
	readonly #deps: SessionsDeps;
	/** How long a message has waited does not depend on what the clock is set to meanwhile. */
	readonly #now: () => number;
	readonly #sessions = new Map<string, LiveSession>();
	readonly #inOrder: Order = createOrder();
	readonly #settings: QueueSettings;
	#busy = 0;
	#closed = false;

	constructor(deps: SessionsDeps) {
		this.#deps = deps;
		this.#now = elapsing(deps.clock);
		const messagesMax = deps.limits.queueMessagesMax;
		this.#settings = { mode: "followup", collectMs: COLLECT_MS, messagesMax, atCap: "drop_newest" };
	}

	/** A message has come. Resolves with the queue's decision, once what it needs is durable; throws `busy` when it is refused. */
	arrive(message: InboxMessage): Promise<QueueDecision> {
		return this.#input(message.session, (session) => this.#arrive(session, message));
	}

	/** Something else has to end before the session can go on. */
	occupy(label: string, saved: Promise<Saved>): Promise<void> {
		return this.#input(label, async (session) => {
			this.#become(session, { ...session.lane, busy: true });
			void saved.then((turn) => turn && this.#free(session));
		});
	}

	/** Starts a run that no message asks for. Rejects with `conflict` when the session has something under way, or waiting. */
	async resume(start: Omit<Start, "inbox">): Promise<{ runId: string }> {
		const { launched } = await this.#input(start.session, async (session) => this.#resume(session, start));
		return await launched.established;
	}

	#resume(session: LiveSession, start: Omit<Start, "inbox">): { launched: Launched } {
		if (this.#closed) throw new NexusError("unavailable", "The daemon is stopping; try again when it is back.");
		if (!isIdle(session.lane))
			throw new NexusError("conflict", `Session ${session.label} has something under way; wait until it has ended.`);
		this.#refuseWhenFull();
		this.#become(session, { ...session.lane, busy: true });
		const active: Active = { messages: [...start.messages], abort: () => launched.abort() };
		const inbox = this.#inboxOf(session, active);
		const launched = this.#deps.launch({ ...start, inbox, patienceMs: ADMIT_MS_MAX });
		session.active = active;
		launched.established.then(
			({ runId, saved }) => {
				active.runId = runId;
				return saved.then((turn) => turn && this.#free(session));
			},
			() => this.#free(session),
		);
		return { launched };
	}

	/** Takes up what waited when the daemon before this one ended, oldest first. */
	async restore(messages: readonly InboxMessage[]): Promise<void> {
		const bySession = Map.groupBy(messages, (message) => message.session);
		await Promise.all(
			[...bySession].map(([label, own]) => this.#input(label, (session) => this.#restore(session, own))),
		);
	}

	/** Messages that wait for their turn. */
	get waitingInAll(): number {
		let waiting = 0;
		for (const session of this.#sessions.values()) waiting += session.waiting.size;
		return waiting;
	}

	get closed(): boolean {
		return this.#closed;
	}

	/** Nothing starts any more: what still waits is started by the next daemon. */
	close(): void {
		this.#closed = true;
		for (const session of this.#sessions.values()) session.disarm?.();
	}

	/** Inputs of a session are taken one after another. */
	#input<T>(label: string, work: (session: LiveSession) => Promise<T>): Promise<T> {
		const session = this.#session(label);
		session.inputs++;
		return this.#inOrder(label, async () => {
			try {
				return await work(session);
			} finally {
				session.inputs--;
				this.#tidy(session);
			}
		});
	}

	async #arrive(session: LiveSession, message: InboxMessage): Promise<QueueDecision> {
		if (this.#closed) throw new NexusError("unavailable", "The daemon is stopping; send it again when it is back.");
		const { eventId, queue: settings = this.#settings } = message;
		if (isIdle(session.lane)) this.#refuseWhenFull();
		const { lane, effects } = step(session.lane, { type: "arrive", eventId, settings }, this.#now());
		const [first] = effects;
		if (first?.type === "refuse") throw new NexusError("busy", `Session ${session.label}: ${first.because}.`);
		if (first?.type === "admit") return this.#admit(session, lane, message);
		const { writes, waiting } = plan(session.waiting, message, effects);
		await this.#deps.bus.write(writes, ADMIT_MS_MAX);
		this.#become(session, lane);
		session.waiting = waiting;
		this.#perform(session, effects);
		return { outcome: message };
	}

	/** Without plugins that prepare it, the message is recorded and started in one commit: a run that is refused has not taken it in. */
	async #admit(session: LiveSession, lane: SessionLane, message: InboxMessage): Promise<QueueDecision> {
		const recorded = this.#deps.prepares();
		if (recorded) await this.#deps.bus.write([inboxWrites.accept(message)], ADMIT_MS_MAX);
		this.#become(session, lane);
		return { outcome: this.#start(session, [message], recorded, ADMIT_MS_MAX).then(() => message) };
	}

	async #restore(session: LiveSession, messages: readonly InboxMessage[]): Promise<void> {
		this.#lineUp(session, messages);
		this.#take(session, "tick");
	}

	/** Before everything that waits: they are older. */
	#lineUp(session: LiveSession, messages: readonly InboxMessage[]): void {
		const now = this.#now();
		const entries = messages.map(({ eventId, receivedAt, queue, batch }) => ({
			eventId,
			// A clock that was set back since must not make it wait for the time it came at.
			at: Math.min(receivedAt, now),
			summary: batch !== undefined,
			...(queue ?? this.#settings),
		}));
		const { lane, waiting } = session;
		session.waiting = new Map([...messages.map((message) => [message.eventId, message] as const), ...waiting]);
		this.#become(session, { ...lane, waiting: [...restored(entries).waiting, ...lane.waiting] });
	}

	/** The session's run has settled, or could not start: the next messages have their turn. */
	#free(session: LiveSession): Promise<void> {
		return this.#input(session.label, async () => this.#take(session, "free"));
	}

	#take(session: LiveSession, type: "free" | "tick"): void {
		if (type === "free") session.active = undefined;
		if (this.#closed) return;
		const { lane, effects } = step(session.lane, { type }, this.#now());
		this.#become(session, lane);
		this.#perform(session, effects);
	}

	/** What has to be done beyond the store. */
	#perform(session: LiveSession, effects: readonly LaneEffect[]): void {
		for (const effect of effects) {
			if (effect.type === "stop" && session.active) {
				session.active.stoppedBy = { eventId: effect.by, rollback: effect.rollback };
				session.active.abort();
			}
			if (effect.type === "start") {
				const messages = effect.eventIds.map((eventId) => session.waiting.get(eventId)!);
				session.waiting = without(session.waiting, effect.eventIds);
				// What became of them is on record.
				this.#start(session, messages, true).catch(() => {});
			}
		}
		this.#arm(session);
	}

	/**
	 * Resolves once the run has begun, or its messages, which are `recorded`, wait again: nobody has to send them again. Rejects when they
	 * never start. `patienceMs`: somebody waits for it.
	 */
	async #start(
		session: LiveSession,
		messages: readonly InboxMessage[],
		recorded: boolean,
		patienceMs?: number,
	): Promise<void> {
		const { launch, clock } = this.#deps;
		const active: Active = { messages: [...messages], abort: () => launched.abort() };
		const batch = messages.length > 1 ? batchOf(messages, clock.now()) : undefined;
		const launched = launch({
			session: session.label,
			messages,
			begin(runId) {
				const disposition: Disposition = { state: batch ? "batched" : "started", runId };
				// What is recorded only now is recorded as what it becomes: nobody could have seen it wait.
				if (!recorded) return messages.map((message) => inboxWrites.accept({ ...message, disposition }));
				const writes = dispose(messages.map(idOf), disposition, QUEUED);
				if (batch) writes.unshift(inboxWrites.accept({ ...batch, disposition: { state: "started", runId } }));
				return writes;
			},
			settle: (turn) => (active.stoppedBy ? superseded(turn, active, batch) : []),
			inbox: this.#inboxOf(session, active),
			patienceMs,
		});
		session.active = active;
		try {
			const { runId, saved } = await launched.established;
			session.failures = 0;
			active.runId = runId;
			for (const message of messages) message.disposition = { state: batch ? "batched" : "started", runId };
			void saved.then((turn) => turn && this.#free(session));
		} catch (cause) {
			const isOver = !recorded || (await this.#reject(messages, cause));
			// Whoever waits hears of it before the inputs that came meanwhile are done.
			if (!isOver) return void this.#startAgain(session, messages);
			void this.#free(session);
			throw toNexusError(cause);
		}
	}

	#inboxOf(session: LiveSession, active: Active): RunInbox {
		return { take: (join) => this.#input(session.label, () => this.#handOver(session, active, join)) };
	}

	/** Messages that wait for the run become its own, in the commit that gives them their place in its log. */
	async #handOver(session: LiveSession, active: Active, join: Join): Promise<void> {
		// A plugin that prepares runs has its say on every message.
		if (this.#closed || session.active !== active || active.runId === undefined || this.#deps.prepares()) return;
		const messages = joiningOf(session.lane, session.waiting, active.messages);
		if (messages.length === 0) return;
		const { runId } = active;
		if (!(await join(messages.map(joined), joinWrites(messages, runId)))) return;
		for (const message of messages) message.disposition = { state: "injected", runId };
		active.messages.push(...messages);
		this.#leave(session, messages.map(idOf));
	}

	/** Takes back what waits and is `chosen`; tells how many. */
	cancel(label: string, chosen: (message: InboxMessage) => boolean): Promise<number> {
		return this.#input(label, async (session) => {
			const eventIds = [...session.waiting.values()].filter(chosen).map(idOf);
			if (eventIds.length === 0) return 0;
			await this.#deps.bus.write(dispose(eventIds, { state: "cancelled" }, QUEUED), ADMIT_MS_MAX);
			this.#leave(session, eventIds);
			return eventIds.length;
		});
	}

	/** Stops the session's run; what waits goes on. False when there is none. */
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
		const { lane, effects } = step(session.lane, { type: "leave", eventIds }, this.#now());
		session.waiting = without(session.waiting, eventIds);
		this.#become(session, lane);
		if (!this.#closed) this.#perform(session, effects);
	}

	/** Puts on record that messages never start. False when they may still: here, or, after a stop or a fence, in the next daemon. */
	async #reject(messages: readonly InboxMessage[], cause: unknown): Promise<boolean> {
		const { bus, log } = this.#deps;
		if (this.#closed || isPassing(cause)) return false;
		const { code, message: because } = toNexusError(cause);
		const eventIds = messages.map(idOf);
		// A plugin that rejects them does what it is for.
		log[code === "forbidden" ? "debug" : "warn"]({ eventIds, err: cause }, "messages could not be started");
		const disposition: Disposition = { state: "rejected", because };
		const rejectOne = async (message: InboxMessage): Promise<void> => {
			await bus.write(dispose([message.eventId], disposition, QUEUED), ADMIT_MS_MAX);
			message.disposition = disposition;
		};
		const tried = await Promise.allSettled(messages.map(rejectOne));
		const failures: unknown[] = tried.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
		for (const failure of failures)
			log.error({ eventIds, disposition, err: failure }, "what became of a message could not be recorded");
		return !failures.some(isPassing);
	}

	/** Until then the session counts as busy: what comes meanwhile waits behind them. */
	async #startAgain(session: LiveSession, messages: readonly InboxMessage[]): Promise<void> {
		const { clock, log, bus } = this.#deps;
		const left = messages.filter(({ disposition }) => disposition.state === "queued");
		await this.#input(session.label, async () => {
			session.active = undefined;
			this.#lineUp(session, left);
		});
		if (this.#closed || bus.fenced.aborted) return;
		const againMs = Math.min(START_AGAIN_MS * 2 ** session.failures++, START_AGAIN_MS_MAX);
		log.warn({ eventIds: left.map(idOf), againMs }, "messages on record could not be started yet");
		clock.after(againMs, () => void this.#free(session));
	}

	#refuseWhenFull(): void {
		const { runsMax } = this.#deps.limits;
		if (this.#busy < runsMax) return;
		throw new NexusError("busy", `${runsMax} runs are live already; try again when one has ended.`);
	}

	#become(session: LiveSession, lane: SessionLane): void {
		this.#busy += Number(lane.busy) - Number(session.lane.busy);
		session.lane = lane;
	}

	/** One timer per session, for messages that are being collected. */
	#arm(session: LiveSession): void {
		session.disarm?.();
		session.disarm = undefined;
		const at = wakeAt(session.lane);
		if (at === undefined || this.#closed) return;
		const tick = () => void this.#input(session.label, async (live) => this.#take(live, "tick"));
		session.disarm = this.#deps.clock.after(Math.max(0, at - this.#now()), tick);
	}

	#session(label: string): LiveSession {
		let session = this.#sessions.get(label);
		if (!session) {
			session = {
				label,
				lane: EMPTY_LANE,
				waiting: new Map(),
				active: undefined,
				failures: 0,
				inputs: 0,
				disarm: undefined,
			};
			this.#sessions.set(label, session);
		}
		return session;
	}

	#tidy(session: LiveSession): void {
		if (session.inputs === 0 && isIdle(session.lane)) this.#sessions.delete(session.label);
	}
}

/** The store takes nothing at the moment, or this daemon has to leave it to another one. */
const isPassing = (cause: unknown): boolean => toNexusError(cause).code === "unavailable";
const isIdle = (lane: SessionLane): boolean => !lane.busy && lane.waiting.length === 0;
