import { describe, expect, test } from "vitest";
import {
	createSlackFake,
	PATIENT,
	type SlackFake,
	type SlackFakeOptions,
} from "../../../packages/lab/src/slack/slack.ts";
import { until } from "../../until.ts";
import { afterWrites, deliver, expectPaced, startAdapter, TIME } from "../process.ts";

const THREAD = "1700000000.000001";
const inThread = { to: "C1", thread_id: THREAD, user_id: "U1", team_id: "TTEAM" };
const inChannel = { to: "C2" };
const BOTH = [
	["as a stream", inThread],
	["by edits", inChannel],
] as const;

const sentences = (count: number): string[] =>
	Array.from({ length: count }, (_, index) => `Sentence ${index} is here and complete. `);

const letters = (text: string): string => text.replace(/\s+/g, "");

const timesOf = (fake: SlackFake, name: string): number[] =>
	fake.calls.filter((call) => call.name === name).map(({ at }) => at);

const writesOf = (fake: SlackFake): number => fake.calls.filter(({ name }) => name.startsWith("chat.")).length;

/** Every test has its own workspace: they wait a lot, so they wait in parallel. */
async function withFake(work: (fake: SlackFake) => Promise<void>, options: SlackFakeOptions = {}): Promise<void> {
	const fake = await createSlackFake({ clock: TIME.clock, ...options });
	try {
		await work(fake);
	} finally {
		await fake.close();
	}
}

describe.concurrent("the adapter as a process", () => {
	test("I7: an answer in a thread is a native stream, appended at most 100 times a minute", () =>
		withFake(async (fake) => {
			const tokens = sentences(60);
			const params = { channel: "slack", settings: fake.settings, target: inThread, tokens, tokenEveryMs: 60 };
			const delivered = await deliver({ ...params, comes: afterWrites(() => writesOf(fake), [1, 20, 40]) });
			expect(fake.visible("C1")).toEqual([tokens.join("").trim()]);
			expect(timesOf(fake, "chat.startStream")).toHaveLength(1);
			expect(timesOf(fake, "chat.stopStream")).toHaveLength(1);
			expectPaced(fake, "chat.appendStream", delivered, 600);
			const stored = { thread_ts: THREAD, streaming: false, metadata: { event_type: "nexus_message" } };
			expect(fake.raw("C1")).toMatchObject([stored]);
		}));

	test("I7: elsewhere it is a message that is edited at most 50 times a minute", () =>
		withFake(async (fake) => {
			const tokens = sentences(80);
			const params = { channel: "slack", settings: fake.settings, target: inChannel, tokens, tokenEveryMs: 60 };
			const delivered = await deliver({ ...params, comes: afterWrites(() => writesOf(fake), [1, 25, 50]) });
			expect(fake.visible("C2")).toEqual([tokens.join("").trim()]);
			expectPaced(fake, "chat.update", delivered, 1200);
			expect(timesOf(fake, "chat.startStream")).toEqual([]);
		}));

	test.each(BOTH)("I7: killed while it writes %s, it is resumed in the same message", (_, target) =>
		withFake(async (fake) => {
			const tokens = sentences(180);
			const dies = new Set(["message_created", "message_updated", "message_sent"]);
			const { deaths } = await deliver({
				channel: "slack",
				settings: fake.settings,
				target,
				tokens,
				tokenEveryMs: 25,
				comes: (index) => index < 30 || !dies.has("message_updated"),
				dies: (status) => dies.delete(status.type),
			});
			expect(deaths).toBe(3);
			expect(letters(fake.visible(target.to).join(""))).toBe(letters(tokens.join("")));
			expect(fake.visible(target.to)).toHaveLength(2);
		}),
	);

	test.each(BOTH)("I7: a creation with an unknown outcome is looked up and continued %s", (_, target) =>
		withFake(async (fake) => {
			const call = target === inThread ? "chat.startStream" : "chat.postMessage";
			fake.fault({ kind: "reset_after_accept", count: 1, call });
			const { daemon } = await deliver({ channel: "slack", settings: fake.settings, target, tokens: sentences(5) });
			expect(daemon.over).toBe("complete");
			expect(fake.visible(target.to)).toEqual([sentences(5).join("").trim()]);
			expect(timesOf(fake, call)).toHaveLength(1);
		}),
	);

	test.each(BOTH)("I7: through 429s, errors and broken connections a text arrives once %s", (_, target) =>
		withFake(async (fake) => {
			fake.fault({ kind: "429", count: 2, ms: 1000 });
			fake.fault({ kind: "5xx", count: 2 });
			for (const call of ["postMessage", "startStream", "appendStream", "update", "stopStream"]) {
				fake.fault({ kind: "reset_before", count: 1, call });
				fake.fault({ kind: "reset_after_accept", count: 1, call });
			}
			const tokens = sentences(40);
			const { statuses } = await deliver({
				channel: "slack",
				settings: fake.settings,
				target,
				tokens,
				tokenEveryMs: 60,
			});
			expect(fake.visible(target.to)).toEqual([tokens.join("").trim()]);
			expect(statuses.filter(({ type }) => type === "rate_limited").length).toBeGreaterThanOrEqual(2);
		}),
	);

	test("a stream that Slack ended is written on by edits", () =>
		withFake(async (fake) => {
			const tokens = sentences(60);
			let expired = false;
			const dies = ({ type }: { type: string }) => {
				if (type !== "message_created") return false;
				fake.expireStreams();
				expired = true;
				return false;
			};
			const comes = (index: number) => index === 0 || expired;
			const settings = fake.settings;
			await deliver({ channel: "slack", settings, target: inThread, tokens, tokenEveryMs: 30, comes, dies });
			expect(fake.visible("C1")).toEqual([tokens.join("").trim()]);
			expect(timesOf(fake, "chat.update").length).toBeGreaterThanOrEqual(1);
		}));

	test("send: text and attachment; monitor: a message and its confirmation; health", () =>
		withFake(async (fake) => {
			const sender = startAdapter("slack", "send", fake.settings);
			const attachments = [{ name: "a.txt", contentType: "text/plain", data: "aGk=" }];
			const said = { target: inChannel, text: "hello", from: 0, to: 5, attachments };
			sender.write({ type: "send", delivery: "d", nonce: "n", ...said });
			await until("the last message is sent", () => sender.lines.some(({ final }) => final === true));
			expect(await sender.end()).toBe(0);
			expect(fake.visible("C2")).toEqual(["hello", "[a.txt]"]);
			const monitor = startAdapter("slack", "monitor", fake.settings, ({ eventId }) =>
				monitor.write({ type: "ack", eventId }),
			);
			await fake.inject({ text: "<@UBOT> hi there", to: "C2" });
			await monitor.end();
			expect(monitor.lines).toMatchObject([{ type: "message", text: "hi there", mention: true, target: { to: "C2" } }]);
			const health = startAdapter("slack", "health", fake.settings);
			expect(await health.end()).toBe(0);
			expect(health.lines).toMatchObject([{ ok: true }]);
		}, PATIENT));
});
