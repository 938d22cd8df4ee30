/** From pi's events to engine events: a pure reader that pairs every tool call and adds up usage. It never throws on a known event. */

import type { AgentEvent } from "@earendil-works/pi-agent-core";
import type { AssistantMessage, ImageContent, TextContent } from "@earendil-works/pi-ai";
import type { AgentSessionEvent } from "@earendil-works/pi-coding-agent";
import type { ContentPart } from "@nexus-stream/protocol";
import type { ApprovalOutcome, EngineEvent, EngineYield } from "@nexus-stream/protocol/engine";
import { NOT_SILENT, ToolCalls, usageSum } from "../kit/kit.ts";
import type { Needed } from "../policy.ts";
import { signedReasoning } from "./signature.ts";

export type PiEvent = AgentEvent | AgentSessionEvent;

const NOTHING: readonly EngineEvent[] = [];

type Delta = Extract<PiEvent, { type: "message_update" }>["assistantMessageEvent"];

export class Translator {
	readonly #account: string;
	readonly #startsItself: (tool: string) => boolean;
	readonly #calls = new ToolCalls();
	readonly #usage = usageSum();
	#last: AssistantMessage | undefined;
	/** The model of the last answered call. */
	#model: string | undefined;
	#compacting = false;
	/** A message has begun that readers have not seen yet. */
	#isUnannounced = false;
	/** The streamed text of the current message; undefined between messages. */
	#streamed: string | undefined;

	/** `account`: the account that calls the model. `startsItself`: a call of this tool reports its start by `start` or `answer`. */
	constructor(account: string, startsItself: (tool: string) => boolean = () => false) {
		this.#account = account;
		this.#startsItself = startsItself;
	}

	/** How the last model call ended. */
	get last(): Pick<AssistantMessage, "stopReason" | "errorMessage"> | undefined {
		return this.#last;
	}

	event(event: PiEvent): EngineYield {
		switch (event.type) {
			case "message_start":
				if (event.message.role === "assistant") {
					this.#isUnannounced = true;
					this.#streamed = "";
				}
				return NOTHING;
			case "message_update":
				return this.#delta(event.assistantMessageEvent);
			case "message_end":
				return event.message.role === "assistant" ? this.#ended(event.message) : NOTHING;
			case "tool_execution_start":
				if (this.#startsItself(event.toolName)) return NOTHING;
				return this.start(event.toolCallId, event.toolName, event.args);
			case "tool_execution_update":
				return this.#calls.progress(event.toolCallId, partsOf(event.partialResult));
			case "tool_execution_end":
				return this.#calls.end(event.toolCallId, event.toolName, partsOf(event.result), event.isError);
			case "compaction_start":
				return this.#compaction("start");
			case "compaction_end":
				return this.#compaction("end");
			default:
				// Lifecycle, retry and queue notices are not part of the answer.
				return NOTHING;
		}
	}

	/** A person is asked about a call before it starts. */
	ask(id: string, name: string, args: unknown, needed: Needed): { handle: string; events: EngineYield } {
		const { handle, events } = this.#calls.ask(id, name, args, needed);
		return { handle, events: this.#announced(events) };
	}

	/** The person has answered. */
	answer(id: string, answer: ApprovalOutcome): EngineYield {
		return this.#calls.answer(id, answer);
	}

	start(id: string, name: string, args: unknown): EngineYield {
		return this.#announced(this.#calls.start(id, name, args));
	}

	/** The missing events when pi reports no more: ends of open calls, and the usage. */
	finish(because: string): EngineEvent[] {
		const usage: EngineEvent = { ...this.#usage.event(), ...(this.#model && { model: this.#model }) };
		return [...this.#calls.close(because), ...this.#compaction("end"), usage];
	}

	/** A message begins for readers with its first content: a refused model call leaves no empty message. */
	#announced(events: EngineYield): EngineYield {
		if (!this.#isUnannounced) return events;
		this.#isUnannounced = false;
		return [{ type: "message" } as const, events].flat();
	}

	#compaction(phase: "start" | "end"): EngineEvent[] {
		const changes = this.#compacting !== (phase === "start");
		this.#compacting = phase === "start";
		return changes ? [{ type: "compaction", phase }] : [];
	}

	/** Deltas pass straight through, so that text is out before the tool call behind it: `text_end` may come only at the very end. */
	#delta(update: Delta): EngineYield {
		switch (update.type) {
			case "text_delta":
				if (this.#streamed !== undefined) this.#streamed += update.delta;
				return update.delta === "" ? NOTHING : this.#announced({ type: "text", delta: update.delta });
			case "thinking_delta":
				return update.delta === "" ? NOTHING : this.#announced({ type: "reasoning", delta: update.delta });
			case "toolcall_start":
			case "toolcall_delta":
				return NOT_SILENT;
			default:
				return NOTHING;
		}
	}

	#ended(message: AssistantMessage): EngineYield {
		this.#last = message;
		const { stopReason, content } = message;
		// A refused call has used nothing.
		if (stopReason !== "error" || content.length > 0) {
			this.#usage.add(message.usage);
			this.#model = message.model;
		}
		// An interrupted message has calls with incomplete arguments, which pi never runs and readers never see.
		if (stopReason === "error" || stopReason === "aborted") return this.#unstreamed(message);
		for (const part of content)
			if (part.type === "toolCall") this.#calls.announce({ id: part.id, name: part.name, args: part.arguments });
		const rest = this.#unstreamed(message);
		const signed = signedReasoning(message, this.#account);
		return signed.length === 0 ? rest : [rest, this.#announced(signed)].flat();
	}

	/** The finished message of a server that does not stream, or not completely, has more text than its deltas. */
	#unstreamed({ content }: AssistantMessage): EngineYield {
		const before = this.#streamed;
		this.#streamed = undefined;
		const text = content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
		if (before === undefined || text === before || !text.startsWith(before)) return NOTHING;
		return this.#announced({ type: "text", delta: text.slice(before.length) });
	}
}

/** The result of a tool; undefined while it runs without output. */
function partsOf(result: { content?: readonly (TextContent | ImageContent)[] } | undefined): ContentPart[] {
	return (result?.content ?? []).map((part) =>
		part.type === "text"
			? { type: "text", text: part.text }
			: { type: "image", contentType: part.mimeType, data: part.data },
	);
}
