/** One session with a run or waiting messages: its queue, the run, and the timer of messages that are being collected. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { QueueSettings } from "../../ledger/inbox/port.ts";
import type { InboxMessage } from "./message.ts";
import { type Active, without } from "./plan.ts";
import { EMPTY_LANE, type LaneInput, type LaneStep, restored, type SessionLane, step, wakeAt } from "./queue.ts";

export interface SessionEvents {
	clock: Clock;
	/** Elapsed time: how long a message has waited does not depend on changes of the system time. */
	now(): number;
	/** Queue settings of messages that have none. */
	settings: QueueSettings;
	/** The session became busy (1) or free (−1). */
	onBusy(change: number): void;
}

export class LiveSession {
	readonly label: string;
	readonly #events: SessionEvents;
	#lane: SessionLane = EMPTY_LANE;
	/** Waiting messages by id. */
	waiting: ReadonlyMap<string, InboxMessage> = new Map();
	active: Active | undefined;
	/** Consecutive starts that failed for a temporary reason. */
	failures = 0;
	#disarm: (() => void) | undefined;

	constructor(label: string, events: SessionEvents) {
		this.label = label;
		this.#events = events;
	}

	get lane(): SessionLane {
		return this.#lane;
	}

	get isIdle(): boolean {
		return !this.#lane.busy && this.#lane.waiting.length === 0;
	}

	/** The next state of the queue, without entering it. */
	step(input: LaneInput): LaneStep {
		return step(this.#lane, input, this.#events.now());
	}

	become(lane: SessionLane): void {
		const change = Number(lane.busy) - Number(this.#lane.busy);
		this.#lane = lane;
		if (change !== 0) this.#events.onBusy(change);
	}

	occupy(): void {
		this.become({ ...this.#lane, busy: true });
	}

	/** Queues recorded messages before all others: they are older. */
	restore(messages: readonly InboxMessage[]): void {
		const now = this.#events.now();
		const entries = messages.map(({ eventId, receivedAt, queue, batch }) => ({
			eventId,
			// After the clock was set back, a message must not wait until the time it was received at.
			at: Math.min(receivedAt, now),
			summary: batch !== undefined,
			...(queue ?? this.#events.settings),
		}));
		this.waiting = new Map([...messages.map((message) => [message.eventId, message] as const), ...this.waiting]);
		this.become({ ...this.#lane, waiting: [...restored(entries).waiting, ...this.#lane.waiting] });
	}

	/** Removes and returns messages that wait. */
	take(eventIds: readonly string[]): InboxMessage[] {
		const messages = eventIds.map((eventId) => this.waiting.get(eventId)!);
		this.waiting = without(this.waiting, eventIds);
		return messages;
	}

	/** Calls `tick` when messages have been collected long enough. */
	arm(tick: () => void): void {
		this.disarm();
		const at = wakeAt(this.#lane);
		const { clock, now } = this.#events;
		if (at !== undefined) this.#disarm = clock.after(Math.max(0, at - now()), tick);
	}

	disarm(): void {
		this.#disarm?.();
		this.#disarm = undefined;
	}
}
