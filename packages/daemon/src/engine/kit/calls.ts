/** Tool calls of one run: every call that readers see starts once and ends once, under a unique id, and is summed up in one line. */

import { type ContentPart, contentText } from "@nexus-stream/protocol";
import type { ApprovalOutcome, EngineEvent } from "@nexus-stream/protocol/engine";
import { clipGraphemes } from "../../std/clip.ts";
import type { Needed } from "../policy.ts";
import { approvalEvent } from "./approved.ts";

interface ToolCallState {
	callId: string;
	name: string;
	args: unknown;
	started: boolean;
	/** It starts only if a person approves. */
	needsApproval?: boolean;
	/** The last progress shown, so that a repeated one is not. */
	lastProgress?: string;
}

type Content = readonly ContentPart[];
type ToolEvent = Extract<EngineEvent, { type: "tool" }>;

/** A call as the model requests it. */
export interface RequestedCall {
	/** The model's own id; it may be empty or repeated. */
	id: string;
	name: string;
	args: unknown;
}

export class ToolCalls {
	/** By the model's id, in order: small local models repeat ids from turn to turn, or leave them empty. */
	readonly #open = new Map<string, ToolCallState[]>();
	readonly #ids = new Set<string>();

	/** A call of a finished message; it may never start when the run is stopped. */
	announce({ id, name, args }: RequestedCall): void {
		this.#add(id, name, args);
	}

	start(id: string, name: string, args: unknown): EngineEvent[] {
		return [this.#begin(this.#find(id, false) ?? this.#add(id, name, args))];
	}

	/** A person is asked whether the call may start; `handle` is the id of the question. */
	ask(id: string, name: string, args: unknown, needed: Needed): { handle: string; events: EngineEvent[] } {
		const call = this.#find(id, false) ?? this.#add(id, name, args);
		call.needsApproval = true;
		call.args = copy(args);
		return { handle: call.callId, events: [approvalEvent(call, call.callId, { needed })] };
	}

	/** The person's answer: an approved call starts. */
	answer(id: string, answer: ApprovalOutcome): EngineEvent[] {
		const call = this.#open.get(id)?.find(({ needsApproval, started }) => needsApproval && !started);
		if (call === undefined) return [];
		const event = approvalEvent(call, call.callId, { answer });
		return answer.state === "approved" ? [event, this.#begin(call)] : [event];
	}

	progress(id: string, soFar: Content): EngineEvent[] {
		const call = this.#find(id, true);
		const summary = progressSummary(contentText(soFar));
		if (call === undefined || summary === undefined || summary === call.lastProgress) return [];
		call.lastProgress = summary;
		return [{ ...named(call), status: "progress", summary }];
	}

	end(id: string, name: string, content: Content, failed: boolean): EngineEvent[] {
		const running = this.#find(id, true);
		const call = running ?? this.#find(id, false) ?? this.#add(id, name, {});
		const others = (this.#open.get(id) ?? []).filter((other) => other !== call);
		this.#open.set(id, others);
		const text = contentText(content);
		const ended: ToolEvent = {
			...named(call),
			status: failed ? "failed" : "completed",
			summary: resultSummary(text),
			result: text,
			// The result has all of it if there is only text.
			content: content.some(({ type }) => type !== "text") ? content : undefined,
		};
		// A call that was not approved never ran, so it has no start.
		if (isRefused(call)) return [{ ...ended, args: call.args }];
		return running === undefined ? [this.#begin(call), ended] : [ended];
	}

	/** Pairs every open call with a failure. */
	close(because: string): EngineEvent[] {
		const open = [...this.#open.values()].flat();
		this.#open.clear();
		return open.flatMap((call) => {
			const ended: ToolEvent = { ...named(call), status: "failed", summary: because, result: because };
			if (isRefused(call)) return [{ ...ended, args: call.args }];
			return call.started ? [ended] : [this.#begin(call), ended];
		});
	}

	#add(id: string, name: string, args: unknown): ToolCallState {
		const callId = this.#unused(id === "" ? name : id);
		const call: ToolCallState = { callId, name, args: copy(args), started: false };
		this.#ids.add(call.callId);
		this.#open.set(id, [...(this.#open.get(id) ?? []), call]);
		return call;
	}

	#unused(wanted: string): string {
		let callId = wanted;
		for (let n = 2; this.#ids.has(callId); n++) callId = `${wanted}.${n}`;
		return callId;
	}

	#find(id: string, started: boolean): ToolCallState | undefined {
		return this.#open.get(id)?.find((call) => call.started === started);
	}

	#begin(call: ToolCallState): EngineEvent {
		call.started = true;
		return { ...named(call), status: "started", args: call.args, summary: callSummary(call.name, call.args) };
	}
}

const isRefused = ({ needsApproval, started }: ToolCallState): boolean => needsApproval === true && !started;

/** The beginning of every event about a call. */
export const named = ({ callId, name }: Pick<ToolCallState, "callId" | "name">) =>
	({ type: "tool", callId, name }) as const;

/** The agent keeps changing its own objects. */
const copy = (args: unknown): unknown => structuredClone(args);

/** A summary's length. */
const SUMMARY_CHARS_MAX = 120;

/** The argument that says most about a call, by its usual names. */
const TELLING = ["path", "file_path", "command", "query", "pattern", "url", "zone"];

export function callSummary(name: string, args: unknown): string {
	if (typeof args !== "object" || args === null) return name;
	const fields = args as Record<string, unknown>;
	const telling = TELLING.map((key) => fields[key]).find(isSaying) ?? Object.values(fields).find(isSaying);
	return telling === undefined ? name : oneLine(`${name} ${telling}`);
}

const isSaying = (value: unknown): value is string | number =>
	(typeof value === "string" && value.trim() !== "") || typeof value === "number";

/** The first non-empty line of a tool's result. */
export const resultSummary = (text: string): string => oneLine(lines(text)[0] ?? "no output");

/** The last line of a running tool's output. */
export const progressSummary = (text: string): string | undefined => {
	const last = lines(text).at(-1);
	return last === undefined ? undefined : oneLine(last);
};

const lines = (text: string): string[] => text.split("\n").filter((line) => line.trim() !== "");

const oneLine = (text: string): string => clipGraphemes(text.replace(/\s+/g, " ").trim(), SUMMARY_CHARS_MAX);
