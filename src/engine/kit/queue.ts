/** Carries events from a listener that must not wait to a generator that may: pushing never blocks and never throws. */

import type { EngineEvent } from "../port.ts";

export interface EventQueue extends AsyncIterable<EngineEvent> {
	push(events: readonly EngineEvent[]): void;
	/** What was pushed before is still delivered; what comes later is not. */
	close(): void;
	/** Like close, and the reader then throws `cause`. */
	fail(cause: unknown): void;
}

/** A reader this many events behind gets text merged into fewer, larger pieces, so a fast model cannot pile up objects. */
const BACKLOG_EVENTS_MAX = 1024;

export function eventQueue(backlogEventsMax: number = BACKLOG_EVENTS_MAX): EventQueue {
	let waiting: EngineEvent[] = [];
	let closed = false;
	let failure: { cause: unknown } | undefined;
	let wake: (() => void) | undefined;

	const settle = () => {
		closed = true;
		wake?.();
	};

	async function* read(): AsyncGenerator<EngineEvent> {
		for (;;) {
			const batch = waiting;
			waiting = [];
			yield* batch;
			if (waiting.length > 0) continue;
			if (closed) break;
			await new Promise<void>((resolve) => {
				wake = resolve;
			});
			wake = undefined;
		}
		if (failure !== undefined) throw failure.cause;
	}

	return {
		push(events) {
			if (closed || events.length === 0) return;
			for (const event of events) {
				if (waiting.length < backlogEventsMax || !merge(waiting.at(-1), event)) waiting.push({ ...event });
			}
			wake?.();
		},
		close: settle,
		fail(cause) {
			if (!closed) failure = { cause };
			settle();
		},
		[Symbol.asyncIterator]: read,
	};
}

function merge(last: EngineEvent | undefined, next: EngineEvent): boolean {
	if (last === undefined || last.type !== next.type) return false;
	if ((last.type !== "text" && last.type !== "reasoning") || (next.type !== "text" && next.type !== "reasoning"))
		return false;
	last.delta += next.delta;
	return true;
}
