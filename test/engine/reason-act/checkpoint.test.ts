/** Going on from a checkpoint: completed tools are not run again, and the model knows what became of the others. */

import { describe, expect, test } from "vitest";
import type { Checkpoint } from "../../../src/engine/reason-act/checkpoint.ts";
import { reasonAct } from "../../../src/engine/reason-act/loop.ts";
import type { LlmEvent } from "../../../src/engine/reason-act/model.ts";
import { setupOf } from "../../../src/engine/reason-act/reason-act.ts";
import { type Tool, textResult } from "../../../src/engine/tools/tools.ts";
import { collect, requestOf, textOf } from "../demo-play.ts";
import { answer, asks, modelOf, text, toolOf } from "./kit.ts";

const request = requestOf("hello");
const signal = new AbortController().signal;

/** Plays a run whole, and keeps every checkpoint as a store would. */
async function recorded(answers: readonly (readonly LlmEvent[])[], tools: Tool[], config = {}) {
	const { model } = modelOf(answers);
	const checkpoints: Checkpoint[] = [];
	const setup = await setupOf(config, model, tools);
	const checkpoint = (one: Checkpoint) => {
		checkpoints.push(JSON.parse(JSON.stringify(one)));
		return undefined;
	};
	await collect(reasonAct({ ...setup, checkpoint }, request, { signal }));
	return checkpoints;
}

async function resumed(from: Checkpoint, answers: readonly (readonly LlmEvent[])[], tools: Tool[], config = {}) {
	const { model, calls } = modelOf(answers);
	const events = await collect(reasonAct(await setupOf(config, model, tools), request, { signal }, from));
	return { events, calls };
}

/** Tools that note when they act. */
function noting() {
	const acted: string[] = [];
	const tools = ["a", "b", "c"].map((name) =>
		toolOf(name, {
			async execute(_args, { state }) {
				acted.push(name);
				state.setState("last", name);
				return textResult(`${name} done`);
			},
		}),
	);
	return { acted, tools };
}

const answers = [answer(text("One. "), asks("a")), answer(asks("b"), asks("c")), answer(text("Done."))];

describe("A5: a checkpoint", () => {
	test("is made with every start and every end of a tool", async () => {
		const checkpoints = await recorded(answers, noting().tools);
		const statuses = checkpoints.map(({ state }) => state.calls.map(({ status }) => status).join(" "));
		expect(statuses).toEqual([
			...["started", "completed"],
			...["completed started announced", "completed started started"],
			...["completed completed started", "completed completed completed"],
		]);
		expect(checkpoints.at(-1)!.state.custom).toEqual({ last: "c" });
	});

	test("goes on with the same context, and runs no completed tool again", async () => {
		const checkpoints = await recorded(answers, noting().tools);
		const { acted, tools } = noting();
		const { events, calls } = await resumed(checkpoints.at(-1)!, answers.slice(2), tools);
		expect(acted).toEqual([]);
		expect(textOf(events)).toBe("Done.");
		expect(events.filter(({ type }) => type === "tool")).toEqual([]);
		expect(calls[0]!.index).toBe(2);
		const results = calls[0]!.messages.filter((message) => message.role === "toolResult");
		expect(results.map(({ content }) => content)).toEqual(["a", "b", "c"].map((name) => [text(`${name} done`)]));
	});

	test("A4: a tool that was under way is of unknown outcome, one that had not begun never ran", async () => {
		const checkpoints = await recorded(answers, noting().tools);
		const cut = checkpoints.find(
			({ state }) => state.calls.map(({ status }) => status).join() === "completed,started,announced",
		)!;
		const { acted, tools } = noting();
		const { calls } = await resumed(cut, answers.slice(2), tools);
		expect(acted).toEqual([]);
		const [, b, c] = calls[0]!.messages.filter((message) => message.role === "toolResult");
		expect(b).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/^outcome unknown/) }] });
		expect(c).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/^never ran/) }] });
	});

	test("whose terminal tool had succeeded is over without another model call", async () => {
		const config = { phase: "plan" };
		const complete = [answer(asks("complete", { response: "Here.", summary: "s" }))];
		const checkpoints = await recorded(complete, [], config);
		const { events, calls } = await resumed(checkpoints.at(-1)!, complete, [], config);
		expect(calls).toEqual([]);
		expect(textOf(events)).toBe("Here.");
	});

	test("keeps counting: attempts and limits of the run that was cut off still hold", async () => {
		const config = { modelCallsMax: 2 };
		const checkpoints = await recorded(answers.slice(0, 2).concat([answer()]), noting().tools);
		const going = resumed(checkpoints.at(-1)!, answers.slice(2), noting().tools, config);
		await expect(going).rejects.toMatchObject({ message: expect.stringContaining("modelCallsMax") });
	});
});
