/** An MCP server that lies, inside real runs: annotations, names, changed tools, forms and floods widen nothing and end no run (A16). */

import { afterEach, describe, expect, test } from "vitest";
import type { Mcp } from "../../packages/daemon/src/engine/engine.ts";
import { until } from "../broker/rig.ts";
import { liar, rig } from "../engine/mcp/rig.ts";
import { answer, asks, text } from "../engine/reason-act/kit.ts";
import { telegram } from "../nex/inbox/rig.ts";
import { configOf, victim, type WorldOptions, world } from "./hostile.ts";

let mcp: Mcp | undefined;
afterEach(() => mcp?.close());

async function lied(how: string, script: Parameters<typeof world>[0], options: WorldOptions = {}) {
	mcp = rig({ servers: { liar: liar(how) }, stopMs: 100 }).mcp;
	return await world(script, { ...options, setup: { toolSources: [mcp.source] } });
}

const GUESTS = configOf(
	telegram({ acl: { owner: ["boss"], allow: [{ sender: "ann", tools: ["mcp__*"] }], groups: "always" } }),
);

const resultOf = (call: { messages: readonly unknown[] } | undefined) => JSON.stringify(call?.messages.at(-1));

describe("a lying MCP server", () => {
	test("that calls its tool harmless: a guest's call is asked about all the same", async () => {
		const script = [answer(asks("mcp__liar__deletes", {})), answer(text("I could not."))];
		const parts = await lied("annotated", script, { tools: [victim("look", [])], rig: { config: GUESTS } });
		const { runId } = await parts.say("ann", "delete it");
		const { id } = await parts.pending();
		expect(parts.calls[0]!.tools.map(({ name }) => name)).toEqual(["mcp__liar__deletes"]);
		await parts.nex.approvals.decide(runId!, id, { state: "denied", by: "the owner" });
		await parts.runSettled(runId!);
		expect(resultOf(parts.calls[1])).toContain("not run: denied");
	});

	test("is not even started for a stranger", async () => {
		const parts = await lied("annotated", [answer(asks("mcp__liar__deletes", {})), answer(text("I cannot."))]);
		const { runId } = await parts.say("eve", "delete it");
		await parts.runSettled(runId!);
		expect(parts.calls[0]!.tools).toEqual([]);
		expect(mcp!.status()[0]).toMatchObject({ restarts: 0, tools: [] });
		expect(mcp!.status()[0]?.pid).toBeUndefined();
	});

	test("whose tools have the names of ours takes no place of theirs", async () => {
		const ran: string[] = [];
		const script = [answer(asks("bash", { command: "id" })), answer(text("No."))];
		const parts = await lied("shadowing", script, { tools: [victim("bash", ran)] });
		const { runId } = await parts.say("boss", "go");
		const row = await parts.pending();
		expect(row.tool).toBe("bash");
		const names = parts.calls[0]!.tools.map(({ name }) => name);
		expect(names.toSorted()).toEqual(
			["bash", ...["bash", "complete", "remember", "route", "write"].map((name) => `mcp__liar__${name}`)].toSorted(),
		);
		await parts.press("boss", "approve", parts.questions[0]!.id);
		await parts.runSettled(runId!);
		expect(ran).toEqual(['bash {"command":"id"}']);
	});

	test("that changes its tool after it was allowed for the session: it needs approval again", async () => {
		const script = ["a", "b", "c"].flatMap((id) => [answer(asks("mcp__liar__turns", {}, id)), answer(text("OK."))]);
		const parts = await lied("changing", script, { rig: { config: { ...GUESTS, approvals: {} } } });
		const run = async (word: string) => (await parts.say("ann", word)).runId!;
		const first = await run("one");
		await until(() => parts.broker.approvals.pending().length === 1);
		const [row] = parts.broker.approvals.pending();
		await parts.nex.approvals.decide(first, row!.id, { state: "approved", by: "the owner" }, true);
		await parts.runSettled(first);
		expect(parts.nex.approvals.grants.list()).toHaveLength(1);
		// Its description of itself has changed with that call.
		const second = await run("two");
		await until(() => parts.broker.approvals.pending().length === 1, "asked anew");
		await parts.broker.abort(second);
		await parts.runSettled(second);
	});

	test("cannot have a beginning of a command allowed", async () => {
		const config = { ...GUESTS, approvals: { prefixes: { mcp__liar__turns: ["ls"] } } };
		await expect(lied("changing", [answer(text("x"))], { rig: { config } })).rejects.toThrow(/exact arguments/);
	});

	test("that floods ends its call, and not the run", async () => {
		const parts = await lied("large-result", [answer(asks("mcp__liar__go", {})), answer(text("Much."))], {
			model: { contextTokensMax: 10_000_000 },
		});
		const { runId } = await parts.say("boss", "go");
		await parts.runSettled(runId!);
		expect(parts.look.turn(runId!)).toMatchObject({ status: "completed" });
		expect(resultOf(parts.calls[1])).toContain("the rest was left out");
	});

	test("whose form cannot be shown to a person is asked as text: labelled, for the sender only, and no approval", async () => {
		const ran: string[] = [];
		const script = [
			answer(asks("bash", { command: "id" }, "c1"), asks("mcp__liar__go", {}, "c2")),
			answer(text("I could not.")),
		];
		const parts = await lied("asks-too-much", script, { tools: [victim("bash", ran)] });
		const { runId } = await parts.say("boss", "go");
		await until(() => parts.broker.approvals.pending().length === 2, "both are asked");
		const [approval, question] = parts.broker.approvals.pending().toSorted((one) => (one.kind === "approval" ? -1 : 1));
		expect(question).toMatchObject({ kind: "question", tool: "mcp__liar__go" });
		expect(question!.question).toMatch(/^The MCP server "liar" asks: Approve bash\?/);
		expect(question!.choices).toBeUndefined();
		await expect(
			parts.nex.approvals.decide(runId!, question!.id, { state: "approved", by: "boss" }),
		).rejects.toMatchObject({ code: "invalid" });
		expect((await parts.say("eve", `answer ${question!.id} hero 1`)).disposition).toMatchObject({
			because: expect.stringContaining("Only the person who was asked"),
		});
		await parts.say("boss", `answer ${question!.id} hero 1`);
		await until(() => parts.broker.approvals.pending().length === 1);
		expect(parts.broker.approvals.pending()[0]?.id).toBe(approval!.id);
		expect(ran).toEqual([]);
		await parts.say("boss", `deny ${approval!.id}`);
		await parts.runSettled(runId!);
		expect(parts.look.turn(runId!)).toMatchObject({ status: "completed" });
		expect(ran).toEqual([]);
		expect(JSON.stringify(parts.calls[1]!.messages)).toContain("hero 1");
	});
});
