import { afterEach, beforeEach, expect, test } from "vitest";
import { createSmsFake, type SmsFake, TWILIO_NUMBER, TWILIO_SID, TWILIO_TOKEN } from "../../../packages/lab/src/sms.ts";
import { until } from "../../until.ts";
import { deliverBlocks, diesAtEachMoment } from "../blocks.ts";
import { startAdapter, TIME } from "../process.ts";

const TO = "+15551230001";
const BLOCKS = ["First part.", "ok", "ok", "Last part, with € and 🙂."];

let fake: SmsFake;

beforeEach(async () => {
	fake = await createSmsFake({ clock: TIME.clock });
});
afterEach(() => fake.close());

const wish = () => ({
	channel: "sms",
	settings: { account_sid: TWILIO_SID, auth_token: TWILIO_TOKEN, from: TWILIO_NUMBER, api_url: fake.url },
	target: { to: TO },
	blocks: BLOCKS,
});

test("I7: killed before, while and after a block is sent, every block arrives once and in order", async () => {
	const dies = diesAtEachMoment(() => fake.visible(TO));
	const { deaths } = await deliverBlocks({ ...wish(), dies });
	expect(deaths).toBe(4);
	expect(fake.visible(TO)).toEqual(BLOCKS);
});

test("I7: through 429s, errors and broken connections every block arrives once and in order", async () => {
	fake.fault({ kind: "429", count: 2, call: "create", ms: 1000 });
	fake.fault({ kind: "reset_after_accept", count: 1, call: "create" });
	fake.fault({ kind: "5xx", count: 1, call: "create" });
	fake.fault({ kind: "5xx", count: 1, call: "list" });
	const { statuses } = await deliverBlocks(wish());
	expect(fake.visible(TO)).toEqual(BLOCKS);
	expect(statuses.some(({ type }) => type === "rate_limited")).toBe(true);
});

test("a long text is cut within the limit", async () => {
	const text = "A sentence of some length, and one more. ".repeat(100);
	await deliverBlocks({ ...wish(), blocks: [text] });
	expect(fake.visible(TO).length).toBeGreaterThan(1);
	expect(fake.visible(TO).every((each) => each.length <= 1600)).toBe(true);
	expect(fake.visible(TO).join("").replace(/\s/g, "")).toBe(text.replace(/\s/g, ""));
});

test("monitor: a webhook brings a message, and is answered when it is safe", async () => {
	const url = "https://example.org/hook";
	const monitor = startAdapter("sms", "monitor", { ...wish().settings, webhook_url: url });
	const fields = fake.fieldsOf({ text: "hello" });
	const headers = { "x-twilio-signature": fake.sign(url, fields) };
	const body = Buffer.from(fields.toString()).toString("base64");
	monitor.write({ type: "webhook", id: "w1", method: "POST", query: "", headers, body });
	await until("the monitor says one line", () => monitor.lines.length === 1);
	expect(monitor.lines[0]).toMatchObject({ type: "message", text: "hello", target: { to: TO } });
	monitor.write({ type: "ack", eventId: fields.get("MessageSid") });
	await until("the monitor says 2 lines", () => monitor.lines.length === 2);
	expect(monitor.lines[1]).toMatchObject({ type: "webhook_response", id: "w1", status: 200 });
	expect(await monitor.end()).toBe(0);
});
