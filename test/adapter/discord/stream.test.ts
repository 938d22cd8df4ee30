import { afterEach, beforeEach, expect, test } from "vitest";
import { createDiscordFake, type DiscordFake } from "../../../packages/lab/src/discord/discord.ts";
import { until } from "../../until.ts";
import { afterWrites, deliver, expectPaced, startAdapter, TIME } from "../process.ts";

let fake: DiscordFake;

beforeEach(async () => {
	fake = await createDiscordFake({ clock: TIME.clock });
});
afterEach(() => fake.close());

const settings = () => ({ token: fake.token, api_url: fake.url });

const sentences = (count: number): string[] =>
	Array.from({ length: count }, (_, index) => `Sentence ${index} is complete. `);

const letters = (text: string): string => text.replace(/\s+/g, "");

test("I7: an answer grows by edits within the bucket, and is complete", async () => {
	const tokens = sentences(60);
	const params = { channel: "discord", settings: settings(), target: { to: "77" }, tokens, tokenEveryMs: 50 };
	const delivered = await deliver({ ...params, comes: afterWrites(() => fake.calls.length, [1, 20, 40]) });
	expect(fake.visible("77")).toEqual([tokens.join("").trim()]);
	expect(fake.calls.filter(({ status }) => status === 429)).toHaveLength(0);
	expectPaced(fake, "PATCH messages/:id", delivered, 300);
});

test("I7: killed at every kind of moment, even before its intent was confirmed, it shows the text once", async () => {
	const tokens = sentences(120);
	const dies = new Set(["message_creating", "message_created", "message_updated", "message_sent"]);
	const { deaths } = await deliver({
		channel: "discord",
		settings: settings(),
		target: { to: "77", since: "1" },
		tokens,
		tokenEveryMs: 20,
		comes: (index) => index < 30 || !dies.has("message_updated"),
		dies: (status) => dies.delete(status.type),
	});
	expect(deaths).toBe(4);
	expect(letters(fake.visible("77").join(""))).toBe(letters(tokens.join("")));
	expect(fake.visible("77").every((text) => text.length <= 2000)).toBe(true);
});

test("I7: a creation whose answer was lost is the same message when it is repeated", async () => {
	fake.fault({ kind: "reset_after_accept", count: 1, call: "POST messages" });
	const tokens = sentences(10);
	const { daemon } = await deliver({ channel: "discord", settings: settings(), target: { to: "77" }, tokens });
	expect(daemon.over).toBe("complete");
	expect(fake.visible("77")).toEqual([tokens.join("").trim()]);
});

test("I7: through 429s, errors and broken connections the text arrives once", async () => {
	fake.fault({ kind: "429", count: 2, ms: 300 });
	fake.fault({ kind: "5xx", count: 2 });
	fake.fault({ kind: "reset_after_accept", count: 2 });
	fake.fault({ kind: "reset_before", count: 2 });
	const tokens = sentences(40);
	const { statuses } = await deliver({
		channel: "discord",
		settings: settings(),
		target: { to: "77" },
		tokens,
		tokenEveryMs: 50,
	});
	expect(fake.visible("77")).toEqual([tokens.join("").trim()]);
	expect(statuses.filter(({ type }) => type === "rate_limited").length).toBeGreaterThanOrEqual(1);
});

test("send: blocks with an attachment; monitor: a message", async () => {
	const sender = startAdapter("discord", "send", settings());
	const attachments = [{ name: "a.txt", contentType: "text/plain", data: "aGk=" }];
	sender.write({
		type: "send",
		delivery: "d",
		nonce: "n",
		target: { to: "77" },
		text: "hello",
		from: 0,
		to: 5,
		attachments,
	});
	await until("the last message is sent", () => sender.lines.some(({ final }) => final === true));
	expect(await sender.end()).toBe(0);
	expect(fake.raw("77").map((message) => message.attachments[0]?.filename ?? message.content)).toEqual([
		"hello",
		"a.txt",
	]);
	const heard = new Promise<Record<string, unknown>>((resolve) => {
		const monitor = startAdapter("discord", "monitor", settings(), (said) => {
			monitor.write({ type: "ack", eventId: said.eventId });
			resolve(said);
			void monitor.end();
		});
	});
	await until("the gateway is connected", () => fake.gateway.connections === 1);
	await fake.inject({ text: "hi there", to: "77" });
	expect(await heard).toMatchObject({ type: "message", text: "hi there", target: { to: "77", direct: true } });
});
