/** Attachments: reasoning if enabled, images, files and cards, in every mode, each once (I7, I8). */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { contentOf } from "../../../packages/daemon/src/nex/delivery/attachments/attachment.ts";
import { platform as whatsapp } from "../../../packages/platforms/src/whatsapp/whatsapp.ts";
import { beginRun, createRig, deathsOf, FAST, type Flavour, type Rig, rigForTest, type TestRun, until } from "./rig.ts";

let rig: Rig;

const target = { to: "c1" };
const PNG = Buffer.from("a picture").toString("base64");
const CARD = JSON.stringify({
	title: "Kettle",
	price: "€ 34.00",
	url: "https://shop.example/1",
	description: "Boils.",
});

/** The visible content of a chat: texts, and files by name. */
const seen = (of: Rig): string[] => {
	const shown = new Map<string, string>();
	for (const { op, id, text, files, to } of of.calls()) {
		if (to !== "c1" || (op !== "create" && op !== "edit")) continue;
		const names = ((files ?? []) as string[]).map((file) => `<${file.split(" ")[0]}>`).join("");
		shown.set(id!, `${text}${names}`);
	}
	return [...shown.values()].map((each) => each.trim());
};

/** Thinks, says, shows a picture and a card, and ends. */
async function speak(run: TestRun): Promise<void> {
	run.say({ type: "reasoning", text: "Let me " });
	run.say({ type: "reasoning", text: "see.\nYes." });
	run.text("Here is a picture: ");
	run.part("image", "image/png", PNG);
	run.text("And a card.");
	run.part("card", "application/json", CARD);
	run.next();
	run.say({ type: "reasoning", text: "Done?" });
	run.text("That is all.");
	await run.end();
}

const THOUGHT = "> *Thinking*  \n> Let me see.\n> Yes.";
const CARD_TEXT = "**[Kettle](<https://shop.example/1>)** - € 34.00  \nBoils.";
const WITH_ALL = [
	THOUGHT,
	"Here is a picture:",
	"<image-6.png>",
	"And a card.",
	CARD_TEXT,
	"> *Thinking*  \n> Done?",
	"That is all.",
];
const WITHOUT_REASONING = WITH_ALL.filter((text) => !text.includes("Thinking"));

const deliver = async (of: Rig, flavour: Flavour, runId: string) => {
	const { id } = await of.outbound.deliver({ runId, account: { channel: flavour, id: "main" }, target });
	return of.outbound.settled(id);
};

const masked = (texts: readonly string[]) => texts.map((text) => text.replace(/image-\d+/, "image-6"));

describe("a part in the middle of code", () => {
	it.each(["```", "~~~~"])("waits for the end of the text rather than tear the block (%s)", async (mark) => {
		rig = createRig("drafts");
		const run = await beginRun(rig.bus);
		const done = deliver(rig, "drafts", run.runId);
		run.text(`Look:\n${mark}js\nlet a = 1;\n`);
		await until(() => seen(rig).length === 1, "the code has begun");
		run.part("image", "image/png", PNG);
		run.text(`let b = 2;\n${mark}\n`);
		run.text("Then more.");
		await run.end();
		expect(await done).toMatchObject({ state: "complete" });
		expect(masked(seen(rig))).toEqual([
			`Look:\n${mark}js\nlet a = 1;\nlet b = 2;\n${mark}\nThen more.`,
			"<image-6.png>",
		]);
	});
});

describe.each(["files", "drafts"] as const)("parts and reasoning (%s)", (flavour) => {
	it("I8: parts are sent where they stand; reasoning is not", async () => {
		rig = createRig(flavour);
		const run = await beginRun(rig.bus);
		await speak(run);
		expect(await deliver(rig, flavour, run.runId)).toMatchObject({ state: "complete", cursor: 42 });
		expect(masked(seen(rig))).toEqual(WITHOUT_REASONING);
		const { files } = rig.calls().find(({ files }) => files !== undefined)!;
		expect(files).toEqual([expect.stringMatching(new RegExp(`^image-\\d+\\.png image/png ${PNG}$`))]);
	});

	it("I8: reasoning too, quoted, when the channel asks", async () => {
		rig = createRig(flavour, {}, { streaming: { reasoning: true } });
		const run = await beginRun(rig.bus);
		await speak(run);
		const done = await deliver(rig, flavour, run.runId);
		expect(done).toMatchObject({ state: "complete", cursor: 42 });
		expect(masked(seen(rig))).toEqual(WITH_ALL);
		// The lines as well would show it twice.
		expect(rig.calls().filter(({ op }) => op === "reasoning")).toEqual([]);
		for (const { from, to, nonce } of done.messages) expect(from === to).toBe(nonce.startsWith("x"));
	});

	it("I7: a file with an unknown outcome does not delay the text, and does not count as delivered", async () => {
		rig = createRig(flavour, { loseFiles: "1" });
		const run = await beginRun(rig.bus);
		run.text("Here is a picture: ");
		run.part("image", "image/png", PNG);
		run.text("And more.");
		await run.end();
		expect(await deliver(rig, flavour, run.runId)).toMatchObject({
			state: "unknown",
			error: expect.stringContaining("may or may not"),
		});
		expect(seen(rig)).toEqual(["Here is a picture:", "And more."]);
	});

	it("no parts when the channel's config says so", async () => {
		rig = createRig(flavour, {}, { streaming: { parts: false } });
		const run = await beginRun(rig.bus);
		await speak(run);
		await deliver(rig, flavour, run.runId);
		expect(seen(rig).join(" ")).not.toMatch(/image|Kettle|Thinking/);
	});

	it("while the run is live, each comes as it is said", async () => {
		rig = createRig(flavour, {}, { streaming: { reasoning: true } });
		const run = await beginRun(rig.bus);
		const done = deliver(rig, flavour, run.runId);
		run.say({ type: "reasoning", text: "Hm." });
		run.text("One.");
		await until(() => seen(rig).length === 2, "the thought and the first text");
		run.part("audio", "audio/wav", PNG);
		await until(() => seen(rig).length === 3, "the sound");
		run.text("Two.");
		await run.end();
		expect(await done).toMatchObject({ state: "complete" });
		expect(seen(rig).map((text) => text.replace(/\d+/, "n"))).toEqual([
			"> *Thinking*  \n> Hm.",
			"One.",
			"<audio-n.wav>",
			"Two.",
		]);
	});

	it("a file that the platform refuses is named instead, and the text continues", async () => {
		rig = createRig(flavour, { refuseFiles: "yes" });
		const run = await beginRun(rig.bus);
		await speak(run);
		expect(await deliver(rig, flavour, run.runId)).toMatchObject({ state: "complete" });
		const named = `[image: image-6.png: refused by ${flavour}]`;
		expect(masked(seen(rig))).toEqual(WITHOUT_REASONING.map((text) => (text.startsWith("<image") ? named : text)));
	});

	it("I7: adapters killed around every call: each once, in order", { timeout: 300_000 }, async () => {
		for (const deaths of fc.sample(deathsOf(6), 6)) {
			const each = createRig(flavour, { deaths }, { streaming: { reasoning: true } });
			try {
				const run = await beginRun(each.bus);
				await speak(run);
				expect(await deliver(each, flavour, run.runId)).toMatchObject({ state: "complete", cursor: 42 });
				expect(masked(seen(each))).toEqual(WITH_ALL);
			} finally {
				await each.close();
			}
		}
	});

	it("I7: the daemon killed again and again: each once, in order", { timeout: 300_000 }, async () => {
		rig = createRig(flavour, {}, { streaming: { reasoning: true } });
		const run = await beginRun(rig.bus);
		await speak(run);
		const account = { channel: flavour, id: "main" };
		const { id } = await rig.outbound.deliver({ runId: run.runId, account, target });
		for (let shown = 1; shown < WITH_ALL.length; shown++) {
			await until(() => seen(rig).length >= shown, `${shown} messages`);
			await rig.restart();
			await rig.outbound.start();
		}
		expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete", cursor: 42 });
		expect(masked(seen(rig))).toEqual(WITH_ALL);
	});
});

describe("mail", () => {
	it("one message with everything: thoughts and cards in its text, files with it; once after a crash", async () => {
		rig = createRig("letters", { hang: "yes" }, { streaming: { reasoning: true } });
		const run = await beginRun(rig.bus);
		await speak(run);
		const account = { channel: "letters", id: "main" };
		const { id } = await rig.outbound.deliver({ runId: run.runId, account, target });
		await until(() => seen(rig).length === 1, "the mail is out, without an answer");
		await rig.restart();
		await rig.outbound.start();
		expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete", cursor: 42 });
		const [text, ...more] = seen(rig);
		expect(more).toEqual([]);
		expect(masked([text!])[0]).toBe(
			`${[THOUGHT, "Here is a picture: And a card.", CARD_TEXT, "> *Thinking*  \n> Done?", "That is all."].join("\n\n")}<image-6.png>`,
		);
	});
});

describe("mail, killed", () => {
	it("I7: adapters killed around every call: one mail, with its file", { timeout: 300_000 }, async () => {
		let restarts = 0;
		for (const deaths of fc.sample(deathsOf(4), 6)) {
			const each = createRig("letters", { deaths });
			try {
				const run = await beginRun(each.bus);
				await speak(run);
				expect(await deliver(each, "letters", run.runId)).toMatchObject({ state: "complete", cursor: 42 });
				expect(masked(seen(each))).toEqual([expect.stringMatching(/all\.<image-6\.png>$/)]);
				restarts += each.outbound.accounts()[0]!.restarts;
			} finally {
				await each.close();
			}
		}
		expect(restarts).toBeGreaterThan(5);
	});
});

describe("adapters that show parts themselves", () => {
	it("get them in the stream, and nothing is sent separately", async () => {
		rig = createRig("full", {}, { streaming: { reasoning: true } });
		const run = await beginRun(rig.bus);
		await speak(run);
		await deliver(rig, "full", run.runId);
		const ops = rig.calls().map(({ op }) => op);
		expect(ops.filter((op) => op === "part").length).toBe(2);
		expect(ops.filter((op) => op === "reasoning").length).toBe(3);
		expect(seen(rig)).toEqual(["Here is a picture: And a card.", "That is all."]);
	});

	it("attachments come after the text for basic adapters that finish no message before the end", async () => {
		rig = rigForTest((channel) => ({ collecting: channel("collecting") }), {
			limits: { ...FAST, attachmentMs: 20 },
		});
		const run = await beginRun(rig.bus);
		await speak(run);
		expect(await deliver(rig, "collecting", run.runId)).toMatchObject({ state: "complete" });
		expect(masked(seen(rig))).toEqual([
			"Here is a picture: And a card.That is all.",
			"[image: image-6.png]",
			CARD_TEXT,
		]);
	});

	it("an adapter that can only stream hears the basic lines and no others", async () => {
		rig = createRig("streamonly", {}, { streaming: { reasoning: true } });
		const run = await beginRun(rig.bus);
		await speak(run);
		expect(await deliver(rig, "streamonly", run.runId)).toMatchObject({ state: "complete" });
		const ops = rig.calls().map(({ op }) => op);
		expect(ops).toContain("reasoning");
		expect(ops).not.toContain("part");
	});
});

describe("what a part becomes", () => {
	const files = { ...whatsapp.info, limits: { ...whatsapp.info.limits, attachmentBytesMax: 1000 } };
	const none = { ...files, supports: ["send" as const] };
	const part = (modality: string, contentType: string, payload: string) => ({
		type: "part" as const,
		modality,
		contentType,
		payload,
	});

	it.each([
		["base64", part("image", "image/png", PNG), "image-7.png"],
		["a data address", part("image", "image/x", `data:image/jpeg;base64,${PNG}`), "image-7.jpg"],
		["an SVG's text", part("image", "image/svg+xml", "<svg/>"), "image-7.svg"],
		["a type that says nothing", part("file", "application/", PNG), "file-7.bin"],
		["JSON with a name", part("file", "application/pdf", JSON.stringify({ name: "a/b.pdf", data: PNG })), "a_b.pdf"],
	])("%s: a file", (_what, given, name) => {
		expect(contentOf(given, 7, files)).toMatchObject({ text: "", attachment: { name } });
		expect(contentOf(given, 7, none)).toEqual({ text: `[${given.modality}: ${name.replace("_", "\\_")}]` });
	});

	it("an address is a link everywhere", () => {
		const link = { text: "[image-7.png](<https://a.example/b.png>)" };
		expect(contentOf(part("image", "image/png", "https://a.example/b.png"), 7, files)).toEqual(link);
		expect(contentOf(part("image", "image/png", "https://a.example/b.png"), 7, none)).toEqual(link);
	});

	it("too large for the platform, or for a line: said so", () => {
		const big = part("audio", "audio/mpeg", Buffer.alloc(2000).toString("base64"));
		expect(contentOf(big, 7, files)).toEqual({ text: "[audio: audio-7.mp3, 0.0 MB: too large to be sent here]" });
		const huge = part("audio", "audio/mpeg", Buffer.alloc(3_000_000).toString("base64"));
		expect(contentOf(huge, 7, whatsapp.info)?.text).toMatch(/3\.0 MB: too large/);
	});

	it("cards and carousels are written out; their words are not markdown", () => {
		const items = [{ title: "a*b*", price: 3 }, { name: "Cup", url: "javascript:alert(1)" }, "nonsense"];
		expect(contentOf(part("carousel", "application/json", JSON.stringify({ items })), 7, files)).toEqual({
			text: "**a\\*b\\*** - 3\n\n**Cup**",
		});
		expect(contentOf(part("card", "application/json", "nonsense"), 7, files)).toEqual({ text: "[card]" });
	});
});
