/** One delivery's messages: what a person sees is what was produced, whatever happens on the way. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stepDraft } from "../../../packages/adapter/src/draft/draft.ts";
import {
	beginDraft,
	type Draft,
	type DraftEffect,
	type DraftInput,
	type DraftRules,
} from "../../../packages/adapter/src/draft/draft-state.ts";
import type { PlatformFault } from "../../../packages/adapter/src/port.ts";
import { seeded } from "../../../packages/lab/src/fake.ts";
import { atEffort } from "../../effort.ts";
import { type Source, World, type WorldOptions } from "./world.ts";

const TEXT_MAX = 60;
const ERROR_TEXT = "Sorry, that failed.";

const word = fc.constantFrom(
	...["alpha ", "beta ", "γάμμα ", "🙂🙃 ", "delta\n", "epsilon.\n\n", "x", "  ", "\n", "zeta, ", "wordwithoutend"],
);
const code = fc.constantFrom("```ts\n", "let x = 1;\n", "```\n", "\n", "- item\n", "> quote\n", "text ");

const tokens = (piece: fc.Arbitrary<string>): fc.Arbitrary<Source[]> =>
	fc.array(piece, { maxLength: 60 }).map((texts) => texts.map((text) => ({ type: "token" as const, text })));

/** Some assistant messages, ended well or badly. */
const answer = (piece: fc.Arbitrary<string>): fc.Arbitrary<Source[]> =>
	fc.tuple(fc.array(tokens(piece), { minLength: 1, maxLength: 4 }), fc.boolean()).map(([messages, fails]) => {
		const joined = messages.flatMap((message, index) =>
			index === 0 ? message : [{ type: "end" as const, final: false }, ...message],
		);
		return [...joined, fails ? { type: "error" as const } : { type: "end" as const, final: true }];
	});

const styles: Pick<Way, "style" | "canEdit">[] = [
	{ style: "edit", canEdit: true },
	{ style: "append", canEdit: true },
	{ style: "preview", canEdit: true },
	{ style: "preview", canEdit: false },
	{ style: "whole", canEdit: false },
];

const textsOf = (lines: readonly Source[]): string[] => {
	const texts = [""];
	for (const line of lines) {
		if (line.type === "token") texts.push(`${texts.pop()}${line.text}`);
		else if (line.type === "end" && !line.final) texts.push("");
	}
	return texts;
};

/** Without what a cut may add or leave out: white space, fence lines, quote marks, guards. */
const withoutMarks = (text: string): string => text.replace(/```(?:ts)?/g, "").replace(/[\s>\\]/g, "");

type Way = Pick<WorldOptions, "style" | "canEdit" | "faults" | "crashes">;

function live(lines: readonly Source[], seed: number, way: Way): World {
	const world = new World({ ...way, lines, textMax: TEXT_MAX, errorText: ERROR_TEXT, random: seeded(seed) });
	world.run();
	expect(world.daemon.error).toBeUndefined();
	return world;
}

function expectWhole(world: World, lines: readonly Source[]): void {
	const visible = world.messages.map(({ text }) => text);
	const failed = lines.some(({ type }) => type === "error");
	expect(visible.filter((text) => text === ERROR_TEXT)).toHaveLength(failed ? 1 : 0);
	if (failed) expect(visible.at(-1)).toBe(ERROR_TEXT);
	const shown = visible.filter((text) => text !== ERROR_TEXT).join("\n");
	expect(withoutMarks(shown)).toBe(withoutMarks(textsOf(lines).join("\n")));
}

/** Every reported range begins where the one before ended. */
function expectContiguous(world: World): void {
	let at = 0;
	for (const [from, to] of world.daemon.ranges) {
		expect(from).toBe(at);
		expect(to).toBeGreaterThanOrEqual(from);
		at = to;
	}
}

describe.each(styles)("draft, style $style (can edit: $canEdit)", (style) => {
	it.each([
		["I7: without trouble the platform shows the source, in order, within the limit", word, 0, 0, 150],
		["I7: with faults and crashes at any step it shows the same, once", word, 0.3, 6, 400],
		["I7: so it does with fences, lists and quotes torn apart", fc.oneof(word, code), 0.2, 4, 300],
	])("%s", (_title, piece, faults, crashes, runs) => {
		fc.assert(
			fc.property(answer(piece), fc.nat(), (lines, seed) => {
				const world = live(lines, seed, { ...style, faults, crashes });
				expectWhole(world, lines);
				expectContiguous(world);
			}),
			{ numRuns: atEffort(runs, 100) },
		);
	});
});

it("I7: a complete message that was found after a crash is reported as one, or looked up again: how much it says is on record", () => {
	const texts = [
		..."> quote\nlet x = 1;\n```ts\n> quote\nlet x = 1;\nlet x = 1;\n```ts\n```ts\n```ts\n- item\n".split(/(?<=\n)/),
		...["", "```ts\n", "alpha "],
	];
	// Cut behind two lines or behind six, depending on how much has come.
	const lines = texts.map((text): Source => (text === "" ? { type: "end", final: false } : { type: "token", text }));
	lines.push({ type: "end", final: true });
	const world = live(lines, 561783331, { style: "whole", canEdit: false, faults: 0.2, crashes: 4 });
	expectWhole(world, lines);
});

describe("draft", () => {
	const rules: DraftRules = {
		fits: (markdown) => markdown.length <= TEXT_MAX,
		guess: TEXT_MAX,
		style: "edit",
		canEdit: true,
		canRemove: false,
		lookup: "none",
		nonceWindowMs: 60_000,
		intent: false,
		tools: true,
		early: false,
		placeholder: "",
		errorText: "",
		nonce: (ordinal) => `n${ordinal}`,
	};

	function play(inputs: readonly DraftInput[], changed: Partial<DraftRules> = {}, draft?: Draft) {
		const all: DraftEffect[] = [];
		let state = draft ?? beginDraft({ ...rules, ...changed });
		for (const input of inputs) {
			const step = stepDraft(state, input, 0, { ...rules, ...changed });
			state = step.draft;
			all.push(...step.effects);
		}
		const calls = all.flatMap((effect) => (effect.type === "call" ? [effect.call] : []));
		const said = all.flatMap((effect) => (effect.type === "say" ? [effect.status] : []));
		return { draft: state, effects: all, calls, said };
	}

	const token = (text: string): DraftInput => ({ type: "token", text });
	const due: DraftInput = { type: "due" };
	const edited: DraftInput = { type: "edited" };
	const end: DraftInput = { type: "end", final: true };
	const created: DraftInput = { type: "created", messageId: "m" };
	const failure = (fault: PlatformFault): DraftInput => ({ type: "failed", fault, error: "no" });
	const opened = [token("a"), due, created];
	const tool = { type: "tool_status", toolName: "Read", toolCallId: "t", status: "started" } as const;

	it("creates with the first text that shows something, not before", () => {
		expect(play([token(" \n")]).effects).toEqual([]);
		expect(play([token(" \n"), token("a")]).effects).toEqual([{ type: "want", rank: "create", paced: true }]);
	});

	it("collapses edits: the text is taken at its turn", () => {
		const { calls } = play([...opened, token("b"), token("c"), token("d"), due]);
		expect(calls.map((call) => "markdown" in call && call.markdown)).toEqual(["a", "abcd"]);
	});

	describe("text that failed its check", () => {
		const begun = [token("One. "), due, created];
		const damaged = (damagedFrom: number): DraftInput => ({ type: "error", damagedFrom });

		it("in a stream of the platform is closed, then edited away", () => {
			const inputs = [...begun, token("two"), due, edited, damaged(0), due, edited, due, edited];
			const { calls, said } = play(inputs, { style: "append", errorText: "Sorry." });
			expect(calls.map(({ type }) => type)).toEqual(["start", "append", "stop", "edit"]);
			expect(calls.at(-1)).toMatchObject({ id: "m", markdown: "Sorry.", final: true });
			expect(said.at(-1)).toEqual({ type: "delivery_complete", messageIds: ["m"] });
		});

		it("goes from a message that also says something true", () => {
			const { calls } = play([...begun, token("two"), damaged(5), due]);
			expect(calls.at(-1)).toMatchObject({ type: "edit", markdown: "One.", final: true });
		});

		it("stays where nothing can be said instead and nothing can be taken away", () => {
			const { calls } = play([...begun, token("two"), damaged(0), due]);
			expect(calls.at(-1)).toMatchObject({ type: "edit", markdown: "One. two", final: true });
		});

		it("is never said where a message is created complete", () => {
			const whole = { style: "whole", canEdit: false, errorText: "Sorry." } as const;
			const { calls } = play([token("One. "), damaged(0), due], whole);
			expect(calls).toMatchObject([{ type: "create", markdown: "Sorry." }]);
		});
	});

	it("ends every open message with its complete text, even if nothing changed", () => {
		const { calls } = play([...opened, end, due]);
		expect(calls.at(-1)).toMatchObject({ type: "edit", markdown: "a", final: true });
	});

	it("shows tools below the text while no text follows, and never in the end", () => {
		const shown = play([...opened, tool, due, edited]);
		expect(shown.calls.at(-1)).toMatchObject({ type: "edit", markdown: "a\n\n⏳ `Read`" });
		const after = play([token(" b"), due], {}, shown.draft);
		expect(after.calls.at(-1)).toMatchObject({ markdown: "a b" });
		const ended = play([end, due], {}, shown.draft);
		expect(ended.calls.at(-1)).toMatchObject({ markdown: "a", final: true });
		expect(play([...opened, tool], { tools: false }).effects.at(-1)).not.toMatchObject({ type: "want", rank: "edit" });
	});

	it("I7: a creation with an unknown outcome is reported and not repeated", () => {
		const { said, draft } = play([token("a"), due, failure("unknown_outcome")]);
		expect(said).toEqual([{ type: "delivery_error", error: "no", code: "unknown_outcome", nonce: "n1" }]);
		expect(stepDraft(draft, token("b"), 0, rules).effects).toEqual([]);
	});

	describe("an uncertain creation on a platform that recognises nonces", () => {
		const byNonce: DraftRules = { ...rules, lookup: "nonce" };
		const lost = play([token("a"), due, failure("unknown_outcome")], byNonce).draft;
		const unknown = { type: "say", status: { type: "delivery_error", code: "unknown_outcome" } };

		it("is said again under the same nonce while the platform recognises it, and no longer", () => {
			const again = stepDraft(lost, due, 10_000, byNonce);
			const call = { type: "create", nonce: "n1", markdown: "a", final: false };
			expect(again.effects).toEqual([{ type: "call", call }]);
			expect(stepDraft(again.draft, failure("unknown_outcome"), 90_000, byNonce).effects[0]).toMatchObject(unknown);
		});

		it("I7: is not said again when it waited for its turn until the platform has forgotten its nonce", () => {
			expect(stepDraft(lost, due, 60_000, byNonce).effects).toMatchObject([unknown, { type: "over" }]);
		});
	});

	it("I7: what an earlier process left in doubt is not created again where nothing can be looked up", () => {
		const begun = beginDraft(rules, { position: 0, ordinal: 1, uncertain: { nonce: "n1" } });
		const { calls, said } = play([token("a"), due], {}, begun);
		expect(calls).toEqual([]);
		expect(said).toMatchObject([{ type: "delivery_error", code: "unknown_outcome", nonce: "n1" }]);
	});

	it("an edit that fails for now is made good by the next; one that never can work ends the delivery", () => {
		const edit = [...opened, token("b"), due];
		expect(play([...edit, failure("unavailable"), token("c"), due]).calls.at(-1)).toMatchObject({
			type: "edit",
			markdown: "abc",
		});
		expect(play([...edit, failure("gone")]).said.at(-1)).toMatchObject({ type: "delivery_error", code: "gone" });
		const last = play([...opened, end, due, failure("unavailable")]);
		expect(last.said.at(-1)).toMatchObject({ type: "delivery_error", code: "unavailable" });
	});

	it("a preview that never can work is not tried again; one that fails for now is", () => {
		const style = { style: "preview" } as const;
		const after = (fault: PlatformFault) => play([token("a"), due, failure(fault), token("b")], style).effects.at(-1);
		expect(after("unavailable")).toEqual({ type: "want", rank: "preview", paced: true });
		expect(after("denied")).not.toMatchObject({ type: "want" });
	});

	it("tools apart: a preview carries the tool calls separately from its text, and a change of them waits for no interval", () => {
		const apart = { style: "preview", tools: true, early: true, toolsApart: true } as const;
		const call = { type: "tool_status", toolName: "bash", toolCallId: "c1", summary: "ls /" } as const;
		const text = play([token("a"), due, edited], apart);
		const { effects, calls } = play([{ ...call, status: "started" }, due], apart, text.draft);
		expect(effects[0]).toEqual({ type: "want", rank: "preview", paced: false });
		expect(calls).toMatchObject([{ type: "preview", markdown: "a", tools: [{ name: "bash", status: "started" }] }]);
		const before = play([{ ...call, status: "started" }, due], apart);
		expect(before.calls).toMatchObject([{ type: "preview", markdown: "", tools: [{ name: "bash" }] }]);
	});

	it("a message that is complete is created although nothing follows it yet", () => {
		const preview = { style: "preview", intent: true } as const;
		const full = play([token("word ".repeat(20)), due], preview);
		expect(full.said).toMatchObject([{ type: "message_creating", nonce: "n1", to: 60 }]);
		const { effects, calls } = play([{ type: "ack", nonce: "n1" }, due], preview, full.draft);
		expect(effects[0]).toEqual({ type: "want", rank: "create", paced: true });
		expect(calls).toMatchObject([{ type: "create", nonce: "n1", final: true }]);
	});

	it("a stream that is gone needs no closing; one that may not be closed is reported", () => {
		const stop = (fault: PlatformFault) => {
			const { calls, said } = play([...opened, end, due, failure(fault)], { style: "append" });
			expect(calls.at(-1)).toMatchObject({ type: "stop", id: "m" });
			return said.at(-1);
		};
		expect(stop("gone")).toMatchObject({ type: "delivery_complete", messageIds: ["m"] });
		expect(stop("denied")).toMatchObject({ type: "delivery_error", code: "denied" });
	});

	it("nothing is edited to what it says already, and no tool's line makes a message too long", () => {
		expect(play([...opened, token(" "), due]).calls).toHaveLength(1);
		const long = "word ".repeat(11).trim();
		const { calls } = play([...opened, token(` ${long}`), tool, due]);
		expect(calls.at(-1)).toMatchObject({ type: "edit", markdown: `a ${long}` });
	});

	it("nothing comes after the end, and only its own ack lets a message be created", () => {
		const { calls } = play([...opened, end, token("b"), due]);
		expect(calls.at(-1)).toMatchObject({ markdown: "a", final: true });
		const intent = { intent: true };
		const other = play([token("a"), { type: "ack", nonce: "n9" }, due], intent);
		expect(other.said).toMatchObject([{ type: "message_creating", nonce: "n1" }]);
		expect(other.calls).toEqual([]);
		expect(play([{ type: "ack", nonce: "n1" }, due], intent, other.draft).calls).toHaveLength(1);
	});

	it("does not shorten what is visible already when it resumes", () => {
		const resume = { position: 10, ordinal: 2, messageId: "m2", shown: 16 };
		const begun = beginDraft(rules, resume);
		expect(play([token("abc")], {}, begun).effects).toEqual([]);
		expect(play([token("abcdefg")], {}, begun).effects).toEqual([{ type: "want", rank: "edit", paced: true }]);
	});

	it("continues the error message that was open when the process died", () => {
		const begun = beginDraft({ ...rules, errorText: "Sorry." }, { position: 10, ordinal: 2, messageId: "m2" });
		const { calls, said } = play([{ type: "error" }, due, edited], { errorText: "Sorry." }, begun);
		expect(calls).toEqual([expect.objectContaining({ type: "edit", id: "m2", markdown: "Sorry." })]);
		expect(said).toContainEqual(expect.objectContaining({ type: "message_sent", from: 10, to: 10, final: true }));
	});

	it("holds the text of the open message, not the answer", () => {
		let draft = beginDraft(rules);
		let longest = 0;
		for (let count = 0; count < 20_000; count++) {
			for (const input of [token(`word${count} `), due]) {
				const step = stepDraft(draft, input, 0, rules);
				draft = step.draft;
				for (const effect of step.effects) {
					if (effect.type !== "call") continue;
					const outcome: DraftInput = effect.call.type === "create" ? { type: "created", messageId: "m" } : edited;
					draft = stepDraft(draft, outcome, 0, rules).draft;
				}
			}
			longest = Math.max(longest, draft.text.length);
		}
		expect(draft.from).toBeGreaterThan(100_000);
		expect(longest).toBeLessThan(3 * TEXT_MAX);
	});
});
