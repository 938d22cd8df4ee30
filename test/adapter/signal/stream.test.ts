import { afterEach, beforeEach, expect, test } from "vitest";
import { createSignalFake, SIGNAL_NUMBER, type SignalFake } from "../../../packages/lab/src/signal.ts";
import { until } from "../../until.ts";
import { deliver, startAdapter, TIME } from "../process.ts";

const TO = "+15551230001";

let fake: SignalFake;

beforeEach(async () => {
	fake = await createSignalFake({ clock: TIME.clock });
});
afterEach(() => fake.close());

const wish = (drafts = "false") => ({
	channel: "signal",
	settings: { number: SIGNAL_NUMBER, api_url: fake.url, drafts },
	target: { to: TO },
});

const sentences = (count: number): string[] =>
	Array.from({ length: count }, (_, index) => `Sentence ${index} is here, complete. `);

const letters = (text: string): string => text.replace(/\s+/g, "");

test("I7: without drafts an answer is sent once, at its end, in messages that fit", async () => {
	const tokens = sentences(80);
	await deliver({ ...wish(), tokens, tokenEveryMs: 2 });
	expect(letters(fake.visible(TO).join(""))).toBe(letters(tokens.join("")));
	expect(fake.raw(TO).every(({ text, timestamps }) => timestamps.length === 1 && text.length <= 2000)).toBe(true);
});

test("I7: with drafts a killed adapter is resumed in the same message", async () => {
	const tokens = sentences(100);
	const dies = new Set(["message_creating", "message_created", "message_updated", "message_sent"]);
	const { deaths } = await deliver({
		...wish("true"),
		tokens,
		tokenEveryMs: 40,
		comes: (index) => index < 30 || !dies.has("message_updated"),
		dies: ({ type }) => dies.delete(type),
	});
	expect(deaths).toBe(4);
	expect(letters(fake.visible(TO).join(""))).toBe(letters(tokens.join("")));
});

test("I7: through 429s and broken edits the text arrives once", async () => {
	fake.fault({ kind: "429", count: 2, ms: 1000 });
	const tokens = sentences(40);
	const done = deliver({ ...wish("true"), tokens, tokenEveryMs: 100 });
	await until("the platform has the message", () => fake.visible(TO).length === 1);
	fake.fault({ kind: "reset_after_accept", count: 1, call: "send" });
	fake.fault({ kind: "5xx", count: 1, call: "send" });
	const { statuses } = await done;
	expect(letters(fake.visible(TO).join(""))).toBe(letters(tokens.join("")));
	expect(statuses.some(({ type }) => type === "rate_limited")).toBe(true);
});

test("I7: a creation with an unknown outcome is flagged, never repeated", async () => {
	fake.fault({ kind: "reset_after_accept", count: 1, call: "send" });
	const { daemon } = await deliver({ ...wish(), tokens: ["once"] });
	expect(daemon.error).toMatchObject({ code: "unknown_outcome" });
	expect(fake.visible(TO)).toEqual(["once"]);
});

test("monitor: a message and its confirmation", async () => {
	const monitor = startAdapter("signal", "monitor", wish().settings, (said) =>
		monitor.write({ type: "ack", eventId: said.eventId }),
	);
	// A stream begins when it is open; what is said before is not brought.
	const repeat = setInterval(() => void fake.inject({ text: "hi" }), 300);
	await until("the monitor says something", () => monitor.lines.length > 0);
	clearInterval(repeat);
	expect(monitor.lines[0]).toMatchObject({ type: "message", text: "hi", target: { to: TO, direct: true } });
	expect(await monitor.end()).toBe(0);
});
