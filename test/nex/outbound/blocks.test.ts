/** The block pipeline: its four rules, and what a person sees of a channel that cannot stream. */

import { describe, expect, it } from "vitest";
import { blocksOf } from "../../../packages/daemon/src/nex/delivery/blocks/block-machine.ts";
import {
	type BlockInput,
	type BlockRules,
	beginBlocks,
	type DeliveryBlock,
	stepBlocks,
} from "../../../packages/daemon/src/nex/delivery/blocks/block-step.ts";
import { platform as imessage } from "../../../packages/platforms/src/imessage/imessage.ts";
import { platform as sms } from "../../../packages/platforms/src/sms/sms.ts";
import { platform as whatsapp } from "../../../packages/platforms/src/whatsapp/whatsapp.ts";
import { beginRun, createRig, finishedRun, type Rig, until } from "./rig.ts";

let rig: Rig;

const rules: BlockRules = { minChars: 20, maxChars: 60, idleMs: 1000 };

/** The blocks of these texts, each at the moment it is sent; a number is a wait before the next text. */
function said(script: readonly (string | number)[], config = rules) {
	let state = beginBlocks(0);
	let wakeAt: number | undefined;
	let now = 0;
	const blocks: (DeliveryBlock & { at: number })[] = [];
	const take = (input: Parameters<typeof stepBlocks>[1]) => {
		const step = stepBlocks(state, input, now, config);
		state = step.state;
		wakeAt = step.wakeAt;
		blocks.push(...step.blocks.map((block) => ({ ...block, at: now })));
	};
	for (const step of script) {
		if (typeof step === "string") {
			take({ type: "token", text: step });
			continue;
		}
		const until = now + step;
		while (wakeAt !== undefined && wakeAt <= until) {
			now = wakeAt;
			take({ type: "tick" });
		}
		now = until;
	}
	take({ type: "end" });
	return blocks;
}

/** The blocks of inputs that come at once. */
function stepped(inputs: readonly BlockInput[], config = rules): DeliveryBlock[] {
	let state = beginBlocks(0);
	return inputs.flatMap((input) => {
		const step = stepBlocks(state, input, 0, config);
		({ state } = step);
		return step.blocks;
	});
}

const timed = (blocks: ReturnType<typeof said>) => blocks.map(({ text, at }) => `${at}: ${text}`);
const texts = (blocks: readonly DeliveryBlock[]) => blocks.map(({ text }) => text);

describe("the figures", () => {
	const other = { ...whatsapp.info, channel: "other", limits: { textMax: 4096, unit: "utf16" as const } };
	const { blocks: _, ...plain } = other;

	it.each([
		["default", plain, { minChars: 800, maxChars: 1200, idleMs: 1000, humanDelayMs: { min: 800, max: 2500 } }],
		[
			"imessage",
			imessage.info,
			{ minChars: 600, maxChars: 1000, idleMs: 1000, humanDelayMs: { min: 1000, max: 3000 } },
		],
		["whatsapp", whatsapp.info, { minChars: 600, maxChars: 1000, idleMs: 1000, humanDelayMs: { min: 800, max: 2500 } }],
		["sms", sms.info, { minChars: 140, maxChars: 160, idleMs: 1000, humanDelayMs: { min: 500, max: 1500 } }],
	])("%s", (_name, info, figures) => {
		expect(blocksOf(info)).toEqual(figures);
	});

	it.each(["imessage", "whatsapp", "sms"] as const)("an adapter of others for %s has the same", (name) => {
		const bundled = { imessage, whatsapp, sms }[name].info;
		expect(blocksOf({ ...plain, channel: name })).toEqual(blocksOf(bundled));
		expect(blocksOf(plain, {}, name)).toEqual(blocksOf(bundled));
		expect(blocksOf({ ...plain, channel: name, blocks: { minChars: 7 } })).toMatchObject({ minChars: 7 });
	});

	it("a channel's config is stronger; no block is longer than a message", () => {
		expect(blocksOf(sms.info, { idleMs: 5, humanDelayMs: null })).toEqual({
			minChars: 140,
			maxChars: 160,
			idleMs: 5,
			humanDelayMs: undefined,
		});
		expect(blocksOf(plain, { maxChars: 100_000 })).toMatchObject({ minChars: 800, maxChars: 4096 });
		expect(blocksOf(plain, { maxChars: 500 })).toMatchObject({ minChars: 500, maxChars: 500 });
	});

	const paragraph = (chars: number) =>
		"Some words. "
			.repeat(chars)
			.slice(0, chars - 1)
			.padEnd(chars, "x");

	it.each([
		["default", plain],
		["imessage", imessage.info],
		["whatsapp", whatsapp.info],
		["sms", sms.info],
	])("%s: each rule at its figure, and not one character before", (_name, info) => {
		const config = blocksOf(info);
		const first = (text: string) =>
			said([text, config.idleMs - 1, "Z"], config).map((block) => [block.text.length, block.at]);
		const { minChars, maxChars, idleMs } = config;
		const end = idleMs - 1;
		expect(first(`${paragraph(minChars)}\n\n`)).toEqual([
			[minChars, 0],
			[1, end],
		]);
		expect(first(`${paragraph(minChars - 1)}\n\n`)).toEqual([[minChars + 2, end]]);
		expect(first(paragraph(maxChars - 1))).toEqual([[maxChars, end]]);
		const [[length, when]] = first(paragraph(maxChars + 1)) as [[number, number]];
		expect(when).toBe(0);
		expect(length).toBeGreaterThanOrEqual(minChars);
		expect(length).toBeLessThanOrEqual(maxChars);
		const spoken = (text: string, waitMs: number) =>
			said([text, waitMs, "Z"], config).map(({ text: block, at: when }) => `${block} ${when}`);
		expect(spoken("idle", idleMs)).toEqual([`idle ${idleMs}`, `Z ${idleMs}`]);
		expect(spoken("busy", idleMs - 1)).toEqual([`busyZ ${idleMs - 1}`]);
	});
});

describe("the four rules", () => {
	it("2: an empty line after at least minChars, not before", () => {
		const blocks = said(["short\n\n", 1, "and long enough now\n\n", 1, "tail"]);
		expect(timed(blocks)).toEqual(["1: short\n\nand long enough now", "2: tail"]);
	});

	it("1: a cut leaves at least minChars, however good an earlier boundary is", () => {
		const source = `${"a ".repeat(7)}\n\n${"b ".repeat(30)}`;
		expect(said([source])[0]!.to).toBeGreaterThanOrEqual(20);
		const later = `${"a ".repeat(20)}\n\n${"b ".repeat(30)}`;
		expect(said([later], { ...rules, minChars: 50 })[0]!.to).toBeGreaterThanOrEqual(50);
	});

	it.each([
		["\n\n", "\n"],
		["\r\n\r\n", "\r\n"],
		["\n \t\n", "\n"],
	])("2: %j is an empty line, in one token or in several", (gap, line) => {
		const source = `A first line${line}and a second one${gap}tail`;
		for (const tokens of [[source], source.split("")]) {
			const script = tokens.flatMap((text, n) => (n === tokens.length - 4 ? [5, text] : [text]));
			expect(texts(said(script))).toEqual([`A first line${line}and a second one`, "tail"]);
		}
	});

	it("2: the first empty line behind minChars counts, though one in a code block comes later", () => {
		expect(texts(said(["A paragraph of some length.\n\n```\na\n\n"]))).toEqual([
			"A paragraph of some length.",
			"```\na\n\n```",
		]);
	});

	it("2: an empty line in a code block ends no paragraph", () => {
		const blocks = said(["Look at this:\n\n```\na();\n\n", 1, "b();\n```\n\n", 1, "tail"]);
		expect(timed(blocks)).toEqual(["1: Look at this:\n\n```\na();\n\nb();\n```", "2: tail"]);
	});

	it.each([
		["```", ["```js\n1;\n```\nafter"]],
		["```j", ["```js\n1;\n```\nafter"]],
		["```js\n1;\n``", ["```js\n1;\n``\n```", "after"]],
		["```js\n1;\n```", ["```js\n1;\n```", "after"]],
	])("3: idle inside a fence's marks tears no fence: %j", (head, expected) => {
		const source = "```js\n1;\n```\nafter";
		const blocks = said([head, 2000, source.slice(head.length)]);
		expect(texts(blocks)).toEqual(expected);
		expect(blocks.at(-1)?.to).toBe(source.length);
	});

	it("3: idle sends what is left behind a block, too", () => {
		const blocks = said(["A paragraph of some length.\n\nand a tail", 5000, "Z"]);
		expect(timed(blocks)).toEqual(["0: A paragraph of some length.", "1000: and a tail", "5000: Z"]);
	});

	it("4: the next assistant message is separate markdown, without the notes of the last one", () => {
		const inputs: BlockInput[] = [
			...[{ type: "token", text: "```\nnever closed" } as const, { type: "end" } as const],
			...[{ type: "note", text: "[read...]" } as const, { type: "end" } as const],
			...[{ type: "token", text: "plain" } as const, { type: "end" } as const],
		];
		expect(texts(stepped(inputs))).toEqual(["```\nnever closed\n```", "plain"]);
	});

	it("notes leave at least half of a block to the text, the newest stay, and both fit together", () => {
		const notes = [1, 2, 3, 4].map((n) => ({ type: "note" as const, text: `[tool number ${n}]` }));
		const blocks = stepped([...notes, { type: "token", text: "word ".repeat(30) }, { type: "end" }]);
		expect(blocks[0]!.text).toMatch(/^\[tool number 4\]\n\nword/);
		for (const { text } of blocks) expect(text.length).toBeLessThanOrEqual(rules.maxChars);
	});

	it.each([
		["empty lines", "\n"],
		["empty lines after a word", "word\n", "\n"],
		["empty lines in a code block", "```\na\n", "\n"],
		["one word", "x"],
		["paragraphs", "Some words of a paragraph.\n\n"],
		["nested items", "- item\n  - item\n    - item\n"],
	])("takes time in proportion to a long text: %s", (_name, head, more = head) => {
		const config = { minChars: 800, maxChars: 1200, idleMs: 1000 };
		const source = head + more.repeat(Math.ceil(150_000 / more.length));
		const tokens = Array.from({ length: Math.ceil(source.length / 5) }, (_, n) => source.slice(n * 5, n * 5 + 5));
		const began = process.threadCpuUsage();
		const blocks = stepped([...tokens.map((text) => ({ type: "token" as const, text })), { type: "end" }], config);
		const { user, system } = process.threadCpuUsage(began);
		// A hundred times the work that it is, without the wait for its turn; what grows with the square takes minutes.
		expect((user + system) / 1000).toBeLessThan(15_000);
		expect(source.slice(blocks.at(-1)?.to ?? 0).trim()).toBe("");
	});
});

describe("a channel without streaming", () => {
	const bare = (text: string) => text.replaceAll(/\s+/g, "");

	it("gets blocks while the answer is written, and a new message for each assistant message", async () => {
		rig = createRig("blocks");
		const { run, id } = await rig.begin();
		run.text("Let me look at that.");
		await until(() => rig.visible("c1").length === 1, "idle flushed what was there");
		run.text(" Found it.");
		run.next();
		run.text("Second.");
		await run.end();
		expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete", mode: "blocks", cursor: 37 });
		expect(rig.visible("c1").map((text) => text.trim())).toEqual(["Let me look at that.", "Found it.", "Second."]);
	});

	it.each([
		[true, "[read...]\n\nDone."],
		[false, "Done."],
		[undefined, "Done."],
	])("shows tools only when its config asks (%s), and never reasoning or arguments", async (tools, shown) => {
		rig = createRig("blocks", {}, { streaming: tools === undefined ? {} : { tools } });
		const run = await beginRun(rig.bus);
		run.say({ type: "reasoning", text: "secret" });
		run.say({ type: "tool_status", toolName: "read", toolCallId: "1", status: "started", args: "secret" });
		run.say({ type: "tool_status", toolName: "read", toolCallId: "1", status: "completed", result: "secret" });
		run.text("Done.");
		await run.end();
		await rig.send({ runId: run.runId });
		expect(rig.visible("c1")).toEqual([shown]);
	});

	it("a tool's line names the tool, and cannot contain markdown", async () => {
		rig = createRig("blocks", {}, { streaming: { tools: true } });
		const run = await beginRun(rig.bus);
		const summary = "Reading\n```package.json";
		run.say({ type: "tool_status", toolName: "read", toolCallId: "1", status: "started", summary });
		run.text("2.1.0.");
		await run.end();
		await rig.send({ runId: run.runId });
		expect(rig.visible("c1")).toEqual(["[Reading package.json...]\n\n2.1.0."]);
	});

	it("I7: after a daemon crash continues after the last block, inside the same code fence", async () => {
		rig = createRig("blocks");
		const { run, id } = await rig.begin();
		run.text("```js\nconst a = 1;\nconst b = 2;\n");
		await until(() => rig.deliveries.get(id)!.messages[0]?.state === "sent", "the first block is on record");
		await rig.restart();
		await run.endIn(rig.bus, "const c = 3;\n```\nThat is all.", true);
		await rig.outbound.start();
		expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete" });
		const [first, second] = rig.visible("c1");
		expect(first).toMatch(/^```js\nconst a = 1;\nconst b = 2;\n```$/);
		expect(second).toMatch(/^```js\nconst c = 3;\n```\nThat is all\.$/);
	});

	it("the channel's error text is sent once for a failed run", async () => {
		rig = createRig("blocks", {}, { errorText: "Sorry, that failed." });
		const run = await beginRun(rig.bus);
		run.text("Half");
		await run.fail("broken");
		await rig.send({ runId: run.runId });
		expect(rig.visible("c1")).toEqual(["Half", "Sorry, that failed."]);
	});

	it("human delay: from the second block on", async () => {
		rig = createRig("blocks", {}, { blocks: { humanDelayMs: { min: 150, max: 160 } } });
		const source = "one two three four five six seven eight nine ten eleven twelve thirteen";
		const runId = await finishedRun(rig.bus, [source]);
		await rig.send({ runId });
		const times = rig
			.calls()
			.filter(({ op }) => op === "create")
			.map(({ at }) => at);
		expect(times.length).toBe(2);
		expect(times[1]! - times[0]!).toBeGreaterThanOrEqual(140);
		expect(bare(rig.visible("c1").join(""))).toBe(bare(source));
	});
});
