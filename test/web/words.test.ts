/** Numbers, titles and announcements as people read and hear them. */

import { describe, expect, it } from "vitest";
import { newChat, type TurnItem } from "../../packages/web/src/chat/chat.ts";
import { announcement, sessionTitle } from "../../packages/web/src/chat/words.ts";
import { durationText, leftText } from "../../packages/web/src/ui/format.ts";

describe("durations", () => {
	it.each([
		[-5, "0 ms"],
		[0.4, "0 ms"],
		[999.4, "999 ms"],
		[999.6, "1.0 s"],
		[9_949, "9.9 s"],
		[9_960, "10 s"],
		[59_400, "59 s"],
		[59_600, "1 min 0 s"],
		[119_700, "2 min 0 s"],
		[125_000, "2 min 5 s"],
	])("%d ms is %s", (ms, text) => expect(durationText(ms)).toBe(text));
});

describe("a time that runs down", () => {
	it.each([
		[340, "0.3 s"],
		[9_400, "9.4 s"],
		[64_400, "1 min 4 s"],
		[3_600_000, "60 min 0 s"],
	])("%d ms is %s", (ms, text) => expect(leftText(ms)).toBe(text));
});

describe("the title of the open session", () => {
	const row = { created_at: 0, updated_at: 0, turns: 1 };
	const asked = (text: string): TurnItem => ({
		runId: "run_1",
		row: {
			run_id: "run_1",
			session: "old",
			engine: "demo",
			status: "completed",
			started_at: 0,
			messages: [{ role: "user", text }],
			tool_calls: [],
			frames_available: true,
		},
	});

	const made = "chat-01k9x2m4q8r6t0v3w5y7z9abcd";

	it("is what the list says, else its first message, else that it is new", () => {
		const chat = newChat(made);
		expect(sessionTitle({ sessions: [{ ...row, session: made, title: "Listed" }], chat })).toBe("Listed");
		const turns = [asked("Older than the list"), asked("and newer")];
		expect(sessionTitle({ sessions: [], chat: { ...chat, turns } })).toBe("Older than the list");
		expect(sessionTitle({ sessions: [], chat })).toBe("New session");
	});

	it("is the label that a person chose, or the name of the other person who began it", () => {
		expect(sessionTitle({ sessions: [], chat: newChat("review") })).toBe("review");
		const listed = { ...row, session: "telegram:main:7", title: "hi", channel: "telegram", sender: "7" };
		const chat = newChat(listed.session);
		expect(sessionTitle({ sessions: [{ ...listed, sender_name: "Ann" }], chat })).toBe("Ann");
		expect(sessionTitle({ sessions: [listed], chat })).toBe("7");
		expect(sessionTitle({ sessions: [{ ...listed, group: true, chat_name: "Friends" }], chat })).toBe("Friends");
	});
});

describe("the announcement of an answer", () => {
	it("drops the marks of markdown and keeps the names", () => {
		const message = { text: "**Set** `OPENAI_API_KEY` or _write_ one" };
		const view = { final: true, state: "completed", messages: [message] } as unknown as TurnItem["view"];
		expect(announcement(undefined, { runId: "run_1", ...(view && { view }) })).toBe(
			"Answer finished. Set OPENAI_API_KEY or write one",
		);
	});
});
