/** The mutable state of one run: active agents, text, tool calls and usage. Parallel agents have one lane each. No clock and no I/O. */

import { createHash } from "node:crypto";
import { NexusError } from "@nexus-stream/protocol";
import type { EngineEvent } from "@nexus-stream/protocol/engine";
import type { CustomState } from "../tool.ts";
import {
	type Activation,
	type CallStatus,
	type Ended,
	type LaneSnapshot,
	limitReached,
	type RunLimits,
	type RunToolCall,
	SharedState,
	type StateSnapshot,
	type TerminalCall,
	type Used,
} from "./checkpoint.ts";

export class RunState implements CustomState {
	readonly #limits: RunLimits;
	#run: SharedState;
	#activation: Activation | undefined;
	/** The active agent's text in this attempt, up to `bufferCharsMax`; and its reasoning. */
	content = "";
	reasoning = "";
	/** The agent wrote visible text in this activation, in any attempt. */
	hasSpoken = false;
	/** The terminal call that ended this attempt. */
	terminal: TerminalCall | undefined;
	/** By the model's own ids, which two models may share. */
	readonly #open = new Map<string, RunToolCall[]>();

	constructor(limits: RunLimits, from?: StateSnapshot) {
		this.#limits = limits;
		this.#run = from ? SharedState.from(from) : new SharedState();
	}

	/** For one more agent at work in the same run: calls, counters and custom state are the run's. */
	lane(from?: LaneSnapshot): RunState {
		const lane = new RunState(this.#limits);
		lane.#run = this.#run;
		if (from === undefined) return lane;
		const { activation, hasSpoken, terminal } = structuredClone(from);
		Object.assign(lane, { hasSpoken, terminal });
		lane.#activation = activation;
		for (const call of this.openCalls()) if (call.agent === activation.agent) lane.#hold(call);
		return lane;
	}

	get activation(): Activation {
		if (this.#activation === undefined) throw new NexusError("internal", "no agent is active");
		return this.#activation;
	}

	/** All calls of the run that have ended, in the order in which they were asked for. */
	get results(): readonly RunToolCall[] {
		return this.#run.calls.filter(({ status }) => isOver(status));
	}

	/** Shared by all lanes: each adds what it uses. */
	get used(): Used {
		return this.#run.used;
	}

	/** An agent's turn begins. */
	activate(agent: string, phase: string): Activation {
		this.hasSpoken = false;
		return this.#begin({ agent, phase, attempt: 1 });
	}

	/** The same agent once more: its words and its termination start over; calls, counters and custom state stay. */
	retry(): Activation {
		const { agent, phase, attempt } = this.activation;
		return this.#begin({ agent, phase, attempt: attempt + 1 });
	}

	/** As new, counters and custom state included. */
	reset(): void {
		this.#activation = undefined;
		this.hasSpoken = false;
		this.#clearAttempt();
		this.#open.clear();
		this.#run = new SharedState();
	}

	/** Not visible: hidden from readers of the answer. */
	say(text: string, visible = true): void {
		if (visible && !this.hasSpoken) this.hasSpoken = text.trim() !== "";
		this.content = appended(this.content, text, this.#limits.bufferCharsMax);
	}

	think(text: string): void {
		this.reasoning = appended(this.reasoning, text, this.#limits.bufferCharsMax);
	}

	/** Whether the execution log lacks this block. The oldest blocks are forgotten first; frames never depend on it. */
	isNewThinking(block: string): boolean {
		const { thinking } = this.#run;
		const hash = createHash("sha256").update(block).digest("base64");
		if (thinking.has(hash)) return false;
		thinking.add(hash);
		if (thinking.size > this.#limits.thinkingBlocksMax) thinking.delete(thinking.values().next().value!);
		return true;
	}

	/** Records a call that a model makes, under a unique id even if the model repeats one. */
	announce(modelId: string, asked: string, args: unknown): RunToolCall {
		const name = asked.slice(0, NAME_CHARS_MAX);
		const callId = this.#unused((modelId || name).slice(0, NAME_CHARS_MAX));
		const call: RunToolCall = { callId, modelId, name, args, agent: this.activation.agent, status: "announced" };
		this.#run.callIds.add(call.callId);
		this.#run.calls.push(call);
		this.#hold(call);
		this.#run.used.toolCalls += 1;
		return call;
	}

	/** Starts an announced call; false if it has already started. */
	start(call: RunToolCall): boolean {
		if (call.status !== "announced") return false;
		call.status = "started";
		return true;
	}

	/** A start that the provider reports, by the model's id. Undefined: the call already runs. */
	startReported(modelId: string, name: string, args: unknown): RunToolCall | undefined {
		const known = this.#open.get(modelId)?.findLast((call) => call.name === name);
		if (known?.status === "started") return undefined;
		const call = known ?? this.announce(modelId, name, args);
		this.start(call);
		return call;
	}

	/** Undefined: it has ended already. */
	end(call: RunToolCall, status: "completed" | "failed", result: string): Ended | undefined {
		if (isOver(call.status)) return undefined;
		const missingStart = call.status === "announced";
		call.status = status;
		call.result = result;
		const left = (this.#open.get(call.modelId) ?? []).filter((other) => other !== call);
		if (left.length === 0) this.#open.delete(call.modelId);
		else this.#open.set(call.modelId, left);
		return { call, missingStart };
	}

	/** An end that the provider reports, by the model's id; the oldest open call of that id ends. */
	endReported(modelId: string, name: string, status: "completed" | "failed", result: string): Ended {
		const open = this.#open.get(modelId);
		const call = open?.find((one) => one.status === "started") ?? open?.[0] ?? this.announce(modelId, name, {});
		return this.end(call, status, result)!;
	}

	/** The first terminal call of an attempt counts. */
	terminate(call: TerminalCall): void {
		this.terminal ??= call;
	}

	/** Calls without an outcome, in order. */
	openCalls(): RunToolCall[] {
		return this.#run.calls.filter(({ status }) => !isOver(status));
	}

	/** Ends for the calls without an outcome. `named`: with the agents' names. */
	unpaired(because: string, named: boolean): EngineEvent[] {
		return this.openCalls().map(({ callId, name, args, status, agent }) => ({
			type: "tool",
			callId,
			name,
			status: "failed",
			summary: because,
			result: because,
			args: status === "announced" ? args : undefined,
			agent: named ? agent : undefined,
		}));
	}

	/** Asked before a model call: what forbids one more, in words. */
	exhausted(): string | undefined {
		return limitReached(this.#run.used, this.#limits);
	}

	/** Whether the newest call that was announced is one too many to run. */
	get isToolLimitPassed(): boolean {
		return this.#run.used.toolCalls > this.#limits.toolCallsMax;
	}

	setState(key: string, value: unknown): void {
		const others = Object.fromEntries([...this.#run.custom].filter(([other]) => other !== key));
		const text: string | undefined = JSON.stringify({ ...others, [key]: value });
		const { customCharsMax } = this.#limits;
		if (text.length > customCharsMax)
			throw new NexusError("too_large", `custom state may have ${customCharsMax} characters as JSON`);
		// A copy of what JSON keeps of it: a checkpoint restores exactly this.
		const kept = (JSON.parse(text) as Record<string, unknown>)[key];
		if (kept === undefined) throw new NexusError("invalid", `custom state "${key}" is not JSON`);
		this.#run.custom.set(key, kept);
	}

	getState(key: string): unknown {
		return structuredClone(this.#run.custom.get(key));
	}

	hasState(key: string): boolean {
		return this.#run.custom.has(key);
	}

	getAllState(): Readonly<Record<string, unknown>> {
		return structuredClone(Object.fromEntries(this.#run.custom));
	}

	snapshot(): StateSnapshot {
		const { used, calls, custom } = this.#run;
		// Arguments and custom values are never changed in place: a copy of what holds them will do, at every boundary.
		return {
			used: { ...used },
			calls: calls.map((call) => ({ ...call })),
			custom: Object.fromEntries(custom),
		};
	}

	laneSnapshot(): LaneSnapshot {
		return structuredClone({ activation: this.activation, hasSpoken: this.hasSpoken, terminal: this.terminal });
	}

	#hold(call: RunToolCall): void {
		this.#open.set(call.modelId, [...(this.#open.get(call.modelId) ?? []), call]);
	}

	#begin(activation: Activation): Activation {
		this.#activation = activation;
		this.#clearAttempt();
		return activation;
	}

	#clearAttempt(): void {
		this.content = "";
		this.reasoning = "";
		this.terminal = undefined;
	}

	#unused(wanted: string): string {
		let callId = wanted;
		for (let n = 2; this.#run.callIds.has(callId); n++) callId = `${wanted}_${n}`;
		return callId;
	}
}

/** Limit of a call's id and of its tool's name: a model may invent anything. */
const NAME_CHARS_MAX = 200;

const isOver = (status: CallStatus): boolean => status === "completed" || status === "failed";

const appended = (buffer: string, text: string, charsMax: number): string =>
	buffer.length >= charsMax ? buffer : buffer + text.slice(0, charsMax - buffer.length);
