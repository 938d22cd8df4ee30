/** One run: pumps the engine's events through the framer onto its log, and settles exactly once, whoever ends it. */

import { NexusError, Refused, toNexusError } from "@nexus-stream/protocol";
import { elapsing } from "@nexus-stream/protocol/clock";
import type { LogWriter } from "../../bus/bus.ts";
import type { EngineContext, EngineEvent, EngineYield } from "../../engine/engine.ts";
import { type Turn, turnWrites } from "../../ledger/ledger.ts";
import { type Burst, DELTA_CHARS_MAX, type Delta, isBurst, isLong, pause } from "../frames/burst.ts";
import type { Framer } from "../frames/framer.ts";
import type { CommitTiming, Recorder } from "../frames/recorder.ts";
import type { Sink } from "../frames/streams.ts";
import { ToolStarts } from "../frames/tool-starts.ts";
import type { Transcript } from "../frames/transcript.ts";
import type { ExecuteRequest, LiveRun, Saved } from "../port.ts";
import type { SettleOrphan } from "../recovery.ts";
import { ABORTED, COMPLETED, type Ending, failureOf, SHUT_DOWN, UNWRITTEN } from "../settle/ending.ts";
import { settle } from "../settle/settlement.ts";
import { snapshotOf } from "../settle/snapshot.ts";
import { alarmMessage, watch } from "../watchdog.ts";
import { asRun } from "./current-run.ts";
import { isOutcome, type ToolEvent } from "./engine-event.ts";
import { closeIterator, engineRequestOf, iteratorOf } from "./engine-run.ts";
import { RunJoining } from "./joining.ts";
import { type NamedEvent, opening, RunApprovals } from "./run-approvals.ts";
import type { RunDeps } from "./run-deps.ts";
import { chainOf } from "./run-log.ts";
import { metaOf, partsOf } from "./run-parts.ts";

/** Events that write nothing must not starve the loop either. */
const EVENTS_PER_TURN_OF_LOOP_MAX = 1024;

export class Run {
	readonly request: ExecuteRequest;
	readonly startedAt: number;
	readonly #deps: RunDeps;
	/** Setting the clock must neither keep a watchdog from its work, nor set one off, nor let an answer end before it began. */
	readonly #now: () => number;
	readonly #framer: Framer;
	readonly #transcript: Transcript;
	readonly #recorder: Recorder;
	readonly #abort = new AbortController();
	readonly #result = Promise.withResolvers<Turn>();
	readonly #onRecord = Promise.withResolvers<Saved>();
	readonly #approvals: RunApprovals;
	readonly #joining: RunJoining;
	readonly #starts = new ToolStarts();
	#due: CommitTiming;
	/** A question that is being put on record: nothing is taken meanwhile. */
	#opening: Promise<void> | undefined;
	#append: Sink = () => {};
	#writer: LogWriter | undefined;
	#iterator: AsyncIterator<EngineYield> | undefined;
	#lastEventAt: number | undefined;
	/** Why the run was told to stop: from then on that is how it ends. */
	#stop: { ending: Ending; at: number } | undefined;
	/** Decided how it ends; nothing is taken any more. */
	#settled = false;
	#saved = false;
	#refused = false;
	#disarm: (() => void) | undefined;

	constructor(deps: RunDeps, request: ExecuteRequest) {
		this.#deps = deps;
		this.request = request;
		this.#now = elapsing(deps.clock);
		this.startedAt = this.#now();
		const { framer, transcript, recorder } = partsOf(deps, request, this.startedAt);
		this.#framer = framer;
		this.#transcript = transcript;
		this.#recorder = recorder;
		this.#approvals = new RunApprovals(deps.approvals, { request, now: this.#now, changed: () => this.#onApprovals() });
		const isOver = () => this.#settled || this.#stop !== undefined;
		this.#joining = new RunJoining({ inbox: request.inbox, framer, transcript, recorder, now: this.#now, isOver });
		// Whoever starts a run learns of a failed establishment there; nobody has to look here as well.
		this.#result.promise.catch(() => {});
	}

	get result(): Promise<Turn> {
		return this.#result.promise;
	}

	/** The turn as it is on record; undefined when there will be none of this process. */
	get saved(): Promise<Saved> {
		return this.#onRecord.promise;
	}

	get chunks(): number {
		return this.#framer.chunks;
	}

	/** From establishment until the turn is saved. */
	get streaming(): boolean {
		return this.#writer !== undefined && !this.#saved;
	}

	/** It has ended, and the Ledger refuses its turn: it is tried again. */
	get refused(): boolean {
		return this.#refused;
	}

	get compacting(): boolean {
		return this.#framer.compacting;
	}

	/** Makes the first begin durable, together with the request's writes, then lets the engine go (I9). A stop waits for the outcome (ST15). */
	async establish(): Promise<void> {
		const { runId, session, begin = [], patienceMs, continues } = this.request;
		const { bus, engine } = this.#deps;
		const records: string[] = [];
		this.#framer.open(this.startedAt, (record) => records.push(record));
		const meta = metaOf(this.request, engine.name, this.startedAt);
		const marks = continues ? [turnWrites.continued(continues.runId, runId)] : [];
		let writer: LogWriter;
		const superseding = this.#deps.approvals.superseding(session, runId);
		try {
			writer = await bus.create({ log: runId, kind: "run", chain: chainOf(session), meta }, records, {
				with: [...begin, ...marks, ...this.#recorder.begin(this.startedAt), ...superseding.writes],
				patienceMs,
			});
		} catch (cause) {
			this.#settled = true;
			this.#onRecord.resolve(undefined);
			const error = toNexusError(cause);
			this.#result.reject(error);
			throw error;
		}
		superseding.done();
		this.#writer = writer;
		this.#append = (record) => writer.append(record);
		void asRun(runId, () => this.#drive(writer));
	}

	/** A person is being asked. */
	get isWaiting(): boolean {
		return this.#approvals.isWaiting;
	}

	/** Settles within the grace time, even if the engine ignores its signal (I12). */
	abort(): void {
		this.#stopWith(ABORTED);
	}

	/** The daemon stops: as `abort`, and whoever reads it later is told why. */
	shutDown(): void {
		this.#stopWith(SHUT_DOWN);
	}

	snapshot(): LiveRun {
		const status = this.#stop ? "stopping" : "running";
		const { startedAt, compacting, request } = this;
		return snapshotOf(this.#transcript, request, { engine: this.#deps.engine.name, startedAt, status, compacting });
	}

	async #drive(writer: LogWriter): Promise<void> {
		try {
			await this.#pump(writer);
			this.#iterator = undefined;
			this.#settle(COMPLETED);
		} catch (cause) {
			const { log } = this.#deps;
			const facts = { runId: this.request.runId, err: cause };
			if (this.#settled || this.#stop) log.debug(facts, "the engine failed after its run was over or stopped");
			else log.error(facts, "the engine failed");
			this.#settle(failureOf(cause));
		}
	}

	/** The way of every token. One await per yield; no promise, timer or check of ours beyond that. */
	async #pump(writer: LogWriter): Promise<void> {
		if (this.#stop) return;
		this.#look();
		const request = await engineRequestOf(this.#deps, this.request);
		// It may have been stopped, or its time may be over, while the past was read (ST15).
		if (this.#stop || this.#settled) return;
		if (request.phase) this.#framer.enter(request.phase.name);
		const { signal } = this.#abort;
		const answer = this.#approvals.answer.bind(this.#approvals);
		const inbox: EngineContext["inbox"] = { take: (checkpointFor) => this.#joining.take(writer, checkpointFor) };
		const iterator = iteratorOf(this.#deps.engine, request, { signal, answer, inbox });
		this.#iterator = iterator;
		for (let quiet = 0; !this.#settled; ) {
			const step = await iterator.next();
			if (step.done || this.#settled) return;
			const said = step.value;
			quiet++;
			if (isBurst(said)) {
				quiet += said.length;
				const taken = this.#takeSome(said, 0, writer);
				if (taken < said.length) await this.#takeRest(said, taken, writer);
			} else if (isLong(said)) await this.#takeLong(said, writer);
			else this.#take(said);
			if (this.#opening) await this.#opening;
			if (this.#due !== undefined) this.#due = await this.#recorder.commitDue(writer);
			if (writer.crowded || quiet >= EVENTS_PER_TURN_OF_LOOP_MAX) {
				quiet = 0;
				await pause(writer);
			}
		}
	}

	#take(event: EngineEvent): void {
		const now = this.#now();
		const first = this.#lastEventAt === undefined;
		this.#lastEventAt = now;
		if (this.#frame(event, now) || first) this.#look();
	}

	/** Whether something may now fall due earlier than the one timer: only then is it set anew. */
	#frame(event: EngineEvent, now: number): boolean {
		if (this.#stop && !isOutcome(event, this.#framer)) return false;
		if (event?.type === "tool") {
			for (const one of this.#starts.mended(event)) this.#frameTool(one, now);
			return true;
		}
		const taken = this.#framer.take(event, now, this.#append);
		this.#transcript.take(taken, this.#framer.text, now);
		if (event.type !== "text" && event.type !== "reasoning") this.#record(taken, now);
		return false;
	}

	#frameTool(event: ToolEvent, now: number): void {
		const named = event.asking ? this.#approvals.take(event) : undefined;
		if (named?.open) {
			this.#open(named, now);
			return;
		}
		const taken = this.#framer.take(named?.event ?? event, now, this.#append);
		this.#transcript.take(taken, this.#framer.text, now);
		this.#record(taken, now);
	}

	#record(event: EngineEvent, now: number): void {
		this.#deps.observer?.took(this.request.runId, event, now);
		this.#due = this.#recorder.take(event, now);
	}

	/** The row, its frame and the checkpoint before it commit together; no person is asked before. */
	#open({ event, open }: NamedEvent, now: number): void {
		const records: string[] = [];
		const taken = this.#framer.take(event, now, (record) => records.push(record));
		this.#transcript.take(taken, this.#framer.text, now);
		this.#opening = opening(this.#writer!, records, open!, this.#recorder.drain()).finally(() => {
			this.#opening = undefined;
			if (this.#deps.stopping() && this.isWaiting) this.shutDown();
		});
	}

	/** A person is asked, or has answered: the wait counts as none. */
	#onApprovals(): void {
		if (!this.isWaiting) this.#lastEventAt &&= this.#now();
		if (this.#writer) this.#look();
	}

	/** What one commit and one turn of the loop have room for, all at one time and up to a long delta. Returns where it stopped. */
	#takeSome(burst: Burst, from: number, writer: LogWriter): number {
		const end = Math.min(burst.length, from + EVENTS_PER_TURN_OF_LOOP_MAX);
		if (from === end || isLong(burst[from]!)) return from;
		const now = this.#now();
		let look = this.#lastEventAt === undefined;
		this.#lastEventAt = now;
		let at = from;
		do {
			if (this.#frame(burst[at++]!, now)) look = true;
		} while (at < end && !this.#opening && !writer.crowded && !isLong(burst[at]!));
		if (look) this.#look();
		return at;
	}

	/** A stop has not to wait for the end of a long burst, nor do other runs. */
	async #takeRest(burst: Burst, from: number, writer: LogWriter): Promise<void> {
		for (let at = from; at < burst.length; ) {
			const event = burst[at]!;
			if (isLong(event)) {
				await this.#takeLong(event, writer);
				at++;
			}
			await (this.#opening ?? pause(writer));
			if (this.#settled) return;
			at = this.#takeSome(burst, at, writer);
		}
	}

	/** In portions: neither a commit nor a reader has to hold all of it at once, and a stop has not to wait for the end of it. */
	async #takeLong(event: Delta, writer: LogWriter): Promise<void> {
		const { delta } = event;
		for (let at = 0; at < delta.length && !this.#settled; at += DELTA_CHARS_MAX) {
			this.#take({ ...event, delta: delta.slice(at, at + DELTA_CHARS_MAX) });
			if (writer.crowded) await writer.room();
		}
	}

	#look(): void {
		this.#disarm?.();
		this.#disarm = undefined;
		if (this.#settled) return;
		const { clock, limits } = this.#deps;
		const { startedAt } = this;
		const times = {
			startedAt,
			lastEventAt: this.#lastEventAt,
			stoppedAt: this.#stop?.at,
			pauses: this.#approvals.pauses,
		};
		const verdict = watch({ ...times, oldestToolAt: this.#transcript.oldestToolAt }, limits, this.#now());
		if ("againMs" in verdict) {
			if (verdict.againMs !== Infinity) this.#disarm = clock.after(verdict.againMs, () => this.#look());
		} else if (verdict.alarm === "grace") {
			this.#settle(this.#stop!.ending);
		} else {
			const message = alarmMessage(verdict.alarm, limits);
			this.#stopWith({ reason: "timeout", error: { code: "timeout", message } });
		}
	}

	#stopWith(ending: Ending): void {
		if (this.#settled || this.#stop) return;
		this.#stop = { ending, at: this.#now() };
		// Nobody waits for a person at shutdown: the question stays open, and its answer begins a run that goes on from here.
		const isCutOff = ending === SHUT_DOWN && this.isWaiting;
		// Where no run can go on from here, nobody's answer would be of use.
		if (ending === SHUT_DOWN && this.#deps.engine.continues) this.#approvals.keep();
		if (isCutOff && this.#writer && this.#transcript.oldestToolAt === undefined) {
			this.#settle(ending);
			return;
		}
		this.#abort.abort(new NexusError(ending.reason === "timeout" ? "timeout" : "aborted", "the run was stopped"));
		if (this.#writer) this.#look();
	}

	#settle(ending: Ending): void {
		if (this.#settled) return;
		this.#settled = true;
		this.#disarm?.();
		this.#release();
		void this.#seal(this.#stop?.ending ?? ending);
	}

	/** An engine that has not ended by itself is told to, and not waited for. */
	#release(): void {
		const iterator = this.#iterator;
		if (!iterator) return;
		const { log } = this.#deps;
		const { runId } = this.request;
		this.#abort.abort(new NexusError("aborted", "the run is over"));
		closeIterator(iterator, (cause) => log.debug({ runId, err: cause }, "the engine failed after its run"));
	}

	/** The turn and the final frame commit together (I5). */
	async #seal(ending: Ending): Promise<void> {
		await this.#joining.settled();
		const { clock, log } = this.#deps;
		const { settle: others = () => [] } = this.request;
		const now = this.#now();
		const asked = this.#approvals.atEnd(ending.reason === "aborted" ? "the run was stopped" : "the run has ended");
		const beside = (turn: Turn) => [...others(turn), ...this.#recorder.end(turn), ...asked.writes];
		const turn = this.#transcript.turn(ending, now);
		const onRefused = () => {
			this.#refused = true;
		};
		try {
			const records: string[] = [];
			this.#framer.end(ending, turn.usage, now, (record) => records.push(record), turn.usageBy);
			await this.#opening;
			await this.#recorder.settled();
			const saved = await settle({ clock, log }, { writer: this.#writer!, turn, records, beside, onRefused });
			asked.done();
			this.#onSaved(saved);
			this.#result.resolve(saved);
		} catch (cause) {
			const { code, message } = toNexusError(cause);
			this.#result.resolve({ ...turn, status: "failed", reason: "error", error: { code, message } });
			await this.#settleLate(cause, beside, asked.done);
		}
	}

	/** The store did not take the end of the run. */
	async #settleLate(cause: unknown, beside: SettleOrphan, onSettled: () => void): Promise<void> {
		const { log, settleLate } = this.#deps;
		const { runId } = this.request;
		this.#refused = true;
		if (cause instanceof Refused && cause.refusal === "fenced") {
			log.error({ runId, err: cause }, "another daemon has taken over the run, and ends it");
			this.#onRecord.resolve(undefined);
			return;
		}
		log.error({ runId, err: cause }, "the run could not be settled; it is when the store can be written again");
		const late = await settleLate(runId, UNWRITTEN, beside);
		if (!late) return this.#onRecord.resolve(undefined);
		onSettled();
		this.#onSaved(late);
	}

	#onSaved(turn: Turn | "lost"): void {
		this.#saved = true;
		this.#refused = false;
		this.#onRecord.resolve(turn);
	}
}
