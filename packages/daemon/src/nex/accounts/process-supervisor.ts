/** Keeps one verb of an account running: starts it on first use, starts it again by the policy, and says how it is doing. */

import { checkLine, KEEP_SHAPES, type KeepLine, type LineFault, type Shapes } from "@nexus-stream/adapter/host";
import { exitCodeOf, wordsOf } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import {
	type ProcessPhase,
	type RestartRules,
	type Supervision,
	type SupervisionInput,
	stepSupervision,
	UNSTARTED,
} from "../../std/supervision.ts";
import type { KeptNotes } from "./kept-notes.ts";
import { type Exit, type LineProcess, type ProcessLimits, startProcess } from "./line-process.ts";

export interface ProcessStatus {
	/** `unreachable`: it runs, and its platform does not answer it. */
	state: ProcessPhase["at"] | "unreachable";
	/** When it is tried again, while it waits for that. */
	until?: number;
	pid?: number;
	restarts: number;
	/** Lines that were no JSON objects, too long, or of a known type with wrong fields. */
	garbage: number;
	/** What went wrong last, until it has gone well for a while. */
	lastError?: string;
}

export interface ProcessSupervisorOptions {
	command: readonly string[];
	env: Record<string, string>;
	facts: object;
	/** It is of use even when it does not read. */
	mayIgnoreInput?: boolean;
	limits: ProcessLimits;
	rules: RestartRules;
	clock: Clock;
	random: () => number;
	log: Log;
	/** Told of every process, so that one that outlives the daemon can be found. */
	onSpawn?(pid: number): void;
	/** Told whenever `status` may say something else. */
	changed?(): void;
	/** What the daemon keeps for its account. */
	notes?: KeptNotes;
	/** What its lines must look like. */
	shapes: Shapes;
	/** Those that do. */
	lines(values: object[], process: LineProcess): void;
	/** Its process is gone; returns whether it had nothing left to do. */
	lost(exit: Exit): boolean;
}

export interface ProcessSupervisor {
	/** Asks for the process, and resolves with it once it runs. Rejects when the signal aborts. */
	running(signal: AbortSignal): Promise<LineProcess>;
	/** The process, if it runs now. */
	readonly current: LineProcess | undefined;
	status(): ProcessStatus;
	/** It works again: what went wrong before is over. */
	recovered(): void;
	stop(): Promise<void>;
}

const GARBAGE_LOGGED_MAX = 20;
const MINUTE_MS = 60_000;
const EXCERPT_CHARS = 120;
/** How an adapter exits that cannot reach its platform (docs/adapter-protocol.md §1). */
const UNREACHABLE = exitCodeOf("unavailable");

const isKept = (line: object): line is KeepLine => KEEP_SHAPES.has((line as KeepLine).type);

const excerptOf = (line: object): string => JSON.stringify(line).slice(0, EXCERPT_CHARS).toWellFormed();

export function createProcessSupervisor(options: ProcessSupervisorOptions): ProcessSupervisor {
	const { clock, rules, random, log, facts, notes } = options;
	const shapes = notes ? new Map([...options.shapes, ...KEEP_SHAPES]) : options.shapes;
	const waiting = new Set<(process: LineProcess) => void>();
	let state: Supervision = UNSTARTED;
	let process: LineProcess | undefined;
	let garbage = 0;
	/** Since when, and how much of it the process that runs now has said. */
	let flood = { since: clock.now(), lines: 0 };
	let failure: { error: string; at: number } | undefined;
	let cancelWake = () => {};
	let stopped = false;

	function apply(input: SupervisionInput): void {
		const step = stepSupervision(state, input, clock.now(), rules, random());
		state = step.state;
		for (const effect of step.effects) {
			if (effect.type === "spawn") prepare();
			else {
				cancelWake();
				cancelWake = clock.after(Math.max(0, effect.at - clock.now()), () => apply({ type: "tick" }));
			}
		}
		options.changed?.();
	}

	function skip(fault: LineFault): void {
		failure = { error: `garbage on stdout: ${fault.reason}`, at: clock.now() };
		if (++garbage <= GARBAGE_LOGGED_MAX) log.warn({ ...facts, ...fault, garbage }, "garbage on the adapter's stdout");
		const now = clock.now();
		if (now - flood.since >= MINUTE_MS) flood = { since: now, lines: 0 };
		const max = options.limits.garbageLinesPerMinuteMax;
		if (++flood.lines === max + 1) process?.kill(`said more than ${max} lines of garbage within a minute`);
	}

	function validLines(line: object, begun: LineProcess): object[] {
		const checked = checkLine(line, shapes);
		if ("value" in checked) {
			if (!notes || !isKept(checked.value)) return [checked.value];
			notes.take(checked.value, begun);
			return [];
		}
		if ("fault" in checked) skip({ reason: checked.fault, excerpt: excerptOf(line) });
		else log.debug({ ...facts, type: checked.unknown }, "a line of a type that is not in the protocol");
		return [];
	}

	/** Without its account's notes it could create a message for the second time. */
	function prepare(): void {
		if (!notes) start();
		else
			notes.prepare().then(
				() => stopped || start(),
				(cause: unknown) => exited({ code: null, detail: `its notes cannot be read: ${wordsOf(cause)}` }),
			);
	}

	function start(): void {
		const started = begin();
		process = started;
		flood = { since: clock.now(), lines: 0 };
		// A command that is not there has no pid; its exit follows.
		if (started?.pid === undefined) return;
		note(started.pid);
		log.debug({ ...facts, pid: started.pid }, "adapter started");
		apply({ type: "spawned" });
		for (const resolve of [...waiting]) resolve(started);
	}

	function note(pid: number): void {
		try {
			options.onSpawn?.(pid);
		} catch (cause) {
			log.warn({ ...facts, pid, err: cause }, "should the adapter outlive the daemon, the next one will not know");
		}
	}

	function begin(): LineProcess | undefined {
		try {
			const begun: LineProcess = startProcess(options, {
				lines: (values) =>
					options.lines(
						values.flatMap((line) => validLines(line, begun)),
						begun,
					),
				garbage: skip,
				exited,
			});
			return begun;
		} catch (cause) {
			// The system refuses another process: that passes, or the backoff grows.
			const detail = `could not be started: ${cause instanceof Error ? cause.message : String(cause)}`;
			clock.after(0, () => exited({ code: null, detail }));
			return undefined;
		}
	}

	function exited(exit: Exit): void {
		process = undefined;
		const idle = options.lost(exit);
		const clean = stopped || (idle && exit.code === 0);
		apply({ type: "exited", clean, unreachable: exit.code === UNREACHABLE });
		if (clean) return;
		failure = { error: exit.detail, at: clock.now() };
		options.changed?.();
		const until = "until" in state.phase ? state.phase.until : undefined;
		log.warn({ ...facts, exit: exit.detail, state: state.phase.at, until }, "the adapter process ended");
	}

	/** A process that has lived for a while since is healthy. */
	function lastError(): string | undefined {
		const { phase } = state;
		const quietSince = phase.at === "running" && failure ? Math.max(phase.since, failure.at) : undefined;
		if (quietSince !== undefined && clock.now() - quietSince >= rules.healthyMs) failure = undefined;
		return failure?.error;
	}

	return {
		recovered() {
			failure = undefined;
			options.changed?.();
		},
		get current() {
			return state.phase.at === "running" ? process : undefined;
		},
		running(signal) {
			if (stopped || signal.aborted) return Promise.reject(aborted());
			if (state.phase.at === "running" && process) return Promise.resolve(process);
			return new Promise((resolve, reject) => {
				const forget = () => {
					waiting.delete(done);
					signal.removeEventListener("abort", fail);
				};
				const done = (started: LineProcess) => {
					forget();
					resolve(started);
				};
				const fail = () => {
					forget();
					reject(aborted());
				};
				waiting.add(done);
				signal.addEventListener("abort", fail, { once: true });
				apply({ type: "want" });
			});
		},
		status() {
			const error = lastError();
			return {
				state: state.phase.at,
				until: "until" in state.phase ? state.phase.until : undefined,
				pid: process?.pid,
				restarts: state.restarts,
				garbage,
				lastError: error,
			};
		},
		async stop() {
			stopped = true;
			cancelWake();
			apply({ type: "unwant" });
			await process?.stop();
		},
	};
}

/** A process that runs, and cannot reach its platform. */
export const unreachable = (status: ProcessStatus, error: string | undefined): ProcessStatus =>
	status.state === "running" && error !== undefined ? { ...status, state: "unreachable", lastError: error } : status;

const aborted = () => new DOMException("The adapter is no longer waited for.", "AbortError");
