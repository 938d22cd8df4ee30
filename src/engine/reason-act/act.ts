/** Acts on what a message asks for: refuses what is wrong, runs the rest, tells people and the model how it went. */

import type { ToolResultMessage } from "@earendil-works/pi-ai";
import { contentText } from "../../protocol/protocol.ts";
import { resultSummary } from "../kit/kit.ts";
import { toPiContent } from "../pi/pi.ts";
import type { Answer, EngineEvent, EngineRequest, EngineYield } from "../port.ts";
import {
	describeCall,
	prepareCall,
	type Tool,
	type ToolContext,
	type ToolRegistry,
	toolRegistry,
} from "../tools/tools.ts";
import { completeTool } from "./built-in.ts";
import { type Outcome, type Permit, type ReadyCall, runTools } from "./schedule.ts";
import type { AgentSpec, LoopSetup } from "./setup.ts";
import type { RunState, TrackedCall } from "./state.ts";

export interface AskedCall {
	call: TrackedCall;
	/** Beyond the run's limit of calls. */
	isTooMany: boolean;
}

interface ActingParts {
	setup: LoopSetup;
	request: EngineRequest;
	state: RunState;
	signal: AbortSignal;
	say(said: EngineYield, taken?: () => void): void;
	/** What is yielded with a tool's start and end. */
	boundary(): readonly EngineEvent[];
}

/** A ready call with its record. */
interface Doing extends ReadyCall {
	record: TrackedCall;
	agent: AgentSpec;
}

interface Running {
	since: number;
	disarm: () => void;
}

/** The tools of one run. */
export class Acting {
	readonly #parts: ActingParts;
	readonly #offered = new Map<string, ToolRegistry>();
	readonly #running = new Map<string, Running>();
	readonly #stopped: Promise<never>;
	#indicatedAt = Number.NEGATIVE_INFINITY;
	/** The call that was approved before this run began. */
	#approved: string | undefined;

	constructor(parts: ActingParts) {
		this.#parts = parts;
		const { promise, reject } = Promise.withResolvers<never>();
		promise.catch(() => {});
		this.#stopped = promise;
		parts.signal.addEventListener("abort", () => reject(new Error("stopped before it began")), { once: true });
	}

	get isBusy(): boolean {
		return this.#running.size > 0;
	}

	/** What an agent may call in this run; the end of its work only where it has to be said. */
	offered(agent: AgentSpec, enforced: boolean): ToolRegistry {
		const key = JSON.stringify([agent.name, enforced]);
		const known = this.#offered.get(key);
		if (known) return known;
		const allowed = agent.tools.only(this.#parts.request.allowedTools).tools;
		const completes = enforced && !agent.orchestrator && !allowed.some(({ name }) => name === completeTool.name);
		const registry = toolRegistry(completes ? [...allowed, completeTool] : allowed);
		this.#offered.set(key, registry);
		return registry;
	}

	/** The results in the order of the calls. */
	async run(
		agent: AgentSpec,
		asked: readonly AskedCall[],
		how: { isCut: boolean; enforced: boolean },
	): Promise<ToolResultMessage[]> {
		const { setup, signal } = this.#parts;
		const registry = this.offered(agent, how.enforced);
		const doing: Doing[] = [];
		for (const { call: record, isTooMany } of asked) {
			const prepared = prepareCall(registry, setup.validate, record.name, record.args);
			const problem = isTooMany ? TOO_MANY : how.isCut ? CUT : "problem" in prepared ? prepared.problem : undefined;
			if (problem !== undefined) this.#conclude(record, "failed", problem);
			else if ("tool" in prepared) doing.push({ ...prepared, callId: record.callId, record, agent });
		}
		const outcomes = await runTools(doing, {
			signal,
			clock: setup.clock,
			toolsParallelMax: setup.toolsParallelMax,
			timeoutMsOf: (tool) => this.#timeoutMsOf(tool),
			toolSettleMs: setup.toolSettleMs,
			permit: (call, withdraw) => this.#permit(call as Doing, withdraw),
			started: (call) => this.#start(call as Doing),
			ended: (call, outcome) => this.#end(call as Doing, outcome),
			contextOf: (call, limit) => this.#contextOf(call as Doing, limit),
		});
		const byId = new Map(doing.map(({ callId }, index) => [callId, outcomes[index]!]));
		return asked.map(({ call }) => resultMessage(call, byId.get(call.callId), setup.clock.now()));
	}

	/** A call that waited for a person when the run before was cut off, and has its answer now. */
	async settle(
		agent: AgentSpec,
		call: TrackedCall,
		{ state, text, reason, by }: Answer,
		how: { isCut: boolean; enforced: boolean },
	): Promise<ToolResultMessage[]> {
		if (state === "approved") {
			this.#approved = call.callId;
			return this.run(agent, [{ call, isTooMany: false }], how);
		}
		const why = reason ?? `${state}${by === undefined ? "" : ` by ${by}`}`;
		if (state === "answered") this.#conclude(call, "completed", text ?? "");
		else this.#conclude(call, "failed", `not run: ${why}`);
		return [resultMessage(call, undefined, this.#parts.setup.clock.now())];
	}

	#timeoutMsOf(tool: Tool): number {
		const { setup, request } = this.#parts;
		const own = Object.hasOwn(setup.timeoutMs, tool.name) ? setup.timeoutMs[tool.name] : tool.timeoutMs;
		return Math.min(own ?? request.toolTimeoutMs, request.toolTimeoutMs);
	}

	#permit(call: Doing, signal: AbortSignal): Permit | Promise<Permit> {
		const { setup, request } = this.#parts;
		const { approval = "never" } = call.tool;
		const isFree = approval === "never" || (approval === "non-owner" && request.owner !== false);
		if (isFree || call.callId === this.#approved) return { allowed: true };
		if (!setup.approve)
			return { allowed: false, reason: `${call.tool.name} needs somebody's approval, and nobody can be asked` };
		// A run that is cut off while it waits goes on with this very call.
		this.#parts.say(this.#parts.boundary());
		return setup.approve(call, { agent: call.agent.name, request, signal });
	}

	/** It never ran, so it has no start: the log tells "never ran" from "may have run". */
	#conclude(record: TrackedCall, status: "completed" | "failed", text: string): void {
		this.#parts.state.end(record, status, text);
		const ended = { ...named(record), status, args: record.args, summary: resultSummary(text), result: text };
		this.#parts.say([ended, ...this.#parts.boundary()]);
	}

	/** Resolves once whoever reads the run has taken the start and asks for more. */
	async #start(call: Doing): Promise<void> {
		const { state, say, signal, setup } = this.#parts;
		const { record, tool } = call;
		if (signal.aborted) throw new Error("stopped before it began");
		state.start(record);
		const summary = describeCall(tool.name, call.args, tool.describe);
		const { promise: taken, resolve } = Promise.withResolvers<void>();
		const { boundary } = this.#parts;
		say([{ ...named(record), status: "started", args: record.args, summary }, ...boundary()], resolve);
		this.#running.set(call.callId, { since: setup.clock.now(), disarm: this.#watch(call, summary) });
		await Promise.race([taken, this.#stopped]);
		// Only now does it act: what it takes counts from here.
		const running = this.#running.get(call.callId);
		if (running) running.since = setup.clock.now();
	}

	/** A person who waits longer than usual is told how long it usually takes. */
	#watch({ record, tool }: Doing, summary: string): () => void {
		const { durations, clock } = this.#parts.setup;
		const usual = roundedMs(durations.usualMs(tool.name));
		return clock.after(durations.noticeMs(tool.name), () =>
			this.#progress(record, `${summary} (usually about ${usual})`),
		);
	}

	#progress(record: TrackedCall, summary: string): void {
		const { setup, say } = this.#parts;
		const now = setup.clock.now();
		if (record.status !== "started" || now - this.#indicatedAt < setup.toolIndicatorGapMs) return;
		this.#indicatedAt = now;
		say({ ...named(record), status: "progress", summary: resultSummary(summary) });
	}

	#end({ record, tool, args }: Doing, { status, content, neverRan }: Outcome): void {
		const { setup, state, say, boundary } = this.#parts;
		const running = this.#running.get(record.callId);
		running?.disarm();
		this.#running.delete(record.callId);
		if (running && status === "completed") setup.durations.add(tool.name, setup.clock.now() - running.since);
		const text = contentText(content);
		if (!state.end(record, status, text)) return;
		if (tool.terminal && status === "completed") state.terminate({ callId: record.callId, name: tool.name, args });
		const ended: EngineEvent = {
			...named(record),
			status,
			...(neverRan && { args: record.args }),
			summary: resultSummary(text),
			result: text,
			...(content.some(({ type }) => type !== "text") && { content }),
		};
		say([ended, ...boundary()]);
	}

	#contextOf({ record, agent, callId }: Doing, signal: AbortSignal): ToolContext {
		const { state, request } = this.#parts;
		return { callId, agent: agent.name, signal, request, state, progress: (text) => this.#progress(record, text) };
	}
}

const TOO_MANY = "not run: the run has reached its limit of tool calls";
const CUT = "not run: your message was cut off at the output limit, and so may be the arguments; ask for less at once";

const named = ({
	callId,
	name,
}: TrackedCall): Pick<Extract<EngineEvent, { type: "tool" }>, "type" | "callId" | "name"> => ({
	type: "tool",
	callId,
	name,
});

function resultMessage(call: TrackedCall, outcome: Outcome | undefined, timestamp: number): ToolResultMessage {
	const content = outcome?.content.flatMap(toPiContent) ?? [];
	return {
		role: "toolResult",
		toolCallId: call.callId,
		toolName: call.name,
		content: content.length > 0 ? content : [{ type: "text", text: call.result || "(no output)" }],
		isError: call.status === "failed",
		timestamp,
	};
}

const roundedMs = (ms: number): string => (ms < 1000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 1000)} s`);
