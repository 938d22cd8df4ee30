/** Shows frames to a person, or prints them as they are. */

import type { FollowedRecord } from "@nexus-stream/client";
import {
	type BeginFrame,
	type EndFrame,
	exitCodeOf,
	type Frame,
	injectedIn,
	isErrorCode,
	isShown,
	NexusError,
	type ToolStatusEvent,
	type Violation,
} from "@nexus-stream/protocol";
import { oneLine, type Terminal } from "./terminal.ts";

export interface ShowOptions {
	/** Frames as NDJSON instead of text. */
	json?: boolean;
	/** Reasoning, dimmed. */
	reasoning?: boolean;
}

/** A frame with what checking it has shown. */
export type ShownRecord = Pick<FollowedRecord, "text" | "frame" | "end" | "violation">;

interface Screen {
	readonly terminal: Terminal;
	readonly options: ShowOptions;
	readonly begins: Map<string, BeginFrame>;
	readonly toolStart: Map<string, number>;
	/** The kind of the last text on stdout: it decides how much space the next message needs. */
	last: "nothing" | "text" | "reasoning" | "closed";
	/** Messages that have begun and not been shown whole, in order of their begins: the first is being written, the others wait (P3.11). */
	readonly messages: Map<string, BufferedMessage>;
	/** The agent that was last named as the speaker. */
	speaker: string | undefined;
}

/** A message of an agent that works in parallel to the one whose message is being written. */
interface BufferedMessage {
	text: string;
	ended: boolean;
}

export function createShow(terminal: Terminal, options: ShowOptions) {
	const screen: Screen = {
		terminal,
		options,
		begins: new Map(),
		toolStart: new Map(),
		last: "nothing",
		messages: new Map(),
		speaker: undefined,
	};
	return {
		/** Shows one record; the exit code when it is the final end of a run. */
		record({ text, frame, end, violation }: ShownRecord): number | undefined {
			if (options.json) terminal.json(text);
			else showFrame(screen, frame);
			return end && concludeRun(end, violation, terminal);
		},
	};
}

function showFrame(screen: Screen, frame: Frame): void {
	switch (frame.type) {
		case "stream.begin":
			screen.begins.set(frame.message_id, frame);
			if (frame.modality === "text" && isShown(frame))
				screen.messages.set(frame.message_id, { text: "", ended: false });
			break;
		case "stream.chunk":
			showChunk(screen, frame.message_id, frame.payload, frame.ts);
			break;
		case "stream.end":
			showEnd(screen, frame);
			break;
		default:
			frame satisfies never;
	}
}

function showChunk(screen: Screen, messageId: string, payload: string, ts: number): void {
	const begin = screen.begins.get(messageId);
	if (begin && !isShown(begin)) return;
	const modality = begin?.modality ?? "text";
	if (modality === "text") showText(screen, messageId, payload);
	else if (modality === "reasoning") {
		if (screen.options.reasoning) say(screen, "reasoning", payload);
	} else if (modality === "tool") showTool(screen, payload, ts);
	else if (injectedIn(payload))
		screen.terminal.note(screen.terminal.dim("[joined] the agent has read what was sent meanwhile"));
	else screen.terminal.note(screen.terminal.dim(`[${oneLine(modality, 40)}] ${partTitle(payload)}`));
}

/** Agents write side by side; a terminal shows one after another. */
function showText(screen: Screen, messageId: string, text: string): void {
	const message = screen.messages.get(messageId);
	const [first] = screen.messages.keys();
	if (message && messageId !== first) message.text += text;
	else sayMessage(screen, messageId, text);
}

function sayMessage(screen: Screen, messageId: string, text: string): void {
	const agent = screen.begins.get(messageId)?.agent;
	if (agent !== screen.speaker) {
		screen.speaker = agent;
		if (agent !== undefined) screen.terminal.note(screen.terminal.dim(`[${oneLine(agent, 60)}]`));
	}
	say(screen, "text", text);
}

/** The message that was being written is whole: those that waited for it follow. */
function endMessage(screen: Screen, messageId: string): void {
	const ended = screen.messages.get(messageId);
	if (!ended) return;
	ended.ended = true;
	for (const [id, message] of screen.messages) {
		if (message.text !== "") sayMessage(screen, id, message.text);
		message.text = "";
		if (!message.ended) return;
		screen.messages.delete(id);
		screen.begins.delete(id);
		if (screen.last === "text") screen.last = "closed";
	}
}

/** Messages, and reasoning between them, stand apart by an empty line. */
function say(screen: Screen, kind: "text" | "reasoning", text: string): void {
	if (screen.last !== "nothing" && screen.last !== kind) screen.terminal.feed(2);
	screen.terminal.out(kind === "reasoning" ? screen.terminal.dim(text) : text);
	screen.last = kind;
}

function showTool(screen: Screen, payload: string, ts: number): void {
	const { toolName, toolCallId, status, summary, approval, question } = JSON.parse(payload) as ToolStatusEvent;
	// The prompter puts these to a person.
	if (approval || question) return;
	if (status === "started") screen.toolStart.set(toolCallId, ts);
	const began = screen.toolStart.get(toolCallId);
	const took = status === "completed" || status === "failed" ? ` (${ts - (began ?? ts)} ms)` : "";
	const detail = summary && summary !== `${toolName} ${status}` ? `: ${oneLine(summary, 100)}` : "";
	const line = `[tool] ${oneLine(toolName, 60)} ${oneLine(status, 20)}${took}${detail}`;
	screen.terminal.note(status === "failed" ? screen.terminal.paint("red", line) : screen.terminal.dim(line));
}

function partTitle(payload: string): string {
	try {
		const value = JSON.parse(payload) as Record<string, unknown>;
		const title = value.title ?? value.name ?? value.text ?? value.compaction;
		if (typeof title === "string") return oneLine(title, 100);
		if (Array.isArray(value.items)) return `${value.items.length} items`;
	} catch {
		// Not JSON: sound or a picture, which a terminal cannot show.
	}
	return `${payload.length} characters`;
}

function showEnd(screen: Screen, frame: EndFrame): void {
	if (screen.messages.has(frame.message_id)) endMessage(screen, frame.message_id);
	else screen.begins.delete(frame.message_id);
	if (!frame.final) return;
	screen.messages.clear();
	screen.speaker = undefined;
	if (screen.last !== "nothing") screen.terminal.feed(1);
	screen.last = "nothing";
	screen.toolStart.clear();
}

/** How a run's end is said: nothing when it completed, a line on stderr and an exit code when not. */
function concludeRun(end: EndFrame, violation: Violation | undefined, terminal: Terminal): number {
	if (violation) {
		terminal.note(
			terminal.paint("red", `nexus: the answer is damaged: ${oneLine(violation.message, 500)} (${violation.rule})`),
		);
		return exitCodeOf("data_loss");
	}
	switch (end.reason) {
		case "completed":
			return 0;
		case "aborted":
			terminal.note(end.error ? `stopped: ${oneLine(end.error.message, 500)}` : "stopped");
			return exitCodeOf("aborted");
		case "error":
		case "timeout":
		case "crashed": {
			const error = runError(end);
			terminal.note(terminal.paint("red", `nexus: the run failed: ${oneLine(error.message, 500)}`));
			return exitCodeOf(error.code);
		}
		default:
			return end.reason satisfies never;
	}
}

function runError(end: EndFrame): NexusError {
	const usual = end.reason === "timeout" ? "timeout" : end.reason === "crashed" ? "crashed" : "engine_failed";
	const code = end.error && isErrorCode(end.error.code) ? end.error.code : usual;
	return new NexusError(code, end.error?.message ?? end.reason);
}
