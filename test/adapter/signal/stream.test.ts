import { afterEach, beforeEach, expect, test } from "vitest";
import { createSignalFake, type SignalFake } from "../../../packages/lab/src/signal.ts";
import { deliver, diesAt, letters, sentences, TIME } from "../process.ts";

const TO = "+15551230001";

let fake: SignalFake;

beforeEach(async () => {
	fake = await createSignalFake({ clock: TIME.clock });
});
afterEach(() => fake.close());

const wish = (drafts = "false") => ({
	channel: "signal",
	settings: { ...fake.settings, drafts },
	target: { to: TO },
});

test("I7: without drafts an answer is sent once, at its end, in messages that fit", async () => {
	const tokens = sentences(80);
	await deliver({ ...wish(), tokens, tokenEveryMs: 2 });
	expect(letters(fake.visible(TO).join(""))).toBe(letters(tokens.join("")));
	expect(fake.raw(TO).every(({ text, timestamps }) => timestamps.length === 1 && text.length <= 2000)).toBe(true);
});

test("I7: with drafts a killed adapter is resumed in the same message", async () => {
	const tokens = sentences(100);
	const { deaths } = await deliver({
		...wish("true"),
		tokens,
		tokenEveryMs: 40,
		...diesAt("message_creating", "message_created", "message_updated", "message_sent"),
	});
	expect(deaths).toBe(4);
	expect(letters(fake.visible(TO).join(""))).toBe(letters(tokens.join("")));
});
