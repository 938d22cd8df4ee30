/** Authors: the page must not show another person's words as the owner's. */

import { describe, expect, it } from "vitest";
import { newChat, withRow } from "../../packages/web/src/chat/chat.ts";
import { threadOf, waitingOf } from "../../packages/web/src/chat/thread.ts";
import { partnerOf, writerOf } from "../../packages/web/src/chat/writer.ts";

describe("the writer of a message", () => {
	it("is undefined for the owner, on the page and by the API", () => {
		expect(writerOf({})).toBeUndefined();
		expect(writerOf({ channel: "web", sender: "owner" })).toBeUndefined();
	});

	it("is the person with the platform, or the application", () => {
		expect(writerOf({ channel: "telegram", sender: "7", sender_name: "Ann" })).toEqual({
			name: "Ann",
			channel: "telegram",
			origin: "Telegram",
		});
		expect(writerOf({ channel: "filechat", sender: "bob" })).toMatchObject({ name: "bob", origin: "filechat" });
		expect(writerOf({ channel: "web", sender: "app:shop" })).toEqual({ name: "shop", origin: "application" });
		// A platform's user may call themselves what they like.
		expect(writerOf({ channel: "telegram", sender: "owner", sender_name: "You" })).toMatchObject({
			origin: "Telegram",
		});
	});

	it("of a group is the group", () => {
		const group = { channel: "slack", sender: "U1", sender_name: "Ann", group: true } as const;
		expect(partnerOf({ ...group, chat_name: "team" })).toMatchObject({ name: "team", origin: "Slack group" });
		expect(partnerOf(group)).toMatchObject({ name: "Group" });
	});
});

describe("the thread", () => {
	const row = (runId: string, eventId: string) => ({
		run_id: runId,
		session: "s",
		engine: "demo",
		status: "failed" as const,
		started_at: 1,
		messages: [{ role: "user" as const, text: "hi", event_id: eventId }],
		tool_calls: [],
		frames_available: true,
	});

	it("shows a message that is tried again once", () => {
		const rows = [row("run_1", "evt_1"), row("run_2", "evt_1"), row("run_3", "evt_2")];
		const chat = rows.reduce(withRow, newChat("s"));
		const retries = threadOf(chat).map((item) => item.kind === "turn" && item.retries);
		expect(retries).toEqual([false, true, false]);
	});

	it("says who wrote what waits", () => {
		const queued = [
			{ event_id: "evt_1", text: "a", received_at: 1, channel: "telegram", sender: "7", sender_name: "Ann" },
			{ event_id: "evt_2", text: "b", received_at: 2, channel: "web", sender: "owner" },
		];
		const waiting = waitingOf({ ...newChat("s"), queued });
		expect(waiting.map(({ writer }) => writer?.name)).toEqual(["Ann", undefined]);
	});
});
