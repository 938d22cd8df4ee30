import type { ApprovalOutcome, EngineContext, EngineEvent } from "@nexus-stream/protocol/engine";
import { expect, test } from "vitest";
import { digestOf } from "../../../packages/daemon/src/engine/engine.ts";
import { textResult } from "../../../packages/daemon/src/engine/tool.ts";
import { askTool } from "../../../packages/daemon/src/engine/tools/built-in.ts";
import { oneByOne } from "../demo-play.ts";
import { ask as requestOf } from "../pi-kit.ts";
import { answer, asks, engineOf, type Options, shown, text, toolOf } from "./kit.ts";

/** Runs with a person who answers; `said` decides by the events about the call. */
async function play(
	answers: Parameters<typeof engineOf>[0],
	options: Options,
	said: (event: Extract<EngineEvent, { type: "tool" }>) => ApprovalOutcome | Promise<ApprovalOutcome>,
	fields: Parameters<typeof requestOf>[1] = { owner: false, approval: {} },
) {
	const { engine, calls } = await engineOf(answers, options);
	const events: EngineEvent[] = [];
	const context: EngineContext = {
		signal: new AbortController().signal,
		async answer(id) {
			const asked = events.findLast((event) => event.type === "tool" && event.asking?.id === id);
			return said(asked as Extract<EngineEvent, { type: "tool" }>);
		},
	};
	for await (const event of oneByOne(engine.run(requestOf("x", fields), context))) events.push(structuredClone(event));
	return { events, calls, shown: shown(events) };
}

const approve = ({ name, args }: { name: string; args?: unknown }): ApprovalOutcome => ({
	id: "K7Q2",
	state: "approved",
	by: "Ann",
	digest: digestOf(name, args),
});

const bash = (ran: unknown[] = []) =>
	toolOf("bash", {
		parameters: { type: "object", properties: { command: { type: "string" } } },
		async execute(args) {
			ran.push(args);
			return textResult("ok");
		},
	});

test("A4, A11: bash is asked about before it starts, and runs what was approved", async () => {
	const ran: unknown[] = [];
	const { shown, events } = await play(
		[answer(asks("bash", { command: "ls" })), answer(text("Done."))],
		{ tools: [bash(ran)] },
		approve,
		{ owner: true, approval: {} },
	);
	expect(shown).toEqual([
		...["id_bash progress", "id_bash progress", "id_bash started", "id_bash completed", "message", "text Done."],
	]);
	expect(ran).toEqual([{ command: "ls" }]);
	const asked = events.flatMap((event) => (event.type === "tool" && event.asking ? [event.asking.state] : []));
	expect(asked).toEqual(["pending", "approved"]);
});

test.each([
	["denied", { by: "Ann", reason: "not today" }, "not run: denied by Ann: not today"],
	["expired", {}, "not run: no answer in time"],
	["withdrawn", { reason: "superseded by run_2" }, "not run: the question was withdrawn: superseded by run_2"],
] as const)("%s: the tool fails without a start, and the model reads why", async (state, fields, said) => {
	const ran: unknown[] = [];
	const { shown, calls } = await play([answer(asks("bash", {})), answer(text("OK."))], { tools: [bash(ran)] }, () => ({
		id: "K7Q2",
		state,
		...fields,
	}));
	expect(shown.filter((line) => line.startsWith("id_bash"))).toEqual([
		...["id_bash progress", "id_bash progress", "id_bash failed"],
	]);
	expect(ran).toEqual([]);
	expect(calls[1]!.messages.at(-1)).toMatchObject({ role: "toolResult", isError: true, content: [{ text: said }] });
});

test("A21: a call that waits holds no slot", async () => {
	const { promise, resolve } = Promise.withResolvers<void>();
	const quick = toolOf("look", {
		async execute() {
			resolve();
			return textResult("seen");
		},
	});
	const { shown } = await play(
		[answer(asks("bash", {}), asks("look", {})), answer()],
		{ tools: [bash(), quick], config: { toolsParallelMax: 1 } },
		async (event) => {
			await promise;
			return approve(event);
		},
	);
	expect(shown.filter((line) => line.includes("completed"))).toEqual(["id_look completed", "id_bash completed"]);
});

test("A28: `ask` waits for the person, and the answer is its result", async () => {
	const asked: unknown[] = [];
	const { calls } = await play(
		[answer(asks("ask", { question: "Which?", choices: ["a", "b"] })), answer(text("OK."))],
		{ tools: [askTool] },
		({ asking }) => {
			asked.push(asking);
			return { id: "K7Q2", state: "answered", by: "Ann", text: "b" };
		},
	);
	expect(asked).toMatchObject([{ kind: "question", question: "Which?", choices: ["a", "b"] }]);
	expect(calls[1]!.messages.at(-1)).toMatchObject({ role: "toolResult", isError: false, content: [{ text: "b" }] });
});

test("A10: what the run may not use is neither offered nor run", async () => {
	const ran: unknown[] = [];
	const { shown, calls } = await play([answer(asks("bash", {})), answer()], { tools: [bash(ran)] }, approve, {
		owner: false,
		deniedTools: ["bash"],
	});
	expect(calls[0]!.tools).toEqual([]);
	expect(shown).toEqual(["id_bash failed"]);
	expect(ran).toEqual([]);
});
