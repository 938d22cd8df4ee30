/** Changes of a run beyond its frames: checkpoint, phase and execution log. They commit with the frames of the same yield, so that none is durable without the other (A5). */

import { isToolDone, NexusError, Refused, wordsOf } from "@nexus-stream/protocol";
import type { Engine, EngineEvent, ExecutionEntry } from "@nexus-stream/protocol/engine";
import type { Log } from "@nexus-stream/protocol/log";
import type { LogWriter } from "../../bus/bus.ts";
import { checkpointWrites, type StoredCheckpoint } from "../../ledger/checkpoints/port.ts";
import { executionWrites, type StoredEntry } from "../../ledger/execution/port.ts";
import { phaseWrites } from "../../ledger/phases/port.ts";
import type { Turn } from "../../ledger/turns/port.ts";
import { defined } from "../../std/defined.ts";
import type { Write } from "../../std/write.ts";
import { UNPAIRED_SUMMARY } from "../ending.ts";
import { checkPhase } from "../phases.ts";
import type { BrokerLimits, Continuation } from "../port.ts";
import { malformed, type ToolEvent } from "../run/engine-event.ts";
import { clippedText } from "./text.ts";

export interface RecorderOptions {
	runId: string;
	session: string;
	engine: Pick<Engine, "name" | "continues" | "configHash" | "phases">;
	continues?: Continuation | undefined;
	limits: Pick<BrokerLimits, "checkpointBytesMax" | "executionEntriesMax" | "executionCharsMax">;
	/** Keeps private fields in the execution log. */
	withArguments: boolean;
	/** Characters of each assistant message so far, by its id. */
	lengths(): Record<string, number>;
	log: Log;
}

/** Fields of an entry that may hold private text: kept only if the configuration asks for it. */
const PRIVATE: ReadonlySet<string> = new Set(["args", "arguments", "result", "prompt", "messages"]);

type RecordedEntry = Omit<ExecutionEntry, "kind"> & { kind: string };

/** `now`: the engine waits until it is durable (A4). `later`: with the next commit. */
type CommitTiming = "now" | "later" | undefined;

export class Recorder {
	readonly #options: RecorderOptions;
	#checkpoint: Write | undefined;
	#writes: Write[] = [];
	#entries: StoredEntry[] = [];
	#entriesLeft: number;
	#committing: Promise<void> | undefined;
	#due: CommitTiming;
	readonly #toolsAt = new Map<string, number>();

	constructor(options: RecorderOptions) {
		this.#options = options;
		this.#entriesLeft = options.limits.executionEntriesMax;
	}

	/** The writes that commit with the run's first begin: the start of a run is its first checkpoint. */
	begin(at: number): Write[] {
		const { engine, session, continues } = this.#options;
		const writes: Write[] = [];
		if (engine.continues) {
			const { checkpoint = null, shown = "", answer } = continues ?? {};
			if (continues) writes.push(checkpointWrites.remove(continues.runId));
			writes.push(checkpointWrites.put({ ...this.#row(jsonOf(checkpoint), at), lengths: {}, shown, answer }));
		}
		const [first] = engine.phases ?? [];
		if (first !== undefined) writes.push(phaseWrites.begin(session, first, at));
		if (continues)
			this.#add({ kind: "note", text: `continues run ${continues.runId}`, data: { continues: continues.runId } }, at);
		return [...writes, ...this.drain()];
	}

	/** Commits what the last yield recorded. The engine waits for the promise: a tool acts, and a checkpoint counts, only once it is durable (A4). */
	commitDue(writer: LogWriter): Promise<void> | undefined {
		const due = this.#due;
		if (due === undefined) return undefined;
		this.#due = undefined;
		if (due === "now") return this.commit(writer);
		this.commitLater(writer);
		return undefined;
	}

	/** Records an event that was framed. Throws `engine_failed` for an event that the port does not have. */
	take(event: EngineEvent, now: number): void {
		const due = this.#take(event, now);
		if (this.#due !== "now") this.#due = due ?? this.#due;
	}

	#take(event: EngineEvent, now: number): CommitTiming {
		switch (event.type) {
			case "tool":
				return this.#tool(event, now);
			case "checkpoint":
				this.#mark(event.data, now);
				return "now";
			case "phase":
				this.#enter(event, now);
				return "now";
			case "log":
				this.#log(event, now);
				return "later";
			default:
				return undefined;
		}
	}

	/** A checkpoint that commits with joining messages instead of the engine's events. */
	mark(data: unknown, at: number): Write[] {
		this.#mark(data, at);
		const write = this.#checkpoint;
		this.#checkpoint = undefined;
		return write ? [write] : [];
	}

	/** Resolves once everything recorded and appended so far is durable. */
	commit(writer: LogWriter): Promise<void> {
		const writes = this.drain();
		if (writes.length === 0) return writer.flushed();
		const committing = this.#commit(writer, writes).finally(() => {
			if (this.#committing === committing) this.#committing = undefined;
		});
		this.#committing = committing;
		return committing;
	}

	/** As `commit`, without waiting. Entries recorded meanwhile go with the next commit. */
	commitLater(writer: LogWriter): void {
		if (this.#committing) return;
		this.commit(writer).then(
			() => {
				if (this.#entries.length > 0) this.commitLater(writer);
			},
			(cause: unknown) => this.#options.log.warn({ runId: this.#options.runId, err: cause }, LOST),
		);
	}

	/** Resolves when no commit is under way: the end of the log must not cut one off. */
	async settled(): Promise<void> {
		while (this.#committing) await this.#committing.catch(() => {});
	}

	/** The writes that commit with the turn. */
	end(turn: Turn): Write[] {
		const { runId, engine } = this.#options;
		const done = turn.status === "completed" && engine.continues;
		// Not drained: saving the turn may take several attempts.
		return [...this.#pending(), ...(done ? [checkpointWrites.remove(runId)] : []), ...settledWrites(turn)];
	}

	async #commit(writer: LogWriter, writes: readonly Write[]): Promise<void> {
		try {
			await writer.appendWith([], writes);
		} catch (cause) {
			if (!(cause instanceof Refused) || cause.refusal === "fenced") throw cause;
			this.#options.log.error({ runId: this.#options.runId, err: cause }, LOST);
			await writer.flushed();
		}
	}

	#pending(): Write[] {
		const entries = this.#entries.length > 0 ? [executionWrites.add(this.#entries)] : [];
		return [...(this.#checkpoint ? [this.#checkpoint] : []), ...this.#writes, ...entries];
	}

	/** Hands the recorded writes to a caller that commits them. */
	drain(): Write[] {
		const writes = this.#pending();
		this.#checkpoint = undefined;
		this.#writes = [];
		this.#entries = [];
		return writes;
	}

	#row(data: string, at: number): Omit<StoredCheckpoint, "lengths" | "shown"> {
		const { runId, session, engine, continues } = this.#options;
		const { configHash = "" } = engine;
		return { runId, session, engine: engine.name, configHash, at, root: continues?.root ?? runId, data };
	}

	/** A checkpoint that is too large also removes the earlier one: continuing from there would repeat finished tools. */
	#mark(value: unknown, at: number): void {
		const { runId, limits, lengths, log, engine } = this.#options;
		const { checkpointBytesMax } = limits;
		if (!engine.continues) return;
		const data = jsonOf(value);
		const bytes = Buffer.byteLength(data);
		if (bytes <= checkpointBytesMax) {
			this.#checkpoint = checkpointWrites.put({ ...this.#row(data, at), lengths: lengths(), shown: "" });
			return;
		}
		log.warn({ runId, bytes, checkpointBytesMax }, "a checkpoint is too large; the run cannot be continued");
		this.#checkpoint = checkpointWrites.remove(runId);
	}

	#enter(event: Extract<EngineEvent, { type: "phase" }>, now: number): void {
		const { name, because, agent } = event;
		if (typeof name !== "string" || typeof because !== "string") throw malformed(event);
		checkPhase(name, this.#options.engine.phases);
		const { session, limits } = this.#options;
		this.#writes.push(phaseWrites.enter(session, name, clippedText(because, limits.executionCharsMax), now));
		this.#add({ kind: "phase", text: `${name}: ${because}`, data: { phase: name }, ...by(agent) }, now);
	}

	#log(event: Extract<EngineEvent, { type: "log" }>, now: number): void {
		const { entry } = event;
		if (typeof entry?.kind !== "string" || typeof entry.text !== "string") throw malformed(event);
		if (entry.kind === "completion") this.#writes.push(phaseWrites.count(this.#options.session, 0, 1));
		this.#add(entry, now);
	}

	#tool({ callId, name, status, args, summary, result, agent }: ToolEvent, now: number): CommitTiming {
		if (status === "progress") return undefined;
		const done = isToolDone(status);
		const startedAt = this.#toolsAt.get(callId);
		if (done) this.#toolsAt.delete(callId);
		else this.#toolsAt.set(callId, now);
		const ms = done && startedAt !== undefined ? { ms: now - startedAt } : {};
		const data = { call_id: callId, tool: name, status, ...ms, args, result };
		this.#add({ kind: "tool", text: summary ?? name, data, ...by(agent) }, now);
		return done ? "later" : "now";
	}

	#add(entry: RecordedEntry, at: number): void {
		const { runId, session, limits } = this.#options;
		if (this.#entriesLeft < 0) return;
		this.#entriesLeft--;
		const isOver = this.#entriesLeft < 0;
		const { executionEntriesMax: most } = limits;
		const { kind, text, agent, data }: RecordedEntry = isOver
			? { kind: "note", text: `the run has more than ${most} entries (broker.executionEntriesMax)` }
			: entry;
		this.#entries.push({
			session,
			runId,
			at,
			kind,
			text: clippedText(text, limits.executionCharsMax),
			...by(agent),
			data: data && this.#dataOf(data),
		});
	}

	#dataOf(data: Readonly<Record<string, unknown>>): Record<string, unknown> {
		const { withArguments, limits } = this.#options;
		const kept = Object.entries(defined(data)).filter(([key]) => withArguments || !PRIVATE.has(key));
		const all = Object.fromEntries(kept);
		if (jsonOf(all).length <= limits.executionCharsMax) return all;
		const short = Object.fromEntries(kept.filter(([key]) => !PRIVATE.has(key)));
		return jsonOf(short).length <= limits.executionCharsMax ? { ...short, cut: true } : { cut: true };
	}
}

/** Writes of every settled turn: its count, and the end of each open tool call in the execution log. */
export function settledWrites({ session, runId, reason, endedAt: at, toolCalls }: Turn): Write[] {
	const summary = UNPAIRED_SUMMARY[reason];
	const open = toolCalls.filter((call) => call.status === "failed" && call.endedAt === at && call.summary === summary);
	const entries = open.map(({ callId, name, startedAt }): StoredEntry => {
		const data = { call_id: callId, tool: name, status: "failed", ms: at - startedAt };
		return { session, runId, at, kind: "tool", text: summary, data };
	});
	return [phaseWrites.count(session, 1, 0), ...(entries.length > 0 ? [executionWrites.add(entries)] : [])];
}

const by = (agent: string | undefined): { agent?: string } => (agent === undefined ? {} : { agent });

const LOST = "the checkpoint, phase or log entries of a run could not be saved";

function jsonOf(value: unknown): string {
	try {
		return JSON.stringify(value) ?? "null";
	} catch (cause) {
		throw new NexusError("engine_failed", `What the engine yielded is not JSON: ${wordsOf(cause)}`, { cause });
	}
}
