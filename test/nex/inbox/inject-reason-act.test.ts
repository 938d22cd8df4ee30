/** A26 with the reason-act engine on a real Broker: when a message joins a run, and what the run that continues it has read. */

import { copyFileSync } from "node:fs";
import type { Message } from "@earendil-works/pi-ai";
import { expect, test } from "vitest";
import { reasonActEngine } from "../../../packages/daemon/src/engine/reason-act/reason-act.ts";
import { type Tool, textResult } from "../../../packages/daemon/src/engine/tool.ts";
import { never, tempFile, until, verified } from "../../broker/rig.ts";
import {
	type Answers,
	answer,
	asks,
	delta,
	messageOf,
	modelOf,
	setupOf,
	text,
	toolOf,
} from "../../engine/reason-act/kit.ts";
import { copiesAtCommits, type NexRigOptions, nexRig, queueOf } from "./rig.ts";

const queue = queueOf("inject");

async function reasoning(answers: Answers, tools: Tool[], options: NexRigOptions = {}) {
	const { model, calls } = modelOf(answers);
	const engine = reasonActEngine(await setupOf({}, model, tools));
	const play = () => {
		throw new Error("the engine's own run is used");
	};
	return { ...nexRig(play, { ...options, engine, engineFields: engine }), calls, model };
}

/** In a few words, as the model reads them. */
function read(messages: readonly Message[]): string[] {
	return messages.map(({ role, content }) => {
		const parts = typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
		const words = parts.map((part) => (part.type === "text" ? part.text : part.type === "toolCall" ? part.name : ""));
		return `${role}: ${words.join(" ")}`;
	});
}

const saidOf = (turn: { messages: readonly { role: string; text: string }[] } | undefined) =>
	turn?.messages.map(({ role, text: said }) => `${role}: ${said}`);

test("a message that comes while a tool runs joins at the run's next model call, behind the tool's result", async () => {
	let say = async (_: string): Promise<unknown> => undefined;
	const look = toolOf("look", { execute: async () => say("two").then(() => textResult("seen")) });
	const under = await reasoning([answer(text("Before."), asks("look")), answer(text("After."))], [look]);
	say = (said) => under.submit({ session: "main", text: said, queue });
	const one = await under.submit({ session: "main", text: "one", queue });
	await under.runSettled(one.runId!);
	expect(under.calls).toHaveLength(2);
	expect(read(under.calls[1]!.messages)).toEqual([
		...["user: one", "assistant: Before. look", "toolResult: seen", "user: two"],
	]);
	expect(saidOf(under.look.turn(one.runId!))).toEqual([
		...["user: one", "assistant: Before.", "user: two", "assistant: After."],
	]);
	expect(verified(await under.frames(one.runId!))).toBeUndefined();
});

test("a message that comes during the last model call has a separate run", async () => {
	const { model, calls } = modelOf([]);
	const said = Promise.withResolvers<void>();
	const stream: typeof model.stream = async function* (call) {
		calls.push(call);
		yield delta("An answer.");
		if (calls.length === 1) await said.promise;
		yield { type: "done", reason: "stop", message: messageOf([text("An answer.")]) };
	};
	const engine = reasonActEngine(await setupOf({}, { ...model, stream }, []));
	const under = nexRig(() => never as never, { engine, engineFields: engine });
	const one = await under.submit({ session: "main", text: "one", queue });
	await until(() => calls.length === 1, "the model is asked");
	const two = await under.submit({ session: "main", text: "two", queue });
	said.resolve();
	await under.runSettled(one.runId!);
	const disposition = () => under.look.event(two.eventId)!.disposition;
	await until(() => disposition().state === "started", "the follow-up starts");
	const { runId } = disposition() as { runId: string };
	await under.runSettled(runId);
	expect(saidOf(under.look.turn(one.runId!))).toEqual(["user: one", "assistant: An answer."]);
	expect(saidOf(under.look.turn(runId))).toEqual(["user: two", "assistant: An answer."]);
});

test("A5: for all moments of death a continued run has read the joined messages, once and in their place", async () => {
	const path = tempFile();
	let say = async (_: string): Promise<unknown> => undefined;
	const look = toolOf("look", { execute: async () => say("two").then(() => textResult("seen")) });
	const act = toolOf("act");
	const answers = [
		answer(text("Before."), asks("look")),
		answer(text("After."), asks("act")),
		answer(text("The end.")),
	];
	const dead = await reasoning(answers, [look, act], { path, connection: "none" });
	const deaths = copiesAtCommits(dead, path);
	let joined = "";
	say = async (said) => {
		joined = (await dead.submit({ session: "main", text: said, queue })).eventId;
	};
	const one = await dead.submit({ session: "main", text: "one", queue });
	await dead.runSettled(one.runId!);

	const lives: string[][] = [];
	for (const copy of deaths) {
		const file = tempFile();
		copyFileSync(copy, file);
		const next = await reasoning([answer(text("Gone on."))], [look, act], { path: file, connection: "none" });
		const isCut = next.look.turn(one.runId!) === undefined;
		// A message that still waits is answered by a separate run.
		if (!isCut || next.look.event(joined)?.disposition.state !== "injected") continue;
		await next.nex.recover();
		const { runId } = await next.nex.continue(one.runId!);
		await next.runSettled(runId);
		lives.push(read(next.calls[0]!.messages));
	}
	const before = ["user: one", "assistant: Before. look", "toolResult: seen", "user: two"];
	expect(lives.length).toBeGreaterThan(2);
	expect(lives[0]).toEqual(before);
	for (const life of lives) {
		expect(life.slice(0, 4)).toEqual(before);
		expect(life.filter((words) => words === "user: two")).toHaveLength(1);
	}
	expect(lives.at(-1)).toContain("toolResult: act done");
});
