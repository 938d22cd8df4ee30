/** Runs the tool calls of a message: refuses invalid ones, runs the rest, and reports the results to people and to the model. */

import type { ToolResultMessage } from "@earendil-works/pi-ai";
import { contentText } from "@nexus-stream/protocol";
import type {
	ApprovalOutcome,
	EngineContext,
	EngineEvent,
	EngineRequest,
	EngineYield,
} from "@nexus-stream/protocol/engine";
import { named, resultSummary, unlessAborted } from "../kit/kit.ts";
import { toolResult } from "../pi/pi.ts";
import type { ContextWords } from "../policy.ts";
import type { ToolContext } from "../tool.ts";
import { describeCall, describeWanted, prepareCall, type ToolRegistry } from "../tools/tools.ts";
import type { RunToolCall } from "./checkpoint.ts";
import {
	type ApprovalQuestion,
	approvalQuestionOf,
	type Permit,
	permitOf,
	type ReadyCall,
	runTools,
	type ToolOutcome,
	toolRoom,
} from "./schedule.ts";
import { type AgentSpec, forTool, type LoopSetup } from "./setup.ts";
import type { RunState } from "./state.ts";

export interface CountedCall {
	call: RunToolCall;
	/** Beyond the run's limit of calls. */
	isTooMany: boolean;
}

interface ActingParts {
	setup: LoopSetup;
	request: EngineRequest;
	/** Tracks what the models of the run have read. */
	words: ContextWords;
	signal: AbortSignal;
	/** Left out when the run has no person to ask. */
	answer?: EngineContext["answer"] | undefined;
	/** Events yielded with a tool's start and end. */
	boundary(): readonly EngineEvent[];
}

/** The agent that calls tools. */
export interface Asker {
	agent: AgentSpec;
	state: RunState;
	say(said: EngineYield, taken?: () => void): void;
}

/** A ready call with its record. */
interface PermittedCall extends ReadyCall {
	record: RunToolCall;
	by: Asker;
	/** Decided by what the model had read when it made the call: later text did not cause it. */
	about: ApprovalQuestion | undefined;
}

/** The tools of one run, for all its agents. */
export class Acting {
	readonly #parts: ActingParts;
	readonly #room: ReturnType<typeof toolRoom>;
	readonly #running = new Map<string, { since: number; disarm: () => void }>();
	/** Answers of people to the questions of tools, by call. */
	readonly #answers = new Map<string, ApprovalOutcome>();
	#questions = 0;
	#indicatedAt = Number.NEGATIVE_INFINITY;
	/** The decision about a call that was made before this run began. */
	#given: (ApprovalOutcome & { callId: string }) | undefined;

	constructor(parts: ActingParts) {
		this.#parts = parts;
		this.#room = toolRoom(parts.setup.toolsParallelMax);
	}

	get isBusy(): boolean {
		return this.#running.size > 0;
	}

	/** The results in the order of the calls. `isCut`: the message ended at the model's output limit. */
	async run(
		by: Asker,
		registry: ToolRegistry,
		asked: readonly CountedCall[],
		isCut: boolean,
	): Promise<ToolResultMessage[]> {
		const { setup, signal, request, words } = this.#parts;
		const doing: PermittedCall[] = [];
		for (const { call: record, isTooMany } of asked) {
			const prepared = prepareCall(registry, setup.validate, record.name, record.args);
			const problem = isTooMany ? TOO_MANY : isCut ? CUT : "problem" in prepared ? prepared.problem : undefined;
			if (problem !== undefined) this.#conclude(by, record, "failed", problem);
			else if ("tool" in prepared) {
				const ready = { ...prepared, callId: record.callId };
				doing.push({ ...ready, record, by, about: approvalQuestionOf(ready, by.agent, request, words) });
			}
		}
		const outcomes = await runTools(doing, {
			signal,
			clock: setup.clock,
			room: this.#room,
			timeoutMsOf: (call) => this.#timeoutMsOf(call as PermittedCall),
			toolSettleMs: setup.toolSettleMs,
			permit: (call, withdraw) => this.#permit(call as PermittedCall, withdraw),
			started: (call) => this.#start(call as PermittedCall),
			ended: (call, outcome) => this.#end(call as PermittedCall, outcome),
			contextOf: (call, limit) => this.#contextOf(call as PermittedCall, limit),
		});
		const byId = new Map(doing.map(({ callId }, index) => [callId, outcomes[index]!]));
		return asked.map(({ call }) => resultOf(call, byId.get(call.callId), setup.clock.now()));
	}

	/** A call that waited for a person when the earlier run was interrupted, and now has its answer. */
	async settle(
		by: Asker,
		registry: ToolRegistry,
		call: RunToolCall,
		answer: ApprovalOutcome,
	): Promise<ToolResultMessage[]> {
		const { state, text, reason, by: whom } = answer;
		if (state === "approved") {
			this.#given = { ...answer, callId: call.callId };
			return this.run(by, registry, [{ call, isTooMany: false }], false);
		}
		const why = reason ?? `${state}${whom === undefined ? "" : ` by ${whom}`}`;
		if (state === "answered") this.#conclude(by, call, "completed", text ?? "");
		else this.#conclude(by, call, "failed", `not run: ${why}`);
		return [resultOf(call, undefined, this.#parts.setup.clock.now())];
	}

	/** The agent's limit, else the configured one, else the tool's. */
	#timeoutMsOf({ tool, by: { agent } }: PermittedCall): number {
		const { setup, request } = this.#parts;
		const own = forTool(agent.timeoutMs, tool.name) ?? forTool(setup.timeoutMs, tool.name) ?? tool.timeoutMs;
		return Math.min(own ?? request.toolTimeoutMs, request.toolTimeoutMs);
	}

	#permit(call: PermittedCall, signal: AbortSignal): Permit | Promise<Permit> {
		const { callId, tool, about } = call;
		if (this.#given?.callId === callId) return permitOf(call, this.#given);
		if (about === undefined) return { allowed: true };
		if (this.#parts.answer === undefined) {
			const needs = about.kind === "approval" ? "requires approval" : "has a question";
			return { allowed: false, reason: `${tool.name} ${needs}, but this run has no approver` };
		}
		return this.#ask(call, about, signal).then((answer) => {
			this.#answers.set(callId, answer);
			return permitOf(call, answer);
		});
	}

	/** People see the question once it is durable, and later its outcome. */
	async #ask(call: PermittedCall, about: ApprovalQuestion, signal: AbortSignal): Promise<ApprovalOutcome> {
		const { boundary } = this.#parts;
		const { record, tool, args, by: asker } = call;
		const approval = { ...about, id: `${record.callId}#${++this.#questions}` };
		const isQuestion = approval.kind === "question";
		const summary = isQuestion ? describeCall(tool.name, args, tool.describe) : describeWanted(tool.name, args);
		const progress = { ...named(record), status: "progress" } as const;
		const asked: EngineEvent = { ...progress, args, summary, asking: { ...approval, state: "pending" } };
		// Save the checkpoint first, so that a late answer finds the call in the continued run.
		await this.#taken((taken) => asker.say([...boundary(), asked], taken));
		const answer = await this.#parts.answer!(approval.id, signal);
		asker.say({ ...progress, asking: { ...approval, state: answer.state, by: answer.by } });
		return answer;
	}

	/** The call never ran, so it has no start: the log distinguishes "never ran" from "may have run". */
	#conclude({ state, say }: Asker, record: RunToolCall, status: "completed" | "failed", text: string): void {
		state.end(record, status, text);
		const ended = { ...named(record), status, args: record.args, summary: resultSummary(text), result: text };
		say([ended, ...this.#parts.boundary()]);
	}

	/** Resolves once the reader of the run has taken the start and asks for more. */
	async #start(call: PermittedCall): Promise<void> {
		const { signal, setup } = this.#parts;
		const { record, tool } = call;
		const { state, say } = call.by;
		if (signal.aborted) throw new Error("stopped before it began");
		state.start(record);
		const summary = describeCall(tool.name, call.args, tool.describe);
		const started: EngineEvent = { ...named(record), status: "started", args: record.args, summary };
		this.#running.set(call.callId, { since: setup.clock.now(), disarm: this.#watch(call, summary) });
		await this.#taken((taken) => say([started, ...this.#parts.boundary()], taken));
		// Only now does it act: what it takes counts from here.
		const running = this.#running.get(call.callId);
		if (running) running.since = setup.clock.now();
	}

	/** Resolves once the reader has taken what was said and asks for more. */
	#taken(say: (taken: () => void) => void): Promise<void> {
		return unlessAborted(this.#parts.signal, new Promise<void>(say));
	}

	/** Shows how long the tool usually takes if it takes longer. */
	#watch({ record, tool, by }: PermittedCall, summary: string): () => void {
		const { durations, clock } = this.#parts.setup;
		const usual = roundedMs(durations.usualMs(tool.name));
		return clock.after(durations.noticeMs(tool.name), () =>
			this.#progress(by, record, `${summary} (usually about ${usual})`),
		);
	}

	#progress({ say }: Asker, record: RunToolCall, summary: string): void {
		const { setup } = this.#parts;
		const now = setup.clock.now();
		if (record.status !== "started" || now - this.#indicatedAt < setup.toolIndicatorGapMs) return;
		this.#indicatedAt = now;
		say({ ...named(record), status: "progress", summary: resultSummary(summary) });
	}

	#end({ record, tool, args, by: { state, say } }: PermittedCall, { status, content, neverRan }: ToolOutcome): void {
		const { setup, boundary } = this.#parts;
		const running = this.#running.get(record.callId);
		running?.disarm();
		this.#running.delete(record.callId);
		if (running && status === "completed") setup.durations.add(tool.name, setup.clock.now() - running.since);
		if (!neverRan) this.#parts.words.took(tool.name);
		const text = contentText(content);
		if (!state.end(record, status, text)) return;
		const isEnd = tool.terminal === true && status === "completed";
		if (isEnd) state.terminate({ callId: record.callId, name: tool.name, args });
		const ended: EngineEvent = {
			...named(record),
			status,
			args: neverRan ? record.args : undefined,
			// The target of a routing says more than its result.
			summary: isEnd ? describeCall(tool.name, args, tool.describe) : resultSummary(text),
			result: text,
			content: content.some(({ type }) => type !== "text") ? content : undefined,
		};
		say([ended, ...boundary()]);
	}

	#contextOf(call: PermittedCall, signal: AbortSignal): ToolContext {
		const { record, by, callId, about } = call;
		const { words } = this.#parts;
		const isAgreed = about?.kind === "approval" || this.#given?.callId === callId;
		return {
			callId,
			agent: by.agent.name,
			signal,
			request: isAgreed ? words.agreed : words.request,
			state: by.state,
			progress: (text) => this.#progress(by, record, text),
			answer: about?.kind === "question" ? this.#answers.get(callId) : undefined,
			ask: this.#parts.answer
				? (question, withdraw) => this.#ask(call, { kind: "question", ...question }, withdraw)
				: undefined,
		};
	}
}

const TOO_MANY = "not run: the run has reached its limit of tool calls";
const CUT = "not run: your message was cut off at the output limit, and so may be the arguments; ask for less at once";

const resultOf = (call: RunToolCall, outcome: ToolOutcome | undefined, now: number): ToolResultMessage =>
	toolResult({ ...call, id: call.callId, content: outcome?.content }, now);

const roundedMs = (ms: number): string => (ms < 1000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 1000)} s`);
