/** A fair queue: first come, first served within an application, and applications take turns. The step is pure; `FairQueue` keeps its state and timer. */

import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";

export interface QueueLimits {
	/** How many run at a time, of all applications and of one. */
	runningMax: number;
	runningPerAppMax: number;
	/** How many wait, of all applications and of one; further ones are refused. */
	waitingMax: number;
	waitingPerAppMax: number;
}

export interface QueueEntry {
	id: string;
	appId: string;
	/** Not before: a retry waits for its time, and `NOT_READY` for another `wait`. */
	readyAt: number;
}

/** The entry has its place in the queue and cannot start yet, because it is not durable. */
export const NOT_READY = Number.POSITIVE_INFINITY;

export interface QueueState {
	/** In the order of their arrival. */
	readonly waiting: readonly QueueEntry[];
	/** Their applications, by id. */
	readonly running: ReadonlyMap<string, string>;
	/** The last turn of each application that has anything in the queue. */
	readonly served: ReadonlyMap<string, number>;
	readonly turn: number;
}

export type QueueInput =
	/** A waiting entry keeps its place; a running one goes to the end of the queue. */
	| ({ type: "wait" } & QueueEntry)
	/** It runs already, whatever the limits say. */
	| { type: "run"; id: string; appId: string }
	/** It has ended, or waits no more. */
	| { type: "leave"; id: string }
	| { type: "tick" };

export interface QueueStep {
	state: QueueState;
	/** To be started now, in this order. */
	starts: readonly string[];
	/** When to tick, if nothing happens before. */
	tickAt?: number;
}

export const EMPTY_QUEUE: QueueState = { waiting: [], running: new Map(), served: new Map(), turn: 0 };

type RunningLimits = Pick<QueueLimits, "runningMax" | "runningPerAppMax">;

export function stepQueue(before: QueueState, input: QueueInput, now: number, limits: RunningLimits): QueueStep {
	const draft: Draft = {
		waiting: [...before.waiting],
		running: new Map(before.running),
		served: new Map(before.served),
		turn: before.turn,
	};
	take(draft, input);
	const starts: string[] = [];
	for (let next = pick(draft, now, limits); next; next = pick(draft, now, limits)) {
		start(draft, next);
		starts.push(next.id);
	}
	const present = new Set([...draft.waiting.map(({ appId }) => appId), ...draft.running.values()]);
	for (const appId of draft.served.keys()) if (!present.has(appId)) draft.served.delete(appId);
	const later = draft.waiting.map(({ readyAt }) => readyAt).filter((at) => at > now && at !== NOT_READY);
	return { state: draft, starts, tickAt: later.length > 0 ? Math.min(...later) : undefined };
}

/** A state while its step is taken. */
interface Draft extends QueueState {
	waiting: QueueEntry[];
	running: Map<string, string>;
	served: Map<string, number>;
	turn: number;
}

function take(draft: Draft, input: QueueInput): void {
	switch (input.type) {
		case "wait": {
			const { id, appId, readyAt } = input;
			const place = draft.waiting.findIndex((entry) => entry.id === id);
			draft.running.delete(id);
			draft.waiting.splice(place < 0 ? draft.waiting.length : place, 1, { id, appId, readyAt });
			return;
		}
		case "run":
			start(draft, input);
			return;
		case "leave":
			draft.running.delete(input.id);
			draft.waiting = draft.waiting.filter(({ id }) => id !== input.id);
			return;
		case "tick":
			return;
		default:
			input satisfies never;
	}
}

/** The first ready entry of the application whose last turn is longest ago. */
function pick({ waiting, running, served }: Draft, now: number, limits: RunningLimits): QueueEntry | undefined {
	if (running.size >= limits.runningMax) return undefined;
	const runningOf = new Map<string, number>();
	for (const appId of running.values()) runningOf.set(appId, (runningOf.get(appId) ?? 0) + 1);
	let best: QueueEntry | undefined;
	for (const entry of waiting) {
		if (entry.readyAt > now || (runningOf.get(entry.appId) ?? 0) >= limits.runningPerAppMax) continue;
		if (!best || (served.get(entry.appId) ?? 0) < (served.get(best.appId) ?? 0)) best = entry;
	}
	return best;
}

function start(draft: Draft, { id, appId }: Pick<QueueEntry, "id" | "appId">): void {
	draft.turn += 1;
	draft.waiting = draft.waiting.filter((entry) => entry.id !== id);
	draft.running.set(id, appId);
	draft.served.set(appId, draft.turn);
}

/** How many are before each that waits, if all were ready and none ended meanwhile. */
export function positionsOf({ waiting, served }: QueueState): ReadonlyMap<string, number> {
	const queues = new Map<string, string[]>();
	for (const { id, appId } of waiting) queues.set(appId, [...(queues.get(appId) ?? []), id]);
	const apps = [...queues].sort(([a], [b]) => (served.get(a) ?? 0) - (served.get(b) ?? 0)).map(([, queue]) => queue);
	const positions = new Map<string, number>();
	for (let round = 0; positions.size < waiting.length; round++)
		for (const queue of apps) if (queue[round] !== undefined) positions.set(queue[round]!, positions.size);
	return positions;
}

/** How many more may run, of all applications and of one. */
function roomOf({ running }: QueueState, appId: string, { runningMax, runningPerAppMax }: RunningLimits) {
	const all = Math.max(0, runningMax - running.size);
	return { all, app: Math.min(all, Math.max(0, runningPerAppMax - countOf(running.values(), appId))) };
}

function countOf(apps: Iterable<string>, appId: string): number {
	let count = 0;
	for (const app of apps) if (app === appId) count++;
	return count;
}

/** Which limit refuses one more of an application: it could neither run at once nor wait. */
export function refusalOf(state: QueueState, appId: string, limits: QueueLimits): string | undefined {
	const { waitingMax, waitingPerAppMax } = limits;
	const room = roomOf(state, appId, limits);
	const apps = state.waiting.map((entry) => entry.appId);
	if (apps.length >= waitingMax + room.all) return `${waitingMax} wait already`;
	if (countOf(apps, appId) >= waitingPerAppMax + room.app) return `${waitingPerAppMax} of ${appId} wait already`;
	return undefined;
}

export interface FairQueueDeps {
	clock: Clock;
	limits: QueueLimits;
	/** Called inside of the call that made room. */
	start(id: string): void;
}

export class FairQueue {
	readonly #deps: FairQueueDeps;
	#state = EMPTY_QUEUE;
	#untick = () => {};
	#isClosed = false;

	constructor(deps: FairQueueDeps) {
		this.#deps = deps;
	}

	get state(): QueueState {
		return this.#state;
	}

	get counts(): { waiting: number; running: number } {
		return { waiting: this.#state.waiting.length, running: this.#state.running.size };
	}

	/** Whether one more of the application could run at once. */
	hasRoom(appId: string): boolean {
		return roomOf(this.#state, appId, this.#deps.limits).app > 0;
	}

	/** Reserves the last place in the queue while `create` stores the work; frees it if `create` fails. Rejects with `busy` when the queue is full. */
	async arriving<T>(id: string, appId: string, noun: string, create: () => Promise<T>): Promise<T> {
		const refusal = refusalOf(this.#state, appId, this.#deps.limits);
		if (refusal !== undefined) throw new NexusError("busy", `too many ${noun}: ${refusal}; try again later`);
		this.step({ type: "wait", id, appId, readyAt: NOT_READY });
		try {
			return await create();
		} catch (cause) {
			this.step({ type: "leave", id });
			throw cause;
		}
	}

	step(input: QueueInput): void {
		const { clock, limits } = this.#deps;
		const allowed = this.#isClosed ? { runningMax: 0, runningPerAppMax: 0 } : limits;
		const { state, starts, tickAt } = stepQueue(this.#state, input, clock.now(), allowed);
		this.#state = state;
		this.#untick();
		if (tickAt !== undefined && !this.#isClosed)
			this.#untick = clock.after(tickAt - clock.now(), () => this.step({ type: "tick" }));
		for (const id of starts) this.#deps.start(id);
	}

	/** From now on nothing starts. */
	close(): void {
		this.#isClosed = true;
		this.#untick();
	}
}
