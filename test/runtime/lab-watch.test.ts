/** The lab's view of a platform: messages with their changes, a native draft, typing until the answer comes, and every call. */

import { expect, it } from "vitest";
import type { Place } from "../../packages/lab/src/lab-places.ts";
import { watch } from "../../packages/lab/src/lab-watch.ts";
import { telegramForTest } from "../serving.ts";

interface Told {
	messages: { id: string; text: string; edits: number; created_at: number; updated_at: number }[];
	draft?: { text: string; edits: number };
	typing: boolean;
	calls: { call: string; status: number; at: number; ms?: number }[];
	calls_total: number;
}

async function telegramPlace() {
	const fake = await telegramForTest();
	const to = "42";
	const place: Place = {
		fake,
		settings: {},
		target: { to },
		typingMs: 5000,
		bubbles: () => fake.raw(to).map(({ text, entities }) => ({ text, style: "ranges", ranges: entities })),
		draft: () => fake.draft(to),
	};
	const call = async (method: string, fields: object) => {
		const response = await fetch(`${fake.url}/bot${fake.token}/${method}`, {
			method: "POST",
			headers: { "content-type": "application/json" },
			body: JSON.stringify({ chat_id: to, ...fields }),
		});
		return (await response.json()) as { result: { message_id: number } };
	};
	let aheadMs = 0;
	const watched = watch(place, () => Date.now() + aheadMs);
	const told = () => watched.state() as Told;
	const later = (ms: number) => {
		aheadMs += ms;
	};
	return { fake, call, watched, told, later };
}

it("counts the changes of a message, with how it is to be read", async () => {
	const { call, watched, told } = await telegramPlace();
	const { result } = await call("sendMessage", { text: "<b>Hi</b>", parse_mode: "HTML" });
	expect(told().messages).toMatchObject([{ text: "Hi", edits: 0, ranges: [{ type: "bold", offset: 0, length: 2 }] }]);
	await call("editMessageText", { message_id: result.message_id, text: "Hi there" });
	watched.sample();
	watched.sample();
	expect(told().messages).toMatchObject([{ text: "Hi there", edits: 1, ranges: [] }]);
	expect(told().calls.map(({ call, status }) => [call, status])).toEqual([
		["sendMessage", 200],
		["editMessageText", 200],
	]);
	watched.reset();
	expect(told()).toMatchObject({ messages: [], calls: [], calls_total: 0 });
	await call("sendMessage", { text: "Next" });
	expect(told().messages.map(({ text }) => text)).toEqual(["Next"]);
});

it("tells a native draft until the message takes its place", async () => {
	const { call, told } = await telegramPlace();
	await call("sendMessageDraft", { draft_id: 1, text: "Grow" });
	expect(told().draft).toMatchObject({ text: "Grow", edits: 0 });
	await call("sendMessageDraft", { draft_id: 1, text: "Growing" });
	expect(told().draft).toMatchObject({ text: "Growing", edits: 1 });
	await call("sendMessage", { text: "Grown" });
	expect(told().draft).toBeUndefined();
	expect(told().messages).toMatchObject([{ text: "Grown" }]);
});

it("shows typing until something is said, or the sign runs out", async () => {
	const { call, told, later } = await telegramPlace();
	expect(told().typing).toBe(false);
	await call("sendChatAction", { action: "typing" });
	expect(told().typing).toBe(true);
	later(1);
	await call("sendMessage", { text: "Said" });
	expect(told().typing).toBe(false);
	const other = await telegramPlace();
	await other.call("sendChatAction", { action: "typing" });
	expect(other.told().typing).toBe(true);
	other.later(5001);
	expect(other.told().typing).toBe(false);
});

it("says how long a call took, and that one was never answered", async () => {
	const { fake, call, told } = await telegramPlace();
	fake.fault({ kind: "slow", ms: 60, count: 1 });
	await call("sendMessage", { text: "slow" });
	await expect.poll(() => told().calls[0]?.ms).toBeGreaterThanOrEqual(55);
	fake.fault({ kind: "reset_before", count: 1 });
	await expect(call("sendMessage", { text: "lost" })).rejects.toThrow();
	expect(told().calls[1]).toMatchObject({ call: "sendMessage", status: 0 });
});
