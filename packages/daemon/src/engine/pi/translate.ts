/** From pi's events to engine events: a pure reader that pairs every tool call and adds up usage. It never throws on a known event. */

import type { AgentEvent } from "@earendil-works/pi-agent-core";
import type { AssistantMessage, ImageContent, TextContent } from "@earendil-works/pi-ai";
import type { AgentSessionEvent } from "@earendil-works/pi-coding-agent";
import type { ContentPart } from "@nexus-stream/protocol";
import type { ApprovalOutcome, EngineEvent, EngineYield } from "@nexus-stream/protocol/engine";
import { toolCalls, usageSum } from "../kit/kit.ts";
import type { Needed } from "../tools/tools.ts";
import { signedReasoning } from "./signature.ts";

export type PiEvent = AgentEvent | AgentSessionEvent;

export interface Translator {
	event(event: PiEvent): EngineYield;
	/** A person is asked about a call before it starts, and has answered. */
	ask(id: string, name: string, args: unknown, needed: Needed): { handle: string; said: EngineYield };
	answer(id: string, answer: ApprovalOutcome): EngineYield;
	/** A call says itself that it starts. */
	start(id: string, name: string, args: unknown): EngineYield;
	/** What is still owed when no more events come: ends for what is open, and the usage. */
	finish(because: string): EngineEvent[];
	/** How the last model call ended. */
	last(): Pick<AssistantMessage, "stopReason" | "errorMessage"> | undefined;
}

const NOTHING: readonly EngineEvent[] = [];

/** A long tool call can take minutes to write: an empty delta shows nothing and says that the model is not silent. */
const NOT_SILENT: EngineEvent = { type: "text", delta: "" };

/** `account`: on whose behalf the model is called. `startsItself`: a call of this tool says when it starts, by `start` or `answer`. */
export function translator(account: string, startsItself: (tool: string) => boolean = () => false): Translator {
	const calls = toolCalls();
	const usage = usageSum();
	let last: AssistantMessage | undefined;
	/** Of the last call that was answered. */
	let model: string | undefined;
	let compacting = false;
	let announce = false;
	/** The text of the message that is being made; undefined between messages. */
	let said: string | undefined;

	/** A message begins for the reader when there is something to show: a refused call leaves no empty message behind. */
	const shown = (said: EngineYield): EngineYield => {
		if (!announce) return said;
		announce = false;
		return [{ type: "message" } as const, said].flat();
	};

	const compaction = (phase: "start" | "end"): EngineEvent[] => {
		const changes = compacting !== (phase === "start");
		compacting = phase === "start";
		return changes ? [{ type: "compaction", phase }] : [];
	};

	function event(event: PiEvent): EngineYield {
		switch (event.type) {
			case "message_start":
				if (event.message.role === "assistant") {
					announce = true;
					said = "";
				}
				return NOTHING;
			case "message_update":
				return delta(event.assistantMessageEvent);
			case "message_end":
				if (event.message.role !== "assistant") return NOTHING;
				return ended(event.message);
			case "tool_execution_start":
				if (startsItself(event.toolName)) return NOTHING;
				return shown(calls.start(event.toolCallId, event.toolName, event.args));
			case "tool_execution_update":
				return calls.progress(event.toolCallId, partsOf(event.partialResult));
			case "tool_execution_end":
				return calls.end(event.toolCallId, event.toolName, partsOf(event.result), event.isError);
			case "compaction_start":
				return compaction("start");
			case "compaction_end":
				return compaction("end");
			default:
				// Lifecycle, retry and queue notices: nothing a reader of the answer needs to see.
				return NOTHING;
		}
	}

	type Delta = Extract<PiEvent, { type: "message_update" }>["assistantMessageEvent"];

	/** Deltas pass straight through, so text is out before the tool call behind it: `text_end` may come only at the very end. */
	function delta(update: Delta): EngineYield {
		switch (update.type) {
			case "text_delta":
				if (said !== undefined) said += update.delta;
				return update.delta === "" ? NOTHING : shown({ type: "text", delta: update.delta });
			case "thinking_delta":
				return update.delta === "" ? NOTHING : shown({ type: "reasoning", delta: update.delta });
			case "toolcall_start":
			case "toolcall_delta":
				return NOT_SILENT;
			default:
				return NOTHING;
		}
	}

	function ended(message: AssistantMessage): EngineYield {
		last = message;
		const { stopReason, content } = message;
		// A refused call has used nothing.
		if (stopReason !== "error" || content.length > 0) {
			usage.add(message.usage);
			model = message.model;
		}
		// A message that was cut off has calls with half an argument; pi never runs them, and no reader heard of them.
		if (stopReason === "error" || stopReason === "aborted") return unsaid(message);
		for (const part of content)
			if (part.type === "toolCall") calls.announce({ id: part.id, name: part.name, args: part.arguments });
		const rest = unsaid(message);
		const signed = signedReasoning(message, account);
		return signed.length === 0 ? rest : [rest, shown(signed)].flat();
	}

	/** A server that does not stream, or not all of it, says the rest only in the finished message. */
	function unsaid({ content }: AssistantMessage): EngineYield {
		const before = said;
		said = undefined;
		const text = content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
		if (before === undefined || text === before || !text.startsWith(before)) return NOTHING;
		return shown({ type: "text", delta: text.slice(before.length) });
	}

	return {
		event,
		ask(id, name, args, needed) {
			const { handle, events } = calls.ask(id, name, args, needed);
			return { handle, said: shown(events) };
		},
		answer: (id, answer) => calls.answer(id, answer),
		start: (id, name, args) => shown(calls.start(id, name, args)),
		finish: (because) => [...calls.close(because), ...compaction("end"), { ...usage.event(), ...(model && { model }) }],
		last: () => last,
	};
}

/** A tool may answer anything, or nothing while it runs. */
function partsOf(result: { content?: readonly (TextContent | ImageContent)[] } | undefined): ContentPart[] {
	return (result?.content ?? []).map((part) =>
		part.type === "text"
			? { type: "text", text: part.text }
			: { type: "image", contentType: part.mimeType, data: part.data },
	);
}
