/** Messages that begin before there is text: with the tools that run, or a placeholder. Neither is ever left behind. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DraftStyle } from "../../../packages/adapter/src/platform/session.ts";
import { seeded } from "../../../packages/lab/src/fake.ts";
import { type Source, World } from "./world.ts";

const ERROR_TEXT = "Sorry, that failed.";
const PLACEHOLDER = "One moment…";

const word = fc.constantFrom("alpha ", "beta\n\n", "γάμμα ", "  ", "\n", "wordwithoutend");
const token = word.map((text): Source => ({ type: "token", text }));
const tool = fc
	.record({
		toolCallId: fc.constantFrom("a", "b"),
		status: fc.constantFrom("started" as const, "completed" as const, "failed" as const),
	})
	.map((call): Source => ({ type: "tool_status", toolName: "Read", ...call }));
const piece = fc.oneof({ weight: 3, arbitrary: token }, { weight: 2, arbitrary: tool });
const end = fc.constantFrom<Source>({ type: "end", final: true }, { type: "error" });
const answer = fc
	.tuple(fc.array(fc.array(piece, { maxLength: 12 }), { minLength: 1, maxLength: 3 }), end)
	.map(([messages, last]): Source[] => [
		...messages.flatMap((message, n): Source[] => (n === 0 ? message : [{ type: "end", final: false }, ...message])),
		last,
	]);

const withoutSpace = (text: string): string => text.replace(/\s/g, "");
const said = (lines: readonly Source[]): string =>
	lines.map((line) => (line.type === "token" ? line.text : "")).join("");

function live(
	lines: readonly Source[],
	seed: number,
	trouble: { faults: number; crashes: number },
	placeholder: string,
	style: DraftStyle = "edit",
) {
	const world = new World({
		style,
		canEdit: true,
		textMax: 60,
		tools: true,
		early: true,
		placeholder,
		lines,
		errorText: ERROR_TEXT,
		random: seeded(seed),
		...trouble,
	});
	world.run();
	expect(world.daemon.error).toBeUndefined();
	return world;
}

const failed = (lines: readonly Source[]): boolean => lines.some(({ type }) => type === "error");

describe.each(["", PLACEHOLDER])("messages that begin early, placeholder %j", (placeholder) => {
	it.each([
		["without trouble", { faults: 0, crashes: 0 }],
		["with faults and crashes", { faults: 0.3, crashes: 6 }],
	])("I7: %s the platform shows the source once and nothing else in the end", (_name, trouble) => {
		fc.assert(
			fc.property(answer, fc.nat(), (lines, seed) => {
				const world = live(lines, seed, trouble, placeholder);
				const visible = world.messages.map(({ text }) => text);
				expect(visible.filter((text) => text === ERROR_TEXT)).toHaveLength(failed(lines) ? 1 : 0);
				expect(withoutSpace(visible.filter((text) => text !== ERROR_TEXT).join(""))).toBe(withoutSpace(said(lines)));
				expect(world.daemon.rows.every(({ state }) => state === "sent")).toBe(true);
			}),
			{ numRuns: 400 },
		);
	});
});

const started: Source = { type: "tool_status", toolName: "Read", toolCallId: "a", status: "started" };

it("a tool that runs before the first text is a message, which the text then takes over", () => {
	const world = live([started, { type: "token", text: "Found." }, { type: "end", final: true }], 1, NO_TROUBLE, "");
	expect(world.messages).toMatchObject([{ text: "Found." }]);
	expect(world.counts.removed).toBe(0);
});

it("a message of an answer that turns out to have no text is taken away", () => {
	let removed = 0;
	for (let seed = 0; seed < 20; seed++) {
		const world = live([started, { type: "end", final: true }], seed, NO_TROUBLE, PLACEHOLDER);
		expect(world.messages).toEqual([]);
		removed += world.counts.removed;
	}
	expect(removed).toBeGreaterThan(0);
});

const NO_TROUBLE = { faults: 0, crashes: 0 };

it("I7: previews show which tool runs before there is text, and no message is made for it", () => {
	fc.assert(
		fc.property(answer, fc.nat(), (lines, seed) => {
			const world = live(lines, seed, { faults: 0.3, crashes: 6 }, PLACEHOLDER, "preview");
			const visible = world.messages.map(({ text }) => text).filter((text) => text !== ERROR_TEXT);
			expect(withoutSpace(visible.join(""))).toBe(withoutSpace(said(lines)));
			expect(world.counts.removed).toBe(0);
		}),
		{ numRuns: 200 },
	);
	const world = live([started, { type: "end", final: true }], 3, NO_TROUBLE, "", "preview");
	expect(world.messages).toEqual([]);
});
