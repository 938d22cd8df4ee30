/** Tool calls of one run: every call a reader hears of starts once and ends once, under an id of its own. */

import { type ContentPart, contentText } from "@nexus-stream/protocol";
import type { ApprovalOutcome, EngineEvent } from "@nexus-stream/protocol/engine";
import type { Needed } from "../tools/tools.ts";
import { approvalEvent } from "./approved.ts";
import { callSummary, progressSummary, resultSummary } from "./summary.ts";

interface ToolCallState {
	callId: string;
	name: string;
	args: unknown;
	started: boolean;
	/** A person is asked before it starts. */
	needsApproval?: boolean;
	/** The last progress shown, so that a repeated one is not. */
	lastProgress?: string;
}

type Content = readonly ContentPart[];

/** A call that a model asks for. */
export interface RequestedCall {
	/** The model's; it may be empty or used before. */
	id: string;
	name: string;
	args: unknown;
}

export interface ToolCalls {
	/** A call that a finished message asks for; it may never start when the run is stopped. */
	announce(call: RequestedCall): void;
	start(id: string, name: string, args: unknown): EngineEvent[];
	/** A person is asked whether the call may start: with the id that it is asked under. */
	ask(id: string, name: string, args: unknown, needed: Needed): { handle: string; events: EngineEvent[] };
	/** What the person said: an approved call starts. */
	answer(id: string, answer: ApprovalOutcome): EngineEvent[];
	progress(id: string, soFar: Content): EngineEvent[];
	end(id: string, name: string, content: Content, failed: boolean): EngineEvent[];
	/** Pairs what is open with a failure. */
	close(because: string): EngineEvent[];
}

export function toolCalls(): ToolCalls {
	// By the model's id, in order: small local models repeat ids from turn to turn, or leave them empty.
	const open = new Map<string, ToolCallState[]>();
	const used = new Set<string>();

	function add(id: string, name: string, args: unknown): ToolCallState {
		const call: ToolCallState = { callId: unused(id === "" ? name : id), name, args: copy(args), started: false };
		used.add(call.callId);
		open.set(id, [...(open.get(id) ?? []), call]);
		return call;
	}

	function unused(wanted: string): string {
		let callId = wanted;
		for (let n = 2; used.has(callId); n++) callId = `${wanted}.${n}`;
		return callId;
	}

	const find = (id: string, started: boolean) => open.get(id)?.find((call) => call.started === started);

	const begin = (call: ToolCallState): EngineEvent => {
		call.started = true;
		return { ...named(call), status: "started", args: call.args, summary: callSummary(call.name, call.args) };
	};

	return {
		announce(call) {
			add(call.id, call.name, call.args);
		},
		start: (id, name, args) => [begin(find(id, false) ?? add(id, name, args))],
		ask(id, name, args, needed) {
			const call = find(id, false) ?? add(id, name, args);
			call.needsApproval = true;
			call.args = copy(args);
			return { handle: call.callId, events: [approvalEvent(call, call.callId, { needed })] };
		},
		answer(id, answer) {
			const call = open.get(id)?.find(({ needsApproval: asked, started }) => asked && !started);
			if (call === undefined) return [];
			const said = approvalEvent(call, call.callId, { answer });
			return answer.state === "approved" ? [said, begin(call)] : [said];
		},
		progress(id, soFar) {
			const call = find(id, true);
			const summary = progressSummary(contentText(soFar));
			if (call === undefined || summary === undefined || summary === call.lastProgress) return [];
			call.lastProgress = summary;
			return [{ ...named(call), status: "progress", summary }];
		},
		end(id, name, content, failed) {
			const known = find(id, true);
			const call = known ?? find(id, false) ?? add(id, name, {});
			open.set(
				id,
				(open.get(id) ?? []).filter((other) => other !== call),
			);
			const text = contentText(content);
			const ended: EngineEvent = {
				...named(call),
				status: failed ? "failed" : "completed",
				summary: resultSummary(text),
				result: text,
				// Text alone is all in the result.
				content: content.some(({ type }) => type !== "text") ? content : undefined,
			};
			// One that nobody agreed to never ran, so it has no start.
			if (call.needsApproval && !call.started) return [{ ...ended, args: call.args } as EngineEvent];
			return known === undefined ? [begin(call), ended] : [ended];
		},
		close(because) {
			const left = [...open.values()].flat();
			open.clear();
			return left.flatMap((call) => {
				const ended: EngineEvent = { ...named(call), status: "failed", summary: because, result: because };
				if (call.needsApproval && !call.started) return [{ ...ended, args: call.args } as EngineEvent];
				return call.started ? [ended] : [begin(call), ended];
			});
		},
	};
}

const named = ({ callId, name }: ToolCallState) => ({ type: "tool" as const, callId, name });

/** An agent goes on working on its own objects. */
const copy = (args: unknown): unknown => structuredClone(args);
