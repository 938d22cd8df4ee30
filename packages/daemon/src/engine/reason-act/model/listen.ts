/**
 * Reads one model call: passes its text on immediately and returns the whole message. Ends with the stream, whatever the model does. Local
 * models write their reasoning as `<think>` at the start of the text: it is split from the answer, piece by piece.
 */

import type { AssistantMessage } from "@earendil-works/pi-ai";
import { wordsOf } from "@nexus-stream/protocol";
import type { EngineEvent, EngineYield } from "@nexus-stream/protocol/engine";
import { NOT_SILENT, named } from "../../kit/kit.ts";
import { signedReasoning } from "../../pi/pi.ts";
import type { RunState } from "../state.ts";
import type { LlmEvent, ReportedTool } from "./model.ts";

export interface ModelReply {
	/** The provider's final message, without invalid parts. */
	message: AssistantMessage;
	failed: boolean;
	/** Whether readers saw some of it. */
	shown: boolean;
	/** The model's reasoning, up to a length. */
	reasoning: string;
}

export interface ReplySink {
	state: RunState;
	/** The account for which a provider signs reasoning. */
	account: string;
	say(said: EngineYield): void;
	/** False: in the log, but hidden in chats. */
	visible: boolean;
	describe(name: string, args: unknown): string;
}

/** Limit of one call's reasoning in the execution log. */
const REASONING_CHARS_MAX = 8000;

const CUT_OFF = "the stream ended without a finish";

export async function listen(open: () => AsyncIterable<LlmEvent>, sink: ReplySink): Promise<ModelReply> {
	const reader = new ReplyReader(sink);
	try {
		for await (const event of open()) {
			const reply = reader.read(event);
			if (reply) return reply;
		}
		return reader.broken(CUT_OFF);
	} catch (cause) {
		return reader.broken(wordsOf(cause) || CUT_OFF);
	}
}

class ReplyReader {
	readonly #sink: ReplySink;
	readonly #splitter = thinkSplitter();
	/** All text as the model wrote it, tags included. */
	#raw = "";
	#reasoning = "";
	#announced = false;

	constructor(sink: ReplySink) {
		this.#sink = sink;
	}

	/** Returns the reply once it is complete. */
	read(event: LlmEvent): ModelReply | undefined {
		switch (event?.type) {
			case "text_delta":
				this.#text(event.delta);
				return undefined;
			case "thinking_delta":
				if (typeof event.delta === "string") this.#show({ type: "reasoning", delta: event.delta });
				return undefined;
			case "toolcall_start":
			case "toolcall_delta":
				this.#sink.say(NOT_SILENT);
				return undefined;
			case "tool_start":
			case "tool_complete":
				this.#reported(event);
				return undefined;
			case "done":
				return this.#finish(event.message);
			case "error":
				return this.#fail(event.error);
			default:
				return undefined;
		}
	}

	broken(errorMessage: string): ModelReply {
		return this.#fail({ content: [], stopReason: "error", errorMessage } as unknown as AssistantMessage);
	}

	#text(delta: unknown): void {
		if (typeof delta !== "string" || delta === "") return;
		this.#raw += delta;
		for (const piece of this.#splitter.push(delta)) this.#show(piece);
	}

	/** A message begins for readers with its first content: a refused call leaves no empty message. */
	#show(event: EngineEvent): void {
		const { state, say, visible } = this.#sink;
		if (event.type === "text") state.say(event.delta, visible);
		else if (event.type === "reasoning") {
			if (event.delta === "") return;
			state.think(event.delta);
			if (this.#reasoning.length < REASONING_CHARS_MAX) this.#reasoning += event.delta;
		}
		if (!this.#announced) say(visible ? { type: "message" } : { type: "message", visible });
		this.#announced = true;
		say(event);
	}

	#reported(event: ReportedTool): void {
		const { state, describe } = this.#sink;
		const name = String(event.name);
		const id = String(event.id);
		if (event.type === "tool_start") {
			const call = state.startReported(id, name, jsonOf(event.args));
			if (call) this.#show({ ...named(call), status: "started", args: call.args, summary: describe(name, call.args) });
			return;
		}
		const status = event.failed === true ? "failed" : "completed";
		const result = String(event.result);
		const { call, missingStart } = state.endReported(id, name, status, result);
		// Readers that count running tools need a start.
		if (missingStart) this.#show({ ...named(call), status: "started", summary: describe(name, call.args) });
		this.#show({ ...named(call), status, result });
	}

	#finish(found: AssistantMessage): ModelReply {
		const message = wellFormed(found);
		const text = message.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
		// The finished message of a server that does not stream, or not completely, has more text than its deltas.
		if (text !== this.#raw && text.startsWith(this.#raw)) this.#text(text.slice(this.#raw.length));
		this.#flush();
		for (const event of signedReasoning(message, this.#sink.account)) this.#show(event);
		const failed = message.stopReason === "error" || message.stopReason === "aborted";
		return { message, failed, shown: this.#announced, reasoning: this.#reasoning };
	}

	#fail(found: AssistantMessage): ModelReply {
		this.#flush();
		const message = wellFormed(found, "error");
		return { message, failed: true, shown: this.#announced, reasoning: this.#reasoning };
	}

	#flush(): void {
		for (const piece of this.#splitter.end()) this.#show(piece);
	}
}

const STOPS: readonly unknown[] = ["stop", "length", "toolUse", "error", "aborted"];

/** Drops invalid parts: a compatible server, or a script, may send anything. */
function wellFormed(found: AssistantMessage | undefined, stop?: "error"): AssistantMessage {
	const parts: unknown[] = Array.isArray(found?.content) ? found.content : [];
	const stopReason = stop ?? (STOPS.includes(found?.stopReason) ? found!.stopReason : "stop");
	return { ...found!, role: "assistant", content: parts.filter(isPart), stopReason };
}

function isPart(value: unknown): value is AssistantMessage["content"][number] {
	if (typeof value !== "object" || value === null) return false;
	const part = value as Record<string, unknown>;
	if (part.type === "text") return typeof part.text === "string";
	if (part.type === "thinking") return typeof part.thinking === "string";
	return part.type === "toolCall" && typeof part.name === "string";
}

/** The JSON part of a value, which frames can carry. */
export function jsonOf(value: unknown): unknown {
	try {
		return JSON.parse(JSON.stringify(value ?? {}) ?? "{}");
	} catch {
		// A cycle, a BigInt: only a script makes these.
		return {};
	}
}

const OPEN = "<think>";
const CLOSE = "</think>";

export interface ReplyDelta {
	type: "text" | "reasoning";
	delta: string;
}

/** Splits one message. */
export function thinkSplitter() {
	let where: "start" | "thinking" | "after" | "text" = "start";
	/** Undecided text: white space at the start, or the beginning of a tag. */
	let held = "";

	function push(delta: string): readonly ReplyDelta[] {
		if (where === "text") return delta === "" ? [] : [{ type: "text", delta }];
		held += delta;
		switch (where) {
			case "start":
				return start();
			case "thinking":
				return thinking();
			default:
				return after();
		}
	}

	function start(): readonly ReplyDelta[] {
		const body = held.trimStart();
		if (body.startsWith(OPEN)) {
			where = "thinking";
			held = body.slice(OPEN.length);
			return thinking();
		}
		if (OPEN.startsWith(body)) return [];
		return plain(held);
	}

	function thinking(): readonly ReplyDelta[] {
		const at = held.indexOf(CLOSE);
		const end = at < 0 ? held.length - partOf(CLOSE, held) : at;
		const pieces = some("reasoning", held.slice(0, end));
		held = held.slice(at < 0 ? end : at + CLOSE.length);
		if (at < 0) return pieces;
		where = "after";
		return [...pieces, ...after()];
	}

	/** The blank lines between the reasoning and the answer belong to neither. */
	function after(): readonly ReplyDelta[] {
		held = held.trimStart();
		return held === "" ? [] : plain(held);
	}

	function plain(text: string): readonly ReplyDelta[] {
		where = "text";
		held = "";
		return some("text", text);
	}

	return {
		push,
		/** Returns the held text when the message ends. */
		end(): readonly ReplyDelta[] {
			const rest = held;
			held = "";
			return where === "thinking" ? some("reasoning", rest) : where === "start" ? some("text", rest) : [];
		},
	};
}

/** The text of a finished message without its reasoning, as the model is given it back. */
export function withoutThinking(text: string): string {
	const splitter = thinkSplitter();
	return [...splitter.push(text), ...splitter.end()].map(({ type, delta }) => (type === "text" ? delta : "")).join("");
}

const some = (type: ReplyDelta["type"], delta: string): ReplyDelta[] => (delta === "" ? [] : [{ type, delta }]);

/** How many characters at the end of a text may be the beginning of a tag. */
function partOf(tag: string, text: string): number {
	for (let length = Math.min(tag.length - 1, text.length); length > 0; length--)
		if (text.endsWith(tag.slice(0, length))) return length;
	return 0;
}
