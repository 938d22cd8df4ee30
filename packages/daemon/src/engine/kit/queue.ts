/** Carries events from a listener that must not wait to a reader that may: pushing never blocks and never throws. */

import type { EngineEvent, EngineYield } from "@nexus-stream/protocol/engine";

export interface EventQueue {
	/** `taken` is called once the reader has got it and asks for more. */
	push(said: EngineYield, taken?: () => void): void;
	/** The reader has taken all that was pushed, and asks for more; or nobody reads any more. */
	idle(): Promise<void>;
	/** What was pushed before is still delivered; what comes later is not. */
	close(): void;
	/** Like close, and the reader then throws `cause`. */
	fail(cause: unknown): void;
	/** All that waits, as soon as something does. For one reader, which waits for the answer before it asks again. */
	next(): Promise<IteratorResult<EngineYield, undefined>>;
}

/** A reader this many events behind gets text merged into fewer, larger pieces, so a fast model cannot pile up objects. */
const BACKLOG_EVENTS_MAX = 1024;

export function eventQueue(backlogEventsMax: number = BACKLOG_EVENTS_MAX): EventQueue {
	/** An event that waits alone, the usual case, costs no array. */
	let waiting: EngineEvent | EngineEvent[] | undefined;
	let closed = false;
	let failure: { cause: unknown } | undefined;
	let wake: (() => void) | undefined;
	/** To be called when what waits was taken, and when what was handed over last was. */
	let takenLater: (() => void)[] = [];
	let takenNext: (() => void)[] = [];

	/** Behind the promises that are ready now: what an agent reports of one network read is one burst. The loop does not turn in between. */
	const stir = () => {
		if (wake) process.nextTick(wake);
		wake = undefined;
	};

	const add = (event: EngineEvent) => {
		if (waiting === undefined) waiting = event;
		else if (!Array.isArray(waiting)) waiting = [waiting, event];
		else if (waiting.length < backlogEventsMax) waiting.push(event);
		else waiting.push(...merged(waiting.pop()!, event));
	};

	/** Who waits until everything is taken. */
	const idlers: (() => void)[] = [];
	const rest = () => {
		if (idlers.length > 0) for (const idler of idlers.splice(0)) idler();
	};

	const close = () => {
		closed = true;
		rest();
		stir();
	};

	return {
		push(said, taken) {
			if (closed) return;
			if (taken) takenLater.push(taken);
			if (!isList(said)) add(said);
			else for (const event of said) add(event);
			if (waiting !== undefined) stir();
		},
		idle() {
			// The reader waits, and has nothing to take.
			if (closed || (wake !== undefined && waiting === undefined)) return Promise.resolve();
			return new Promise((resolve) => idlers.push(resolve));
		},
		close,
		fail(cause) {
			if (!closed) failure = { cause };
			close();
		},
		async next() {
			if (takenNext.length > 0) for (const taken of takenNext.splice(0)) taken();
			if (waiting === undefined && !closed) {
				rest();
				await new Promise<void>((resolve) => {
					wake = resolve;
				});
			}
			const value = waiting;
			waiting = undefined;
			if (takenLater.length > 0) [takenNext, takenLater] = [takenLater, []];
			if (value !== undefined) return { done: false, value };
			if (failure === undefined) return { done: true, value: undefined };
			const { cause } = failure;
			failure = undefined;
			throw cause;
		},
	};
}

const isList = (said: EngineYield): said is readonly EngineEvent[] => Array.isArray(said);

function merged(last: EngineEvent, next: EngineEvent): EngineEvent[] {
	const isText = last.type === "text" || last.type === "reasoning";
	if (!isText || next.type !== last.type || next.agent !== last.agent) return [last, next];
	return [{ ...last, delta: last.delta + next.delta }];
}
