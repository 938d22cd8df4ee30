/** Which job runs next: first come, first served within an application, and the applications take turns. A pure step. */

export interface ScheduleLimits {
	/** Jobs that run at a time, of all applications and of one. */
	runningMax: number;
	runningPerAppMax: number;
}

export interface WaitingJob {
	id: string;
	appId: string;
	/** Not before: a retry waits. */
	readyAt: number;
}

export interface JobSchedule {
	/** In the order of their arrival. */
	readonly waiting: readonly WaitingJob[];
	/** Their applications, by job. */
	readonly running: ReadonlyMap<string, string>;
	/** At which turn an application had its last one; those that wait for nothing are forgotten. */
	readonly served: ReadonlyMap<string, number>;
	readonly turn: number;
}

export type ScheduleInput =
	| ({ type: "wait" } & WaitingJob)
	/** It has ended, or waits no more. */
	| { type: "leave"; id: string }
	| { type: "tick" };

export interface Scheduled {
	schedule: JobSchedule;
	/** To be started now, in this order. */
	starts: readonly string[];
	/** When to tick, if nothing happens before. */
	tickAt?: number;
}

export const EMPTY_SCHEDULE: JobSchedule = { waiting: [], running: new Map(), served: new Map(), turn: 0 };

export function stepSchedule(
	before: JobSchedule,
	input: ScheduleInput,
	now: number,
	limits: ScheduleLimits,
): Scheduled {
	let schedule = take(before, input);
	const starts: string[] = [];
	for (let next = pick(schedule, now, limits); next; next = pick(schedule, now, limits)) {
		schedule = start(schedule, next);
		starts.push(next.id);
	}
	const later = schedule.waiting.map(({ readyAt }) => readyAt).filter((at) => at > now);
	return { schedule: forgetIdle(schedule), starts, tickAt: later.length > 0 ? Math.min(...later) : undefined };
}

function take(schedule: JobSchedule, input: ScheduleInput): JobSchedule {
	switch (input.type) {
		case "wait": {
			const { id, appId, readyAt } = input;
			const running = without(schedule.running, id);
			return { ...schedule, running, waiting: [...schedule.waiting, { id, appId, readyAt }] };
		}
		case "leave":
			return {
				...schedule,
				running: without(schedule.running, input.id),
				waiting: schedule.waiting.filter(({ id }) => id !== input.id),
			};
		case "tick":
			return schedule;
		default:
			return input satisfies never;
	}
}

function without(running: ReadonlyMap<string, string>, id: string): ReadonlyMap<string, string> {
	if (!running.has(id)) return running;
	return new Map([...running].filter(([other]) => other !== id));
}

/** The first of the application whose last turn is longest ago. */
function pick(schedule: JobSchedule, now: number, { runningMax, runningPerAppMax }: ScheduleLimits) {
	const { waiting, running, served } = schedule;
	if (running.size >= runningMax) return undefined;
	const runningOf = new Map<string, number>();
	for (const appId of running.values()) runningOf.set(appId, (runningOf.get(appId) ?? 0) + 1);
	let best: WaitingJob | undefined;
	for (const job of waiting) {
		if (job.readyAt > now || (runningOf.get(job.appId) ?? 0) >= runningPerAppMax) continue;
		if (!best || (served.get(job.appId) ?? 0) < (served.get(best.appId) ?? 0)) best = job;
	}
	return best;
}

function start(schedule: JobSchedule, { id, appId }: WaitingJob): JobSchedule {
	const turn = schedule.turn + 1;
	return {
		turn,
		waiting: schedule.waiting.filter((job) => job.id !== id),
		running: new Map(schedule.running).set(id, appId),
		served: new Map(schedule.served).set(appId, turn),
	};
}

function forgetIdle(schedule: JobSchedule): JobSchedule {
	const present = new Set([...schedule.waiting.map(({ appId }) => appId), ...schedule.running.values()]);
	if ([...schedule.served.keys()].every((appId) => present.has(appId))) return schedule;
	return { ...schedule, served: new Map([...schedule.served].filter(([appId]) => present.has(appId))) };
}

/** How many are before each that waits, if all were ready and none ended meanwhile. */
export function positionsOf({ waiting, served }: JobSchedule): ReadonlyMap<string, number> {
	const queues = new Map<string, string[]>();
	for (const { id, appId } of waiting) queues.set(appId, [...(queues.get(appId) ?? []), id]);
	const apps = [...queues].sort(([a], [b]) => (served.get(a) ?? 0) - (served.get(b) ?? 0)).map(([, queue]) => queue);
	const positions = new Map<string, number>();
	for (let round = 0; positions.size < waiting.length; round++)
		for (const queue of apps) if (queue[round] !== undefined) positions.set(queue[round]!, positions.size);
	return positions;
}
