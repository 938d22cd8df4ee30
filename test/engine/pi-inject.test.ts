/** Both pi engines take messages that come during a run before their next model call, and only then. */

import { fauxAssistantMessage, fauxText, fauxToolCall, type TranscriptContext } from "@earendil-works/pi-ai";
import { describe, expect, test } from "vitest";
import { EventQueue } from "../../packages/daemon/src/engine/kit/kit.ts";
import type { EngineEvent, EngineMessage } from "../../packages/protocol/src/engine.ts";
import { oneByOne } from "./demo-play.ts";
import { ask, PI_ENGINES, said, tool } from "./pi-kit.ts";

const call = () =>
	fauxAssistantMessage([fauxText("Looking."), fauxToolCall("look", {}, { id: "c1" })], { stopReason: "toolUse" });

const usersOf = ({ messages }: TranscriptContext) =>
	messages.flatMap((message) => {
		if (message.role !== "user") return [];
		const { content } = message;
		return typeof content === "string" ? content : content.map((part) => (part.type === "text" ? part.text : ""));
	});

const lookingTwice = (contexts: string[][]) => {
	const note = (context: TranscriptContext) => {
		contexts.push(usersOf(context));
		return contexts.length === 1 ? call() : fauxAssistantMessage("Seen.");
	};
	return [note, note];
};

describe.each(PI_ENGINES)("A26: %s", (_, makeEngine) => {
	const make = async (contexts: string[][]) =>
		(await makeEngine(lookingTwice(contexts), { tools: [tool("look", async () => said("a view"))] })).engine;

	test("hands them to the model behind the tool's answer, once all that it said before was taken", async () => {
		const contexts: string[][] = [];
		const engine = await make(contexts);
		const events: EngineEvent[] = [];
		const seenAtTake: string[] = [];
		let waiting: EngineMessage[] = [{ role: "user", text: "and hurry" }];
		const take = async () => {
			seenAtTake.push(events.map((event) => (event.type === "tool" ? event.status : event.type)).join(" "));
			const taken = waiting;
			waiting = [];
			return taken;
		};
		const context = { signal: new AbortController().signal, inbox: { take } };
		for await (const event of oneByOne(engine.run(ask("look around"), context))) events.push(event);
		expect(engine.injects).toBe(true);
		expect(contexts).toEqual([["look around"], ["look around", "and hurry"]]);
		// Only before the second call: none followed that.
		expect(seenAtTake).toHaveLength(1);
		expect(seenAtTake[0]).toMatch(/text.* started.* completed/);
	});

	test("fails the run when they cannot be taken", async () => {
		const engine = await make([]);
		const take = () => Promise.reject(new Error("the store is gone"));
		const reading = async () => {
			const context = { signal: new AbortController().signal, inbox: { take } };
			for await (const __ of oneByOne(engine.run(ask("look around"), context))) void __;
		};
		await expect(reading()).rejects.toThrow("the store is gone");
	});
});

describe("the queue between agent and reader", () => {
	test("is idle once the reader has taken everything and asks again, or has gone", async () => {
		const queue = new EventQueue();
		queue.push({ type: "text", delta: "a" });
		let isIdle = false;
		const idle = queue.idle().then(() => {
			isIdle = true;
		});
		await queue.next();
		await Promise.resolve();
		expect(isIdle).toBe(false);
		const next = queue.next();
		await idle;
		await queue.idle();
		queue.close();
		await next;
		await queue.idle();
	});
});
