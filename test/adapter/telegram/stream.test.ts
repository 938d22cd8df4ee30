import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createTelegramFake, type TelegramFake } from "../../../packages/lab/src/telegram/telegram.ts";
import { until } from "../../until.ts";
import { afterWrites, deliver, diesAt, expectPaced, letters, sentences, startAdapter, TIME } from "../process.ts";

let fake: TelegramFake;

beforeEach(async () => {
	fake = await createTelegramFake({ clock: TIME.clock });
});
afterEach(() => fake.close());

test("I7: an answer grows by edits, at least 500 ms apart, and is complete", async () => {
	const tokens = sentences(60, "is here & <complete>");
	const params = { channel: "telegram", settings: fake.settings, target: { to: "42" }, tokens, tokenEveryMs: 25 };
	const delivered = await deliver({ ...params, comes: afterWrites(() => fake.calls.length, [1, 20, 40]) });
	expect(fake.visible("42")).toEqual([tokens.join("").trim()]);
	expectPaced(fake, "editMessageText", delivered, 500);
});

test("I7: an answer full of links continues in further messages before Telegram ignores them", async () => {
	const urls = Array.from({ length: 130 }, (_, index) => `https://example.org/${index}/${"x".repeat(60)}`);
	const tokens = urls.map((url, index) => `- [source ${index}](${url})\n`);
	await deliver({ channel: "telegram", settings: fake.settings, target: { to: "42" }, tokens });
	expect(fake.raw("42").flatMap(({ entities }) => entities.flatMap(({ url }) => url ?? []))).toEqual(urls);
});

test("I7: an adapter killed while it writes is resumed in the same message", async () => {
	const tokens = sentences(150, "is here & <complete>");
	const { deaths } = await deliver({
		channel: "telegram",
		settings: fake.settings,
		target: { to: "42" },
		tokens,
		tokenEveryMs: 12,
		...diesAt("message_creating", "message_created", "message_updated", "message_sent"),
	});
	expect(deaths).toBe(4);
	expect(letters(fake.visible("42").join(""))).toBe(letters(tokens.join("")));
	expect(fake.visible("42").every((text) => text.length <= 4096)).toBe(true);
});

test("drafts: previews while it grows, one message at the end", async () => {
	const tokens = sentences(40, "is here & <complete>");
	await deliver({
		channel: "telegram",
		settings: { ...fake.settings, drafts: "true" },
		target: { to: "42", direct: true },
		tokens,
		tokenEveryMs: 25,
		comes: afterWrites(() => fake.calls.length, [1, 20]),
	});
	expect(fake.visible("42")).toEqual([tokens.join("").trim()]);
	const names = fake.calls.map(({ name }) => name);
	expect(names.filter((name) => name === "sendMessageDraft").length).toBeGreaterThanOrEqual(2);
	expect(names.at(-1)).toBe("sendMessage");
	expect(names).not.toContain("editMessageText");
});

test("I7: when the daemon dies, a call that is under way is waited for, and what came of it is noted", async () => {
	const folder = mkdtempSync(join(tmpdir(), "nexus-telegram-"));
	try {
		fake.fault({ kind: "slow", count: 1, call: "sendMessage", ms: 3000 });
		const adapter = startAdapter("telegram", "stream", fake.settings, () => {}, folder);
		const begin = (n: number) => {
			const name = { delivery: `d${n}`, runId: `run_${n}` };
			adapter.write({ type: "stream_start", sessionLabel: "main", target: { to: `4${n}` }, ...name });
			adapter.write({ type: "token", text: "once", ...name });
		};
		begin(1);
		await until("the adapter asks to create", () => adapter.lines.some(({ type }) => type === "message_creating"));
		adapter.write({ type: "ack", nonce: adapter.lines[0]?.nonce, delivery: "d1", runId: "run_1" });
		await until("the call is made", () => fake.calls.length === 1);
		adapter.child.stdout?.destroy();
		// The adapter's report of this delivery reaches no reader.
		begin(2);
		await adapter.end();
		expect(readFileSync(join(folder, "state.json.sent"), "utf8")).toContain('"at":"sent"');
		expect(fake.visible("41")).toEqual(["once"]);
		expect(fake.visible("42")).toEqual([]);
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
});
