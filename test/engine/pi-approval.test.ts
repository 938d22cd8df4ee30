import { fauxAssistantMessage, fauxToolCall } from "@earendil-works/pi-ai";
import type { ApprovalOutcome, EngineEvent } from "@nexus-stream/protocol/engine";
import { expect, test } from "vitest";
import { digestOf } from "../../packages/daemon/src/engine/engine.ts";
import { oneByOne } from "./demo-play.ts";
import { ask, fauxEngine, lookingModel, said, shape, tool, toolsOf } from "./pi-kit.ts";

const call = () =>
	fauxAssistantMessage(fauxToolCall("bash", { command: "ls" }, { id: "c1" }), { stopReason: "toolUse" });

async function play(given: Partial<ApprovalOutcome> | undefined, fields: Parameters<typeof ask>[1] = { approval: {} }) {
	const ran: unknown[] = [];
	const bash = tool("bash", async (_id, params) => {
		ran.push(params);
		return said("ok");
	});
	const { response, offered } = lookingModel(call());
	const { engine } = await fauxEngine([response, fauxAssistantMessage("Done.")], { tools: [bash] });
	const events: EngineEvent[] = [];
	const answer = async (id: string): Promise<ApprovalOutcome> => {
		const asked = toolsOf(events).find(({ asking }) => asking?.id === id)!;
		return { id: "K7Q2", state: "approved", digest: digestOf("bash", asked.args), ...given };
	};
	const context = { signal: new AbortController().signal, answer: given && answer };
	for await (const event of oneByOne(engine.run(ask("x", fields), context))) events.push(structuredClone(event));
	return { events, ran, offered, ends: toolsOf(events).at(-1)! };
}

test("A11: bash of the pi engines starts only once a person approved it", async () => {
	const { events, ran } = await play({ by: "Ann" });
	expect(shape(events)).toMatch(/bash:progress bash:started bash:completed message text usage$/);
	expect(toolsOf(events).map(({ asking }) => asking?.state)).toEqual(["pending", "approved", undefined, undefined]);
	expect(ran).toEqual([{ command: "ls" }]);
});

test.each([
	["denied", { state: "denied", by: "Ann", reason: "no" }, /denied by Ann: no/],
	["expired", { state: "expired" }, /no answer in time/],
	["of other arguments", { digest: "another" }, /not those that were approved/],
] as const)("A13: one that is %s never runs, and the model reads why", async (_, given, words) => {
	const { events, ran, ends } = await play(given);
	expect(ran).toEqual([]);
	expect(ends).toMatchObject({ status: "failed", result: expect.stringMatching(words) });
	if ("state" in given) expect(toolsOf(events).map(({ status }) => status)).not.toContain("started");
});

test("without an approver it is refused clearly", async () => {
	const { ran, ends } = await play(undefined);
	expect(ran).toEqual([]);
	expect(ends).toMatchObject({ status: "failed", result: expect.stringMatching(/has no approver/) });
});

test("A10: a sender who may not use bash does not reach it", async () => {
	const { ran, offered } = await play({}, { owner: false, deniedTools: ["bash", "write", "edit", "mcp__*"] });
	expect(ran).toEqual([]);
	expect(offered).toEqual(["time"]);
});
