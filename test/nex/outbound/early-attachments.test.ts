/** Messages that begin before their text (a tool, a placeholder), and attachments: in order, each once (I7). */

import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import type { StreamEvent } from "../../../packages/protocol/src/protocol.ts";
import { beginRun, type Call, type Rig, rigForTest, type TestRun, until } from "./rig.ts";

let rig: Rig;

const ADAPTER = fileURLToPath(new URL("./adapters/early-platform.ts", import.meta.url));
const PNG = Buffer.from("a picture").toString("base64");
const THOUGHT = "> *Thinking*  \n> Hm.";
const account = { channel: "early", id: "main" };

const createEarly = (streaming: { placeholder?: string } = {}, settings: Record<string, string> = {}) =>
	rigForTest((channel) => ({
		early: {
			...channel("full", settings, { streaming: { reasoning: true, ...streaming }, errorText: "Sorry." }),
			command: [process.execPath, "--conditions=nexus-source", ADAPTER],
		},
	}));

/** The visible content of a chat, in order. */
function seen(to: string, calls: readonly Call[] = rig.calls()): string[] {
	const shown = new Map<string, string>();
	for (const { op, id, text, to: chat } of calls) {
		if (chat !== to) continue;
		if (op === "remove") shown.delete(id!);
		else if (id !== undefined) shown.set(id, text!.trim());
	}
	return [...shown.values()];
}

const tool: StreamEvent = { type: "tool_status", toolName: "Draw", toolCallId: "t", status: "started" };
const thought: StreamEvent = { type: "reasoning", text: "Hm." };

/** Answers in which a message begins before an attachment. */
const ANSWERS: Record<string, { say(run: TestRun): void; shows: string[]; cursor: number }> = {
	picture: {
		say(run) {
			run.say(tool);
			run.part("image", "image/png", PNG);
			run.text("Here it is.");
		},
		shows: ["<image.png>", "Here it is."],
		cursor: 11,
	},
	blank: {
		say(run) {
			run.say(tool);
			run.text("\n\n");
			run.part("image", "image/png", PNG);
			run.text("Here it is.");
		},
		shows: ["<image.png>", "Here it is."],
		cursor: 13,
	},
	thought: {
		say(run) {
			run.say(tool);
			run.say(thought);
			run.text("Here it is.");
		},
		shows: [THOUGHT, "Here it is."],
		cursor: 11,
	},
	later: {
		say(run) {
			run.text("One.");
			run.next();
			run.say(tool);
			run.part("image", "image/png", PNG);
			run.say(tool);
			run.part("image", "image/png", PNG);
			run.text("Two.");
		},
		shows: ["One.", "<image.png>", "<image.png>", "Two."],
		cursor: 8,
	},
};

const names = Object.keys(ANSWERS);

/** Delivers an answer that has ended, so that all its lines are written at once. */
async function begin(name: string, to: string): Promise<string> {
	const run = await beginRun(rig.bus, to);
	ANSWERS[name]!.say(run);
	await run.end();
	return (await rig.outbound.deliver({ runId: run.runId, account, target: { to } })).id;
}

async function expectWhole(name: string, to: string, id: string): Promise<void> {
	const { shows, cursor } = ANSWERS[name]!;
	const done = await rig.outbound.settled(id);
	expect([to, done.state, done.error, seen(to)]).toEqual([to, "complete", undefined, shows]);
	expect(done.cursor).toBe(cursor);
	expect(done.messages.every(({ state }) => state === "sent")).toBe(true);
	expect(done.messages).toHaveLength(shows.length);
}

it.each(["", "One moment…"])(
	"I7: answers that have ended: in order, whole, once (placeholder %j)",
	async (placeholder) => {
		rig = createEarly({ placeholder });
		const ids = await Promise.all(names.map((name) => begin(name, name)));
		for (const [n, name] of names.entries()) await expectWhole(name, name, ids[n]!);
	},
);

it.each(["", "One moment…"])(
	"I7: live: a message that began early comes before the attachment (placeholder %j)",
	async (placeholder) => {
		rig = createEarly({ placeholder });
		const run = await beginRun(rig.bus);
		const to = "live";
		const { id } = await rig.outbound.deliver({ runId: run.runId, account, target: { to } });
		if (placeholder !== "") await until(() => seen(to)[0] === placeholder, "the placeholder");
		run.say(tool);
		await until(() => seen(to)[0]?.includes("Draw") === true, "the tool");
		run.text("\n\n");
		run.part("image", "image/png", PNG);
		await until(() => seen(to).join() === "<image.png>", "the picture, alone");
		run.say(tool);
		await until(() => seen(to)[1]?.includes("Draw") === true, "the tool below it");
		run.say(thought);
		run.text("Done.");
		await run.end();
		expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete", cursor: 7 });
		expect(seen(to)).toEqual(["<image.png>", THOUGHT, "Done."]);
	},
);

it("I7: adapters killed around every call: in order, whole, once", { timeout: 300_000 }, async () => {
	rig = createEarly({ placeholder: "One moment…" });
	const chats = names.flatMap((name) => ["!1", "!2", "!3", "!4", "?2"].map((death) => `${name}${death}`));
	const ids = await Promise.all(chats.map((to) => begin(to.split(/[!?]/)[0]!, to)));
	for (const [n, to] of chats.entries()) await expectWhole(to.split(/[!?]/)[0]!, to, ids[n]!);
	expect(rig.calls().filter(({ op }) => op === "death").length).toBeGreaterThan(chats.length / 2);
});

it("I7: the daemon killed again and again: in order, whole, once", { timeout: 300_000 }, async () => {
	rig = createEarly();
	const ids = await Promise.all(names.map((name) => begin(name, name)));
	for (let n = 1; n <= 6; n++) {
		await until(() => rig.calls().length >= n, `${n} calls`);
		await rig.restart();
		await rig.outbound.start();
	}
	for (const [n, name] of names.entries()) await expectWhole(name, name, ids[n]!);
});

it("the error text is said although a message that began early can no longer be edited", async () => {
	rig = createEarly({}, { refuse_edits: "yes" });
	const run = await beginRun(rig.bus);
	const { id } = await rig.outbound.deliver({ runId: run.runId, account, target: { to: "c" } });
	run.say(tool);
	await until(() => seen("c").length === 1, "the tool");
	run.say({ ...tool, status: "failed" });
	await run.fail("broken");
	expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete" });
	expect(seen("c")).toEqual(["⏳ `Draw`", "Sorry."]);
});
