/** Reasoning in tags and contexts that are too long, as pure functions. */

import type { Message } from "@earendil-works/pi-ai";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { thinkSplitter, withoutThinking } from "../../../packages/daemon/src/engine/reason-act/model/listen.ts";
import { trimmed } from "../../../packages/daemon/src/engine/reason-act/offer.ts";
import { atEffort } from "../../effort.ts";
import "../../seed.ts";
import { asks, messageOf } from "./kit.ts";

function split(pieces: readonly string[]) {
	const splitter = thinkSplitter();
	const all = [...pieces.flatMap((piece) => splitter.push(piece)), ...splitter.end()];
	const joined = (type: string) => all.map((piece) => (piece.type === type ? piece.delta : "")).join("");
	return { reasoning: joined("reasoning"), text: joined("text") };
}

describe("A23: `<think>`", () => {
	test.each([
		["<think>hm</think>\n\nHi", "hm", "Hi"],
		[" \n<think>hm</think>Hi", "hm", "Hi"],
		["<think>never closed", "never closed", ""],
		["Hi <think>no</think>", "", "Hi <think>no</think>"],
		["<thinking>", "", "<thinking>"],
		["<thi", "", "<thi"],
		["<think>a</thin</think>b", "a</thin", "b"],
		["", "", ""],
	])("%j", (whole, reasoning, text) => {
		expect(split([whole])).toEqual({ reasoning, text });
		expect(withoutThinking(whole)).toBe(text);
	});

	test("does not depend on how the text is cut, and loses no character of an ordinary text", () => {
		const piece = fc.constantFrom("<think>", "</think>", "<", "thi", "nk>", "</", " ", "\n", "a", "b");
		fc.assert(
			fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
				const whole = pieces.join("");
				expect(split(pieces)).toEqual(split([whole]));
				expect(split(Array.from(whole))).toEqual(split([whole]));
				if (!whole.trimStart().startsWith("<think>")) expect(split(pieces)).toEqual({ reasoning: "", text: whole });
			}),
			{ numRuns: atEffort(2000, 200) },
		);
	});
});

describe("A24: a context that is too long", () => {
	const result = (size: number): Message => ({
		role: "toolResult",
		toolCallId: "a",
		toolName: "look",
		isError: false,
		timestamp: 0,
		content: [{ type: "text", text: "x".repeat(size) }],
	});
	const user: Message = { role: "user", content: "u".repeat(400), timestamp: 0 };
	const sizes = (messages: readonly Message[]) => messages.map(({ content }) => JSON.stringify(content).length > 1000);

	test("is left alone while it fits", () => {
		const messages = [user, result(4000)];
		expect(trimmed(messages, 1100)).toBe(messages);
	});

	test("loses its oldest results first, no more than needed, and nothing that people or models said", () => {
		const messages = [user, messageOf([asks("look")]), result(4000), result(4000), result(4000)];
		const fitting = trimmed(messages, 2300);
		expect(sizes(fitting)).toEqual([false, false, false, true, true]);
		expect(fitting.map(({ role }) => role)).toEqual(messages.map(({ role }) => role));
		expect(fitting.slice(0, 2)).toEqual(messages.slice(0, 2));
		expect(sizes(trimmed(messages, 1))).toEqual([false, false, false, false, false]);
		expect(trimmed([user], 1)).toEqual([user]);
	});
});
