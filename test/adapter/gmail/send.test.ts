import { afterEach, beforeEach, expect, test } from "vitest";
import { createGmailFake, type GmailFake } from "../../../packages/lab/src/gmail.ts";
import { until } from "../../until.ts";
import { deliverBlocks, diesAtEachMoment } from "../blocks.ts";
import { startAdapter, TIME } from "../process.ts";

const TO = "ann@example.com";
const ANSWERS = ["# First answer\n\nIt is **long**. ", "ok", "ok"];

let fake: GmailFake;

beforeEach(async () => {
	fake = await createGmailFake({ clock: TIME.clock });
});
afterEach(() => fake.close());

const wish = () => ({
	channel: "gmail",
	settings: fake.settings,
	target: { to: TO, subject: "News" },
	blocks: ANSWERS,
});

const said = () => ANSWERS.map((text) => text.trimEnd());

test("I7: killed before, while and after a mail is sent, every mail arrives once and in order", async () => {
	const dies = diesAtEachMoment(() => fake.visible(TO));
	const { deaths } = await deliverBlocks({ ...wish(), dies });
	expect(deaths).toBe(4);
	expect(fake.visible(TO)).toEqual(said());
});

test("I7: through rate limits, errors and broken connections every mail arrives once", async () => {
	fake.fault({ kind: "429", count: 2, call: "messages.send", ms: 1000 });
	fake.fault({ kind: "reset_after_accept", count: 1, call: "messages.send" });
	fake.fault({ kind: "5xx", count: 1, call: "messages.send" });
	fake.fault({ kind: "5xx", count: 1, call: "messages.list" });
	const { statuses } = await deliverBlocks(wish());
	expect(fake.visible(TO)).toEqual(said());
	expect(statuses.some(({ type }) => type === "rate_limited")).toBe(true);
});

test("send: one mail with its attachment; monitor: a mail and its confirmation", async () => {
	const sender = startAdapter("gmail", "send", fake.settings);
	const attachments = [{ name: "a.txt", contentType: "text/plain", data: "aGk=" }];
	const line = {
		type: "send",
		delivery: "d",
		nonce: "n",
		target: { to: TO },
		text: "hello",
		from: 0,
		to: 5,
		attachments,
	};
	sender.write(line);
	await until("the last message is sent", () => sender.lines.some(({ final }) => final === true));
	expect(await sender.end()).toBe(0);
	expect(fake.raw(TO).map(({ mail }) => [mail.text?.trim(), mail.attachments[0]?.filename])).toEqual([
		["hello", "a.txt"],
	]);
	const monitor = startAdapter("gmail", "monitor", { ...fake.settings, topic: "t", webhook_secret: "s" }, (said) => {
		if (said.type === "message") monitor.write({ type: "ack", eventId: said.eventId });
	});
	await until("the mailbox is watched", () => fake.watched.length > 0);
	// A push comes after the mailbox was first read, as soon as that is.
	const push = { type: "webhook", method: "POST", query: "secret=s", headers: {}, body: "" };
	monitor.write({ ...push, id: "w1" });
	await until("the monitor says one line", () => monitor.lines.length === 1);
	await fake.inject({ text: "hi", mail: { inReplyTo: "<x@y>" } });
	monitor.write({ ...push, id: "w2" });
	await until("the monitor says 3 lines", () => monitor.lines.length === 3);
	expect(monitor.lines).toMatchObject([
		{ type: "webhook_response", id: "w1", status: 204 },
		{ type: "message", text: "hi", target: { to: TO } },
		{ type: "webhook_response", id: "w2", status: 204 },
	]);
	expect(await monitor.end()).toBe(0);
});
