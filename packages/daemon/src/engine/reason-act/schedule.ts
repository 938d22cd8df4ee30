/** Runs the tool calls of one message: side by side within limits, by priority, each bounded in time, stopped by a terminal one. */

import { type ContentPart, wordsOf } from "@nexus-stream/protocol";
import { type Clock, within } from "@nexus-stream/protocol/clock";
import type { ApprovalOutcome, EngineRequest, ToolApproval } from "@nexus-stream/protocol/engine";
import { bounded } from "../kit/kit.ts";
import { type ContextWords, refusalOf } from "../policy.ts";
import type { Tool, ToolContext, ToolResult } from "../tool.ts";
import type { AgentSpec } from "./setup.ts";

/** A call whose arguments fit. */
export interface ReadyCall {
	callId: string;
	tool: Tool;
	args: Record<string, unknown>;
}

export interface ToolOutcome {
	status: "completed" | "failed";
	content: readonly ContentPart[];
	/** It was never started: nothing has happened. */
	neverRan?: boolean;
}

export type Permit = { allowed: true } | { allowed: false; reason: string };

export interface ScheduleOptions {
	/** Stops everything. */
	signal: AbortSignal;
	clock: Clock;
	/** Shared by all batches of a run. */
	room: ReturnType<typeof toolRoom>;
	timeoutMsOf(call: ReadyCall): number;
	/** After an abort, how long a tool may take to let go of its processes. */
	toolSettleMs: number;
	/** Asks for approval; a call that waits here holds no slot. */
	permit(call: ReadyCall, signal: AbortSignal): Permit | Promise<Permit>;
	/** Reports the start. The tool acts once this has resolved, and not at all if it rejects. */
	started(call: ReadyCall): Promise<void>;
	ended(call: ReadyCall, outcome: ToolOutcome): void;
	contextOf(call: ReadyCall, signal: AbortSignal): ToolContext;
}

/** How many tools of a run act at once, whichever agents asked for them. */
export function toolRoom(toolsMax: number) {
	let running = 0;
	let isExclusive = false;
	/** In order; those that came for all of it are true. */
	const waiting = new Map<() => void, boolean>();
	const isOvertaking = (retry: () => void): boolean => {
		for (const [other, exclusive] of waiting) {
			if (other === retry) return false;
			if (exclusive) return true;
		}
		return false;
	};
	return {
		/** False: no room now; `retry` is called when that may have changed. An exclusive tool that waits is never overtaken. */
		enter(exclusive: boolean, retry: () => void): boolean {
			const hasRoom = running < toolsMax && !isExclusive && (!exclusive || running === 0) && !isOvertaking(retry);
			if (!hasRoom) {
				waiting.set(retry, exclusive);
				return false;
			}
			waiting.delete(retry);
			running += 1;
			isExclusive = exclusive;
			return true;
		},
		leave(exclusive: boolean): void {
			running -= 1;
			if (exclusive) isExclusive = false;
			for (const retry of [...waiting.keys()]) retry();
		},
		/** It does not wait any more. */
		forget: (retry: () => void) => void waiting.delete(retry),
	};
}

/** The outcomes in the order of the calls. Never rejects for what a tool does. */
export const runTools = (calls: readonly ReadyCall[], options: ScheduleOptions): Promise<ToolOutcome[]> =>
	new CallBatch(calls, options).outcomes;

interface QueuedCall {
	call: ReadyCall;
	index: number;
}

class CallBatch {
	readonly #options: ScheduleOptions;
	readonly #outcomes: ToolOutcome[] = [];
	/** Without a permit so far. */
	readonly #waiting = new Set<QueuedCall>();
	/** Permitted, in the order of starting. */
	readonly #ready: QueuedCall[] = [];
	readonly #halt = new AbortController();
	readonly #signal: AbortSignal;
	#left: number;
	/** Why nothing more starts. */
	#stopped: string | undefined;
	readonly #done = Promise.withResolvers<ToolOutcome[]>();
	readonly #onAbort = () => this.#dismiss();
	readonly #onRoom = () => this.#startSome();

	constructor(calls: readonly ReadyCall[], options: ScheduleOptions) {
		this.#options = options;
		this.#left = calls.length;
		this.#signal = AbortSignal.any([options.signal, this.#halt.signal]);
		if (calls.length === 0) {
			this.#done.resolve([]);
			return;
		}
		for (const [index, call] of calls.entries()) this.#admit({ call, index });
		this.#signal.addEventListener("abort", this.#onAbort);
		// All that has its permit is in line before the first one starts: priority decides, not the order of the calls.
		this.#startSome();
	}

	get outcomes(): Promise<ToolOutcome[]> {
		return this.#done.promise;
	}

	#admit(entry: QueuedCall): void {
		const { call } = entry;
		const take = (permit: Permit) => {
			if (!this.#waiting.delete(entry)) return;
			if (permit.allowed) this.#enqueue(entry);
			else this.#end(entry, refused(permit.reason));
		};
		const deny = (cause: unknown) => take({ allowed: false, reason: wordsOf(cause) || "it was not allowed" });
		this.#waiting.add(entry);
		try {
			const permit = this.#options.permit(call, this.#signal);
			if (permit instanceof Promise) {
				void permit.then(take, deny).then(() => this.#startSome());
			} else take(permit);
		} catch (cause) {
			deny(cause);
		}
	}

	/** Aborts when the answer is not needed any more. */
	#dismiss(): void {
		if (!this.#isStopped()) return;
		const waiting = [...this.#waiting];
		this.#waiting.clear();
		for (const entry of waiting) this.#end(entry, refused(this.#stopped!));
		this.#startSome();
	}

	#enqueue(entry: QueuedCall): void {
		const priorityOf = ({ call }: QueuedCall) => call.tool.priority ?? 0;
		this.#ready.push(entry);
		this.#ready.sort((one, other) => priorityOf(other) - priorityOf(one) || one.index - other.index);
	}

	/** The first in line waits for its room, and those behind it wait too, so that no exclusive tool starves. */
	#startSome(): void {
		for (;;) {
			const next = this.#ready[0];
			if (next === undefined) {
				this.#options.room.forget(this.#onRoom);
				return;
			}
			if (this.#isStopped()) {
				this.#ready.shift();
				this.#end(next, refused(this.#stopped!));
				continue;
			}
			if (!this.#options.room.enter(next.call.tool.exclusive ?? false, this.#onRoom)) return;
			this.#ready.shift();
			void this.#run(next);
		}
	}

	#isStopped(): boolean {
		if (this.#options.signal.aborted) this.#stopped ??= "the run was stopped before it began";
		return this.#stopped !== undefined;
	}

	async #run(entry: QueuedCall): Promise<void> {
		const { call } = entry;
		const outcome = await this.#outcomeOf(call).catch((cause: unknown) => failedWith(wordsOf(cause)));
		if (call.tool.terminal && outcome.status === "completed") {
			this.#stopped ??= `the run has completed: ${call.tool.name} ended the work`;
			this.#halt.abort();
		}
		this.#end(entry, outcome);
		this.#options.room.leave(call.tool.exclusive ?? false);
		this.#startSome();
	}

	async #outcomeOf(call: ReadyCall): Promise<ToolOutcome> {
		const { started, contextOf, timeoutMsOf, toolSettleMs, clock } = this.#options;
		const { tool, args, callId } = call;
		await started(call);
		let work: Promise<unknown> | undefined;
		const acting = {
			name: tool.name,
			execute(_id: string, _params: never, signal: AbortSignal | undefined): Promise<ToolResult> {
				const result = (async () => tool.execute(args, contextOf(call, signal!)))();
				work = result.then(ignore, ignore);
				return result;
			},
		};
		try {
			const result = await bounded(acting, timeoutMsOf(call)).execute(callId, undefined as never, this.#signal);
			return outcomeOf(tool, result);
		} catch (cause) {
			// It may still be letting go of a process or a file: what follows must find it gone.
			if (work) await within(clock, toolSettleMs, work);
			return failedWith(
				this.#halt.signal.aborted && this.#stopped ? this.#stopped : wordsOf(cause) || "it failed without a word",
			);
		}
	}

	#end({ call, index }: QueuedCall, outcome: ToolOutcome): void {
		this.#outcomes[index] = outcome;
		this.#options.ended(call, outcome);
		this.#left -= 1;
		if (this.#left > 0) return;
		this.#signal.removeEventListener("abort", this.#onAbort);
		this.#done.resolve(this.#outcomes);
	}
}

const ignore = () => {};

/** A tool may answer anything. */
function outcomeOf({ name }: Tool, result: Partial<ToolResult> | undefined): ToolOutcome {
	if (!Array.isArray(result?.content)) return failedWith(`${name} answered nothing that can be read`);
	return { status: result.failed === true ? "failed" : "completed", content: result.content };
}

const failedWith = (text: string): ToolOutcome => ({ status: "failed", content: [{ type: "text", text }] });

const refused = (reason: string): ToolOutcome => ({ ...failedWith(reason), neverRan: true });

/** The question to a person about a call. */
export type ApprovalQuestion = Pick<ToolApproval, "kind" | "question" | "choices" | "revision" | "because" | "once">;

/** Undefined: the call needs no approval. */
export function approvalQuestionOf(
	{ tool, args }: ReadyCall,
	agent: Pick<AgentSpec, "approval">,
	request: Pick<EngineRequest, "approval">,
	words: ContextWords,
): ApprovalQuestion | undefined {
	if (tool.asks) return { kind: "question", ...tool.asks(args) };
	const needed = words.approvalOf(tool, agent.approval, request.approval);
	if (needed === undefined) return undefined;
	return { kind: "approval", ...needed, revision: tool.revision };
}

/** Whether an answer permits the call. */
export function permitOf({ tool, args }: ReadyCall, answer: ApprovalOutcome): Permit {
	if (answer.state === "answered" && tool.asks) return { allowed: true };
	const reason = refusalOf(tool, args, answer);
	return reason === undefined ? { allowed: true } : { allowed: false, reason };
}
