/** The sessions with something under way: carries out what the queue's step decides, and records what becomes of every message (I10). */

import type { InboundEvent, Ledger, QueueSettings, Turn } from "../ledger/ledger.ts";
import { NexusError, toNexusError } from "../protocol/protocol.ts";
import { type Clock, elapsing } from "../std/clock.ts";
import type { Log } from "../std/log.ts";
import type { Accepted } from "./port.ts";
import { batchIdOf, EMPTY_LANE, type Lane, type LaneEffect, restored, step, wakeAt } from "./queue.ts";
import { summaryOf } from "./summary.ts";

/** A run that was asked for. */
export interface Launched {
	/** Resolves once its begin is durable, together with what `record` wrote. */
	established: Promise<void>;
	abort(): void;
}

export interface LanesDeps {
	ledger: Ledger;
	clock: Clock;
	log: Log;
	/** How a message waits that does not say it. */
	settings: QueueSettings;
	/** A store that refuses commits is waited for no longer than `patienceMs`. */
	launch(
		session: string,
		events: readonly InboundEvent[],
		record: (runId: string) => void,
		patienceMs?: number,
	): Launched;
}

/** Whoever sent the message waits to hear that it is safe. */
const ADMIT_MS_MAX = 1000;

interface Shell {
	lane: Lane;
	/** The run, and the events that it answers. */
	active: { abort(): void; eventIds: readonly string[] } | undefined;
	/** The event that the run has to make room for. */
	stoppedBy: string | undefined;
	disarm: (() => void) | undefined;
}

export class Lanes {
	readonly #deps: LanesDeps;
	/** How long a message has waited does not depend on what the clock is set to meanwhile. */
	readonly #now: () => number;
	readonly #shells = new Map<string, Shell>();
	#closed = false;

	constructor(deps: LanesDeps) {
		this.#deps = deps;
		this.#now = elapsing(deps.clock);
	}

	has(session: string): boolean {
		return this.#shells.has(session);
	}

	/** Decides in the tick of the call, so that the order of calls is the order of answers. */
	arrive(event: InboundEvent): Promise<Accepted> | Accepted {
		const { settings } = this.#deps;
		const shell = this.#shell(event.session);
		const arrival = { type: "arrive", eventId: event.eventId, settings: event.queue ?? settings } as const;
		const { lane, effects } = step(shell.lane, arrival, this.#now());
		const [first] = effects;
		if (first?.type === "refuse") throw new NexusError("busy", `Session ${event.session}: ${first.because}.`);
		if (first?.type === "admit") return this.#admit(shell, lane, event);
		try {
			this.#deps.ledger.atomically(() => this.#record(event, effects));
		} catch (cause) {
			this.#tidy(event.session, shell);
			throw cause;
		}
		shell.lane = lane;
		this.#perform(event.session, shell, effects);
		return acceptedOf(event);
	}

	/** A run that did not come through the queue takes the session's place in it. */
	occupy(session: string, abort: () => void): void {
		const shell = this.#shell(session);
		shell.lane = { ...shell.lane, busy: true };
		shell.active = { abort, eventIds: [] };
	}

	/** The session's run has settled, or could not start: the next messages have their turn. */
	free(session: string, turn?: Turn): void {
		const shell = this.#shell(session);
		const { active, stoppedBy } = shell;
		shell.active = undefined;
		shell.stoppedBy = undefined;
		if (active && stoppedBy !== undefined && turn?.status === "aborted")
			this.#dispose(active.eventIds, { state: "superseded", by: stoppedBy, runId: turn.runId });
		if (this.#closed) {
			// What still waits when the daemon stops is started by the next one.
			this.#shells.delete(session);
			return;
		}
		const { lane, effects } = step(shell.lane, { type: "free" }, this.#now());
		shell.lane = lane;
		this.#perform(session, shell, effects);
	}

	/** Takes up what waited when the process before this one ended, oldest first. */
	restore(events: readonly InboundEvent[]): void {
		const { settings } = this.#deps;
		const now = this.#now();
		for (const [session, own] of Map.groupBy(events, (event) => event.session)) {
			const shell = this.#shell(session);
			const entries = own.map(({ eventId, receivedAt, queue, batch }) => ({
				// A clock that was set back since must not make it wait for the time it came at.
				...{ eventId, at: Math.min(receivedAt, now), summary: batch !== undefined },
				...(queue ?? settings),
			}));
			shell.lane = { ...restored(entries), busy: shell.lane.busy };
			this.#tick(session, shell);
		}
	}

	/** Nothing starts any more. */
	close(): void {
		this.#closed = true;
		for (const shell of this.#shells.values()) shell.disarm?.();
	}

	#tick(session: string, shell: Shell): void {
		if (this.#closed) return;
		const { lane, effects } = step(shell.lane, { type: "tick" }, this.#now());
		shell.lane = lane;
		this.#perform(session, shell, effects);
	}

	async #admit(shell: Shell, lane: Lane, event: InboundEvent): Promise<Accepted> {
		const { session, eventId } = event;
		shell.lane = lane;
		try {
			const record = (runId: string) => {
				event.disposition = { state: "started", runId };
				this.#accept(event);
			};
			const { established, abort } = this.#deps.launch(session, [event], record, ADMIT_MS_MAX);
			shell.active = { abort, eventIds: [eventId] };
			await established;
		} catch (cause) {
			this.free(session);
			throw toNexusError(cause);
		}
		return acceptedOf(event);
	}

	/** The writes of an arrival, as one transaction: when they fail nothing has happened. */
	#record(event: InboundEvent, effects: readonly LaneEffect[]): void {
		const { ledger } = this.#deps;
		for (const effect of effects) {
			if (effect.type === "wait") this.#accept(event);
			if (effect.type === "drop") ledger.dispose(effect.eventId, { state: "dropped", because: effect.because });
			if (effect.type === "summarise") {
				const { eventIds, into } = effect;
				ledger.accept(summaryOf(into, this.#events(eventIds)));
				for (const eventId of eventIds) ledger.dispose(eventId, { state: "superseded", by: into });
			}
		}
	}

	#accept(event: InboundEvent): void {
		if (this.#deps.ledger.accept(event)) return;
		const key = event.idempotencyKey ?? event.origin?.sourceId;
		throw new NexusError("conflict", `Session ${event.session} already has the message ${key}.`);
	}

	/** What has to be done beyond the Ledger. */
	#perform(session: string, shell: Shell, effects: readonly LaneEffect[]): void {
		for (const effect of effects) {
			if (effect.type === "stop") {
				shell.stoppedBy = effect.by;
				shell.active?.abort();
			}
			if (effect.type === "start") this.#start(session, shell, effect.eventIds);
		}
		this.#arm(session, shell);
		this.#tidy(session, shell);
	}

	#start(session: string, shell: Shell, eventIds: readonly string[]): void {
		const failed = (cause: unknown) => {
			this.#reject(eventIds, cause);
			this.free(session);
		};
		try {
			const events = this.#events(eventIds);
			const record = (runId: string) => this.#deps.ledger.atomically(() => this.#recordStart(session, events, runId));
			const { established, abort } = this.#deps.launch(session, events, record);
			const newest = eventIds.at(-1)!;
			const batch = eventIds.length > 1 ? [batchIdOf(newest)] : [];
			shell.active = { abort, eventIds: [...eventIds, ...batch] };
			established.catch(failed);
		} catch (cause) {
			failed(cause);
		}
	}

	/** Several messages become one run by a synthetic event that names them; the run is told each of them all the same. */
	#recordStart(session: string, events: readonly InboundEvent[], runId: string): void {
		const { ledger, clock } = this.#deps;
		const newest = events.at(-1)!;
		if (events.length === 1) {
			ledger.dispose(newest.eventId, { state: "started", runId });
			return;
		}
		const { origin, facts } = newest;
		ledger.accept({
			...{ eventId: batchIdOf(newest.eventId), session, text: "", attachments: [], receivedAt: clock.now() },
			...{ disposition: { state: "started", runId }, batch: events.map((event) => event.eventId) },
			...(origin && { origin: { channel: origin.channel, account: origin.account, sender: origin.sender } }),
			...(facts && { facts }),
		});
		for (const { eventId } of events) ledger.dispose(eventId, { state: "batched", runId });
	}

	#events(eventIds: readonly string[]): InboundEvent[] {
		return eventIds.map((eventId) => {
			const event = this.#deps.ledger.event(eventId);
			if (!event) throw new NexusError("data_loss", `Event ${eventId} is not in the ledger any more.`);
			return event;
		});
	}

	/** While the daemon stops they stay queued: the next one starts them. */
	#reject(eventIds: readonly string[], cause: unknown): void {
		if (this.#closed) return;
		this.#deps.log.error({ eventIds, err: cause }, "queued messages could not be started");
		this.#dispose(eventIds, { state: "rejected", because: toNexusError(cause).message });
	}

	#dispose(eventIds: readonly string[], disposition: InboundEvent["disposition"]): void {
		const { ledger, log } = this.#deps;
		for (const eventId of eventIds) {
			try {
				ledger.dispose(eventId, disposition);
			} catch (cause) {
				log.error({ eventId, disposition, err: cause }, "what became of a message could not be recorded");
			}
		}
	}

	/** One timer per session, for messages that are being collected. */
	#arm(session: string, shell: Shell): void {
		shell.disarm?.();
		shell.disarm = undefined;
		const at = wakeAt(shell.lane);
		if (at === undefined || this.#closed) return;
		shell.disarm = this.#deps.clock.after(Math.max(0, at - this.#now()), () => this.#tick(session, shell));
	}

	#shell(session: string): Shell {
		let shell = this.#shells.get(session);
		if (!shell) {
			shell = { lane: EMPTY_LANE, active: undefined, stoppedBy: undefined, disarm: undefined };
			this.#shells.set(session, shell);
		}
		return shell;
	}

	#tidy(session: string, { lane }: Shell): void {
		if (!lane.busy && lane.waiting.length === 0) this.#shells.delete(session);
	}
}

export function acceptedOf({ eventId, disposition }: InboundEvent): Accepted {
	const accepted: Accepted = { eventId, disposition };
	if ("runId" in disposition) accepted.runId = disposition.runId;
	return accepted;
}
