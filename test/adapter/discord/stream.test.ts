import { afterEach, beforeEach, expect, test } from "vitest";
import { createDiscordFake, type DiscordFake } from "../../../packages/lab/src/discord/discord.ts";
import { afterWrites, deliver, diesAt, expectPaced, letters, sentences, TIME } from "../process.ts";

let fake: DiscordFake;

beforeEach(async () => {
	fake = await createDiscordFake({ clock: TIME.clock });
});
afterEach(() => fake.close());

test("I7: an answer grows by edits within the bucket, and is complete", async () => {
	const tokens = sentences(60, "is complete");
	const params = { channel: "discord", settings: fake.settings, target: { to: "77" }, tokens, tokenEveryMs: 50 };
	const delivered = await deliver({ ...params, comes: afterWrites(() => fake.calls.length, [1, 20, 40]) });
	expect(fake.visible("77")).toEqual([tokens.join("").trim()]);
	expect(fake.calls.filter(({ status }) => status === 429)).toHaveLength(0);
	expectPaced(fake, "PATCH messages/:id", delivered, 300);
});

test("I7: killed at every kind of moment, even before its intent was confirmed, it shows the text once", async () => {
	const tokens = sentences(120, "is complete");
	const { deaths } = await deliver({
		channel: "discord",
		settings: fake.settings,
		target: { to: "77", since: "1" },
		tokens,
		tokenEveryMs: 20,
		...diesAt("message_creating", "message_created", "message_updated", "message_sent"),
	});
	expect(deaths).toBe(4);
	expect(letters(fake.visible("77").join(""))).toBe(letters(tokens.join("")));
	expect(fake.visible("77").every((text) => text.length <= 2000)).toBe(true);
});
