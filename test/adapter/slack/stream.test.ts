import { describe, expect, test } from "vitest";
import { createSlackFake, type SlackFake } from "../../../packages/lab/src/slack/slack.ts";
import { afterWrites, deliver, diesAt, expectPaced, letters, sentences, TIME } from "../process.ts";

const THREAD = "1700000000.000001";
const inThread = { to: "C1", thread_id: THREAD, user_id: "U1", team_id: "TTEAM" };
const inChannel = { to: "C2" };
const BOTH = [
	["as a stream", inThread],
	["by edits", inChannel],
] as const;

const timesOf = (fake: SlackFake, name: string): number[] =>
	fake.calls.filter((call) => call.name === name).map(({ at }) => at);

const writesOf = (fake: SlackFake): number => fake.calls.filter(({ name }) => name.startsWith("chat.")).length;

/** Every test has its own workspace: they wait a lot, so they wait in parallel. */
async function withFake(work: (fake: SlackFake) => Promise<void>): Promise<void> {
	const fake = await createSlackFake({ clock: TIME.clock });
	try {
		await work(fake);
	} finally {
		await fake.close();
	}
}

describe.concurrent("the adapter as a process", () => {
	test("I7: an answer in a thread is a native stream, appended at most 100 times a minute", () =>
		withFake(async (fake) => {
			const tokens = sentences(60, "is here and complete");
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
			const tokens = sentences(80, "is here and complete");
			const params = { channel: "slack", settings: fake.settings, target: inChannel, tokens, tokenEveryMs: 60 };
			const delivered = await deliver({ ...params, comes: afterWrites(() => writesOf(fake), [1, 25, 50]) });
			expect(fake.visible("C2")).toEqual([tokens.join("").trim()]);
			expectPaced(fake, "chat.update", delivered, 1200);
			expect(timesOf(fake, "chat.startStream")).toEqual([]);
		}));

	test.each(BOTH)("I7: killed while it writes %s, it is resumed in the same message", (_, target) =>
		withFake(async (fake) => {
			const tokens = sentences(180, "is here and complete");
			const { deaths } = await deliver({
				channel: "slack",
				settings: fake.settings,
				target,
				tokens,
				tokenEveryMs: 25,
				...diesAt("message_created", "message_updated", "message_sent"),
			});
			expect(deaths).toBe(3);
			expect(letters(fake.visible(target.to).join(""))).toBe(letters(tokens.join("")));
			expect(fake.visible(target.to)).toHaveLength(2);
		}),
	);

	test("a stream that Slack ended is written on by edits", () =>
		withFake(async (fake) => {
			const tokens = sentences(60, "is here and complete");
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
});
