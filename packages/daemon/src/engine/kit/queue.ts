/** Carries events from a listener that must not wait to a reader that may: pushing never blocks and never throws. */

import type { EngineEvent, EngineYield } from "@nexus-stream/protocol/engine";

/** A reader this many events behind gets text merged into fewer, larger pieces, so a fast model cannot pile up objects. */
const BACKLOG_EVENTS_MAX = 1024;

/** A long tool call can take minutes to write: an empty delta resets the silence watchdog and shows nothing. */
export const NOT_SILENT: EngineEvent = { type: "text", delta: "" };

export class EventQueue {
	readonly #backlogEventsMax: number;
	/** A single waiting event, the usual case, costs no array. */
	#waiting: EngineEvent | EngineEvent[] | undefined;
	#closed = false;
	#failure: { cause: unknown } | undefined;
	#wake: (() => void) | undefined;
	/** Called when the waiting events are taken, and when those handed over last are. */
	#takenLater: (() => void)[] = [];
	#takenNext: (() => void)[] = [];
	readonly #idlers: (() => void)[] = [];

	constructor(backlogEventsMax: number = BACKLOG_EVENTS_MAX) {
		this.#backlogEventsMax = backlogEventsMax;
	}

	/** Calls `taken` once the reader has the events and asks for more. */
	push(events: EngineYield, taken?: () => void): void {
		if (this.#closed) return;
		if (taken) this.#takenLater.push(taken);
		if (!isList(events)) this.#add(events);
		else for (const event of events) this.#add(event);
		if (this.#waiting !== undefined) this.#stir();
	}

	/** Resolves when the reader has taken everything and asks for more, or when the queue is closed. */
	idle(): Promise<void> {
		const isReaderWaiting = this.#wake !== undefined && this.#waiting === undefined;
		if (this.#closed || isReaderWaiting) return Promise.resolve();
		return new Promise((resolve) => this.#idlers.push(resolve));
	}

	/** Earlier events are still delivered; later ones are dropped. */
	close(): void {
		this.#closed = true;
		this.#releaseIdlers();
		this.#stir();
	}

	/** Like close, and the reader then throws `cause`. */
	fail(cause: unknown): void {
		if (!this.#closed) this.#failure = { cause };
		this.close();
	}

	/** Everything that waits, as soon as there is something. For one reader, which asks again only after the answer. */
	async next(): Promise<IteratorResult<EngineYield, undefined>> {
		if (this.#takenNext.length > 0) for (const taken of this.#takenNext.splice(0)) taken();
		if (this.#waiting === undefined && !this.#closed) {
			this.#releaseIdlers();
			await new Promise<void>((resolve) => {
				this.#wake = resolve;
			});
		}
		const value = this.#waiting;
		this.#waiting = undefined;
		if (this.#takenLater.length > 0) [this.#takenNext, this.#takenLater] = [this.#takenLater, []];
		if (value !== undefined) return { done: false, value };
		if (this.#failure === undefined) return { done: true, value: undefined };
		const { cause } = this.#failure;
		this.#failure = undefined;
		throw cause;
	}

	/** Wakes the reader after the promises that are ready now: the events of one network read become one burst, without a turn of the loop. */
	#stir(): void {
		if (this.#wake) process.nextTick(this.#wake);
		this.#wake = undefined;
	}

	#add(event: EngineEvent): void {
		if (this.#waiting === undefined) this.#waiting = event;
		else if (!Array.isArray(this.#waiting)) this.#waiting = [this.#waiting, event];
		else if (this.#waiting.length < this.#backlogEventsMax) this.#waiting.push(event);
		else this.#waiting.push(...merged(this.#waiting.pop()!, event));
	}

	#releaseIdlers(): void {
		if (this.#idlers.length > 0) for (const idler of this.#idlers.splice(0)) idler();
	}
}

/** The same yield with each of its events replaced. */
export const mapEvents = (events: EngineYield, replace: (event: EngineEvent) => EngineEvent): EngineYield =>
	isList(events) ? events.map(replace) : replace(events);

const isList = (events: EngineYield): events is readonly EngineEvent[] => Array.isArray(events);

function merged(last: EngineEvent, next: EngineEvent): EngineEvent[] {
	const isText = last.type === "text" || last.type === "reasoning";
	if (!isText || next.type !== last.type || next.agent !== last.agent) return [last, next];
	return [{ ...last, delta: last.delta + next.delta }];
}
