/** One run of an engine: its events become frames, a transcript and records, and it settles exactly once as a turn. */

import { Refused, toNexusError } from "@nexus-stream/protocol";
import type { EngineContext, EngineEvent, EngineYield } from "@nexus-stream/protocol/engine";
import type { LogWriter } from "../../bus/bus.ts";
import { type Turn, turnWrites } from "../../ledger/turns/port.ts";
import { type Driven, Driver } from "../driver.ts";
import { ABORTED, type Ending, failureOf, SHUT_DOWN, settle, UNWRITTEN } from "../ending.ts";
import type { Framer } from "../frames/framer.ts";
import type { Recorder } from "../frames/recorder.ts";
import type { Transcript } from "../frames/transcript.ts";
import type { ExecuteRequest, LiveRun, Saved } from "../port.ts";
import { alarmMessage } from "../watchdog.ts";
import { isOutcome, type ToolEvent, ToolStarts } from "./engine-event.ts";
import { RunJoining } from "./joining.ts";
import { type NamedEvent, opening, RunApprovals } from "./run-approvals.ts";
import { chainOf, engineRequestOf, iteratorOf, metaOf, partsOf, type RunDeps } from "./run-parts.ts";

export class Run {
	readonly request: ExecuteRequest;
	readonly #deps: RunDeps;
	readonly #driver: Driver<EngineEvent>;
	readonly #framer: Framer;
	readonly #transcript: Transcript;
	readonly #recorder: Recorder;
	readonly #result = Promise.withResolvers<Turn>();
	readonly #onRecord = Promise.withResolvers<Saved>();
	readonly #approvals: RunApprovals;
	readonly #joining: RunJoining;
	readonly #starts = new ToolStarts();
	/** The commit of an approval's row: no event is taken meanwhile. */
	#opening: Promise<void> | undefined;
	/** A tool waits for the lease. */
	#lapse: Promise<void> | undefined;
	/** The last yield had more than text: most have not. */
	#hasRecords = false;
	#writer: LogWriter | undefined;
	#saved = false;
	#refused = false;

	constructor(deps: RunDeps, request: ExecuteRequest) {
		this.#deps = deps;
		this.request = request;
		this.#driver = new Driver(deps.clock, this.#driven());
		const { now, startedAt } = this.#driver;
		const { framer, transcript, recorder } = partsOf(deps, request, startedAt);
		this.#framer = framer;
		this.#transcript = transcript;
		this.#recorder = recorder;
		this.#approvals = new RunApprovals(deps.approvals, { request, now, changed: () => this.#onApprovals() });
		const isOver = () => this.#driver.isOver;
		this.#joining = new RunJoining({ inbox: request.inbox, framer, transcript, recorder, now, isOver });
		// The promise of `establish` reports a failed start; a caller need not handle both.
		this.#result.promise.catch(() => {});
	}

	get result(): Promise<Turn> {
		return this.#result.promise;
	}

	/** The turn as stored; undefined when this process stores none. */
	get saved(): Promise<Saved> {
		return this.#onRecord.promise;
	}

	get chunks(): number {
		return this.#framer.streams.chunks;
	}

	/** From establishment until the turn is saved. */
	get streaming(): boolean {
		return this.#writer !== undefined && !this.#saved;
	}

	/** The run has ended, and the Ledger refuses its turn for now. */
	get refused(): boolean {
		return this.#refused;
	}

	/** A person has been asked and has not answered. */
	get isWaiting(): boolean {
		return this.#approvals.isWaiting;
	}

	/** Makes the first begin durable, together with the request's writes, then starts the engine (I9). A stop waits for the outcome (ST15). */
	async establish(): Promise<void> {
		const { runId, session, begin = [], patienceMs, continues } = this.request;
		const { bus, engine, approvals } = this.#deps;
		const { startedAt } = this.#driver;
		const records = this.#framer.streams.collect(() => this.#framer.open(startedAt));
		const meta = metaOf(this.request, engine.name, startedAt);
		const marks = continues ? [turnWrites.continued(continues.runId, runId)] : [];
		const superseding = approvals.superseding(session, runId);
		const writes = [...begin, ...marks, ...this.#recorder.begin(startedAt), ...superseding.writes];
		const spec = { log: runId, kind: "run", chain: chainOf(session), meta } as const;
		let writer: LogWriter;
		try {
			writer = await bus.create(spec, records, { with: writes, patienceMs });
		} catch (cause) {
			this.#driver.cancel();
			this.#onRecord.resolve(undefined);
			const error = toNexusError(cause);
			this.#result.reject(error);
			throw error;
		}
		superseding.done();
		this.#writer = writer;
		this.#framer.streams.attach((record) => writer.append(record));
		this.#driver.start(writer);
	}

	/** Settles within the grace time, even if the engine ignores its signal (I12). */
	abort(): void {
		this.#driver.stop(ABORTED);
	}

	/**
	 * The daemon stops: as `abort`, and the end says why. A run that waits for a person settles immediately; if a later run can continue it, the
	 * question stays open and its answer starts that run.
	 */
	shutDown(): void {
		if (this.#driver.isOver) return;
		const isCutOff = this.isWaiting && this.#writer !== undefined && this.#transcript.oldestToolAt === undefined;
		if (this.#deps.engine.continues) this.#approvals.keep();
		this.#driver.stop(SHUT_DOWN, isCutOff ? "immediately" : "gracefully");
	}

	snapshot(): LiveRun {
		const { runId, session, continues } = this.request;
		const transcript = this.#transcript;
		return {
			runId,
			session,
			engine: this.#deps.engine.name,
			startedAt: this.#driver.startedAt,
			status: this.#driver.isStopped ? "stopping" : "running",
			compacting: this.#framer.compacting,
			continues: continues?.runId,
			firstTokenMs: transcript.firstTokenMs,
			toolCalls: transcript.toolCalls,
			// Lazy: most callers only list the live runs.
			get text() {
				return transcript.text;
			},
			get messages() {
				return transcript.messages;
			},
		};
	}

	#driven(): Driven<EngineEvent> {
		const { limits, log } = this.#deps;
		const { runId } = this.request;
		return {
			runId,
			noun: "run",
			limits,
			open: (signal) => this.#open(signal),
			take: (event, now) => this.#take(event, now),
			blockedBy: () => this.#opening ?? this.#lapse,
			afterYield: () => (this.#hasRecords ? this.#commit() : undefined),
			oldestToolAt: () => this.#transcript.oldestToolAt,
			pauses: () => this.#approvals.pauses,
			timeout: (alarm) => ({ reason: "timeout", error: { code: "timeout", message: alarmMessage(alarm, limits) } }),
			failed(cause, isOver) {
				const facts = { runId, err: cause };
				if (isOver) log.debug(facts, "the engine failed after its run was over or stopped");
				else log.error(facts, "the engine failed");
				return failureOf(cause);
			},
			settle: (ending) => void this.#seal(ending),
		};
	}

	async #open(signal: AbortSignal): Promise<AsyncIterator<EngineYield> | undefined> {
		const request = await engineRequestOf(this.#deps, this.request);
		// A stop or a deadline may have come while the history was read (ST15).
		if (this.#driver.isOver) return undefined;
		if (request.phase) this.#framer.enter(request.phase.name);
		const answer = this.#approvals.answer.bind(this.#approvals);
		const inbox: EngineContext["inbox"] = { take: (checkpointFor) => this.#joining.take(this.#writer!, checkpointFor) };
		return iteratorOf(this.#deps.engine, request, { signal, answer, inbox });
	}

	#take(event: EngineEvent, now: number): boolean {
		if (this.#driver.isStopped && !isOutcome(event, this.#framer)) return false;
		if (event?.type === "tool") {
			for (const each of this.#starts.mended(event)) this.#takeTool(each, now);
			return true;
		}
		const taken = this.#framer.take(event, now);
		this.#transcript.take(taken, this.#framer.text, now);
		if (event.type !== "text" && event.type !== "reasoning") this.#record(taken, now);
		return false;
	}

	#takeTool(reported: ToolEvent, now: number): void {
		if (reported.status === "started" && !this.#deps.bus.lease.isHeld) this.#awaitLease();
		const { event, open } = reported.asking ? this.#approvals.take(reported) : { event: reported };
		if (open) {
			this.#openApproval(event, open, now);
			return;
		}
		const taken = this.#framer.take(event, now);
		this.#transcript.take(taken, this.#framer.text, now);
		this.#record(taken, now);
	}

	/** The engine runs the tool when it is asked for the next event: not before the lease is held, because another daemon may have the run. */
	#awaitLease(): void {
		this.#lapse ??= this.#deps.bus.lease.held().then(() => {
			this.#lapse = undefined;
		});
	}

	#record(event: EngineEvent, now: number): void {
		this.#deps.observer?.took(this.request.runId, event, now);
		this.#recorder.take(event, now);
		this.#hasRecords = true;
	}

	#commit(): Promise<void> | undefined {
		this.#hasRecords = false;
		return this.#recorder.commitDue(this.#writer!);
	}

	/** The row, its frame and the checkpoint before it commit together; no person is asked before. */
	#openApproval(event: ToolEvent, open: NonNullable<NamedEvent["open"]>, now: number): void {
		const records = this.#framer.streams.collect(() => {
			const taken = this.#framer.take(event, now);
			this.#transcript.take(taken, this.#framer.text, now);
		});
		this.#opening = opening(this.#writer!, records, open, this.#recorder.drain()).finally(() => {
			this.#opening = undefined;
			if (this.#deps.stopping() && this.isWaiting) this.shutDown();
		});
	}

	/** A person was asked, or has answered. */
	#onApprovals(): void {
		if (!this.isWaiting) this.#driver.resume();
		this.#driver.look();
	}

	/** The turn and the final frame commit together (I5). */
	async #seal(ending: Ending): Promise<void> {
		await this.#joining.settled();
		const { clock, log } = this.#deps;
		const { settle: writesOf = () => [] } = this.request;
		const now = this.#driver.now();
		const reason = ending.reason === "aborted" ? "the run was stopped" : "the run has ended";
		const withdrawn = this.#approvals.atEnd(reason);
		const settleWith = (turn: Turn) => [...writesOf(turn), ...this.#recorder.end(turn), ...withdrawn.writes];
		const turn = this.#transcript.turn(ending, now);
		const onRefused = () => {
			this.#refused = true;
		};
		try {
			const records = this.#framer.streams.collect(() => this.#framer.end(ending, turn.usage, now, turn.usageBy));
			await this.#opening;
			await this.#recorder.settled();
			const saved = await settle({ clock, log }, { writer: this.#writer!, turn, records, settleWith, onRefused });
			withdrawn.done();
			this.#onSaved(saved);
			this.#result.resolve(saved);
		} catch (cause) {
			const { code, message } = toNexusError(cause);
			this.#result.resolve({ ...turn, status: "failed", reason: "error", error: { code, message } });
			const late = await this.#settleLate(cause, settleWith);
			if (!late) return this.#onRecord.resolve(undefined);
			withdrawn.done();
			this.#onSaved(late);
		}
	}

	/** The store gave up: recovery settles the run from its log once the store can be written again. */
	async #settleLate(cause: unknown, settleWith: (turn: Turn) => ReturnType<Recorder["end"]>): Promise<Saved> {
		const { log, settleLate } = this.#deps;
		const { runId } = this.request;
		this.#refused = true;
		if (cause instanceof Refused && cause.refusal === "fenced") {
			log.error({ runId, err: cause }, "another daemon has taken over the run, and ends it");
			return undefined;
		}
		log.error({ runId, err: cause }, "the run could not be settled; it will be once the store can be written again");
		return settleLate(runId, UNWRITTEN, settleWith);
	}

	#onSaved(turn: Turn | "lost"): void {
		this.#saved = true;
		this.#refused = false;
		this.#onRecord.resolve(turn);
	}
}
