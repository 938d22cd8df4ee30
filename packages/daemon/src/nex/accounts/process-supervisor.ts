/** Keeps one verb of an account running: starts it on first use, restarts it by the policy, and reports its status. */

import type { KeepLine } from "@nexus-stream/adapter/port";
import type { LineFault } from "@nexus-stream/adapter/serve/lines";
import { checkLine, KEEP_SHAPES, type Shapes } from "@nexus-stream/adapter/shapes";
import { exitCodeOf, wordsOf } from "@nexus-stream/protocol";
import {
	type ProcessPhase,
	type RestartRules,
	type Supervision,
	type SupervisionInput,
	stepSupervision,
	UNSTARTED,
} from "../../std/supervision.ts";
import type { KeptNotes } from "./kept-notes.ts";
import { type Exit, type LineProcess, type ProcessSpec, startProcess } from "./line-process.ts";

export interface ProcessStatus {
	/** `unreachable`: the process runs, but its platform does not answer. */
	state: ProcessPhase["at"] | "unreachable";
	/** When the next start is due, while one is scheduled. */
	until?: number;
	pid?: number;
	restarts: number;
	/** Lines that were not JSON objects, too long, or of a known type with wrong fields. */
	garbage: number;
	/** The last failure, until the process has been healthy for a while. */
	lastError?: string;
}

export interface ProcessSupervisorOptions extends ProcessSpec {
	rules: RestartRules;
	random: () => number;
	/** Records the pid, so that the next daemon can end a process that outlived this one. */
	onSpawn(pid: number): void;
	/** Called whenever `status` may have changed. */
	changed(): void;
	/** The notes and state that the daemon keeps for an adapter that leaves this to it. */
	notes?: KeptNotes;
	/** The shapes of valid lines. */
	shapes: Shapes;
	/** Receives the valid lines. */
	lines(values: object[], process: LineProcess): void;
	/** The process has ended; returns whether it had no open work. */
	lost(exit: Exit): boolean;
}

const GARBAGE_LOGGED_MAX = 20;
const MINUTE_MS = 60_000;
const EXCERPT_CHARS = 120;
/** The exit code of an adapter that cannot reach its platform (docs/adapter-protocol.md §1). */
const UNREACHABLE = exitCodeOf("unavailable");

export class ProcessSupervisor {
	readonly #options: ProcessSupervisorOptions;
	readonly #shapes: Shapes;
	readonly #waiting = new Set<(process: LineProcess) => void>();
	#state: Supervision = UNSTARTED;
	#process: LineProcess | undefined;
	#garbage = 0;
	/** Lines of garbage from the current process, and since when they are counted. */
	#flood: { since: number; lines: number };
	#failure: { error: string; at: number } | undefined;
	#cancelWake = () => {};
	#stopped = false;

	constructor(options: ProcessSupervisorOptions) {
		this.#options = options;
		this.#shapes = options.notes ? new Map([...options.shapes, ...KEEP_SHAPES]) : options.shapes;
		this.#flood = { since: options.clock.now(), lines: 0 };
	}

	/** The process, if it runs now. */
	get current(): LineProcess | undefined {
		return this.#state.phase.at === "running" ? this.#process : undefined;
	}

	/** Requests the process and resolves once it runs. Rejects when the signal aborts. */
	async running(signal: AbortSignal): Promise<LineProcess> {
		if (this.#stopped || signal.aborted) throw aborted();
		if (this.current) return this.current;
		const { promise, resolve, reject } = Promise.withResolvers<LineProcess>();
		const fail = () => reject(aborted());
		this.#waiting.add(resolve);
		signal.addEventListener("abort", fail, { once: true });
		this.#apply({ type: "want" });
		try {
			return await promise;
		} finally {
			this.#waiting.delete(resolve);
			signal.removeEventListener("abort", fail);
		}
	}

	status(): ProcessStatus {
		const lastError = this.#lastError();
		const { phase, restarts } = this.#state;
		return {
			state: phase.at,
			until: "until" in phase ? phase.until : undefined,
			pid: this.#process?.pid,
			restarts,
			garbage: this.#garbage,
			lastError,
		};
	}

	/** The process works again: earlier failures no longer count. */
	recovered(): void {
		this.#failure = undefined;
		this.#options.changed();
	}

	async stop(): Promise<void> {
		this.#stopped = true;
		this.#cancelWake();
		this.#apply({ type: "unwant" });
		await this.#process?.stop();
	}

	#apply(input: SupervisionInput): void {
		const { clock, rules, random, changed } = this.#options;
		const step = stepSupervision(this.#state, input, clock.now(), rules, random());
		this.#state = step.state;
		for (const effect of step.effects) {
			if (effect.type === "spawn") this.#prepare();
			else {
				this.#cancelWake();
				this.#cancelWake = clock.after(Math.max(0, effect.at - clock.now()), () => this.#apply({ type: "tick" }));
			}
		}
		changed();
	}

	/** An adapter that starts without its account's notes could create a message a second time. */
	#prepare(): void {
		const { notes, lease } = this.#options;
		if (lease?.isHeld === false) void lease.held().then(() => this.#stopped || this.#prepare());
		else if (!notes) this.#start();
		else
			notes.prepare().then(
				() => this.#stopped || this.#start(),
				(cause: unknown) => this.#exited({ code: null, detail: `its notes cannot be read: ${wordsOf(cause)}` }),
			);
	}

	#start(): void {
		const { clock, log, facts } = this.#options;
		const started = this.#spawn();
		this.#process = started;
		this.#flood = { since: clock.now(), lines: 0 };
		// A command that does not exist has no pid; its exit follows.
		if (started?.pid === undefined) return;
		this.#note(started.pid);
		log.debug({ ...facts, pid: started.pid }, "adapter started");
		this.#apply({ type: "spawned" });
		for (const resolve of [...this.#waiting]) resolve(started);
	}

	#note(pid: number): void {
		const { onSpawn, log, facts } = this.#options;
		try {
			onSpawn(pid);
		} catch (cause) {
			log.warn(
				{ ...facts, pid, err: cause },
				"could not record the adapter's pid; the next daemon cannot end it if it outlives this one",
			);
		}
	}

	#spawn(): LineProcess | undefined {
		const { clock, lines } = this.#options;
		try {
			const started: LineProcess = startProcess(this.#options, {
				lines: (values) => {
					const valid = values.flatMap((line) => this.#validLines(line, started));
					lines(valid, started);
				},
				garbage: (fault) => this.#skip(fault),
				exited: (exit) => this.#exited(exit),
			});
			return started;
		} catch (cause) {
			// The system refused another process; the restart policy tries again.
			const detail = `could not be started: ${cause instanceof Error ? cause.message : String(cause)}`;
			clock.after(0, () => this.#exited({ code: null, detail }));
			return undefined;
		}
	}

	/** The line if it is valid. Notes and state are stored instead of passed on. */
	#validLines(line: object, process: LineProcess): object[] {
		const { notes, log, facts } = this.#options;
		const checked = checkLine(line, this.#shapes);
		if ("value" in checked) {
			if (!notes || !isKept(checked.value)) return [checked.value];
			notes.take(checked.value, process);
			return [];
		}
		if ("fault" in checked) this.#skip({ reason: checked.fault, excerpt: excerptOf(line) });
		else log.debug({ ...facts, type: checked.unknown }, "unknown line type from the adapter");
		return [];
	}

	#skip(fault: LineFault): void {
		const { clock, log, facts, limits } = this.#options;
		const now = clock.now();
		this.#failure = { error: `garbage on stdout: ${fault.reason}`, at: now };
		if (++this.#garbage <= GARBAGE_LOGGED_MAX)
			log.warn({ ...facts, ...fault, garbage: this.#garbage }, "garbage on the adapter's stdout");
		if (now - this.#flood.since >= MINUTE_MS) this.#flood = { since: now, lines: 0 };
		const max = limits.garbageLinesPerMinuteMax;
		if (++this.#flood.lines === max + 1) this.#process?.kill(`wrote more than ${max} lines of garbage within a minute`);
	}

	#exited(exit: Exit): void {
		const { lost, changed, clock, log, facts } = this.#options;
		this.#process = undefined;
		const idle = lost(exit);
		const clean = this.#stopped || (idle && exit.code === 0);
		this.#apply({ type: "exited", clean, unreachable: exit.code === UNREACHABLE });
		if (clean) return;
		this.#failure = { error: exit.detail, at: clock.now() };
		changed();
		const { phase } = this.#state;
		const until = "until" in phase ? phase.until : undefined;
		log.warn({ ...facts, exit: exit.detail, state: phase.at, until }, "the adapter process ended");
	}

	/** Forgotten once the process has run without a failure for `healthyMs`. */
	#lastError(): string | undefined {
		const { clock, rules } = this.#options;
		const { phase } = this.#state;
		const failure = this.#failure;
		const quietSince = phase.at === "running" && failure ? Math.max(phase.since, failure.at) : undefined;
		if (quietSince !== undefined && clock.now() - quietSince >= rules.healthyMs) this.#failure = undefined;
		return this.#failure?.error;
	}
}

const isKept = (line: object): line is KeepLine => KEEP_SHAPES.has((line as KeepLine).type);

const excerptOf = (line: object): string => JSON.stringify(line).slice(0, EXCERPT_CHARS).toWellFormed();

/** The status of a process that runs but cannot reach its platform. */
export const unreachable = (status: ProcessStatus, error: string | undefined): ProcessStatus =>
	status.state === "running" && error !== undefined ? { ...status, state: "unreachable", lastError: error } : status;

const aborted = () => new DOMException("The adapter is no longer awaited.", "AbortError");
