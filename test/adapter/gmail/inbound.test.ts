import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { InboundMessage } from "../../../packages/adapter/src/kit.ts";
import { createGmailFake, GMAIL_ADDRESS, type GmailFake } from "../../../packages/lab/src/gmail.ts";
import { platform } from "../../../packages/platforms/src/gmail/gmail.ts";
import { until } from "../../until.ts";
import { faultOf, listenTo, memory, type OpenSession, openSession, unsafe } from "../session.ts";

let fake: GmailFake;

beforeEach(async () => {
	fake = await createGmailFake({ units: 10_000 });
});
afterEach(() => fake.close());

const open = (state = memory(), more: Record<string, string> = {}): Promise<OpenSession> =>
	openSession(platform, { ...fake.settings, ...more }, { state });

/** Listens until `count` messages have come. */
async function hear(count: number, state = memory()): Promise<InboundMessage[]> {
	state.set("history_id", "1000");
	const { seen, hears, stop } = listenTo(await open(state));
	await hears(count);
	await stop();
	return seen;
}

describe("a mail as a message", () => {
	test("of one person: subject and text, and where the answer goes", async () => {
		await fake.inject({ text: "How are you?", mail: { messageId: "<q1@example.com>" } });
		const [message] = await hear(1);
		const [stored] = fake.messages;
		expect(message).toEqual({
			eventId: stored?.id,
			from: { id: "ann@example.com", name: "Ann" },
			chat: { id: stored?.threadId, type: "direct", name: "A question" },
			text: "A question\n\nHow are you?",
			target: {
				to: "ann@example.com",
				thread_id: stored?.threadId,
				direct: true,
				subject: "A question",
				reply_to: "<q1@example.com>",
				references: "<q1@example.com>",
			},
			ts: stored?.internalDate,
		});
	});

	test("to several: an answer goes to all, and who only gets a copy is not addressed", async () => {
		const mail = { cc: "bo@example.com", replyTo: "team@example.com", inReplyTo: "<x@y>" };
		await fake.inject({ text: "all", mail });
		await fake.inject({ text: "copy", to: "bo@example.com", mail: { cc: GMAIL_ADDRESS, inReplyTo: "<x@y>" } });
		const [all, copy] = await hear(2);
		expect(all).toMatchObject({
			text: "all",
			chat: { type: "group" },
			mention: true,
			target: { to: "team@example.com", cc: "bo@example.com", direct: false },
		});
		expect(copy).toMatchObject({ mention: false, target: { to: "ann@example.com", cc: "bo@example.com" } });
	});

	test("attachments come along; HTML alone is read as text", async () => {
		const attachments = [{ filename: "a.txt", content: "content" }];
		await fake.inject({ text: "see", mail: { attachments, inReplyTo: "<x@y>" } });
		const html = "<style>p{}</style><p>one &amp; two<br>three</p><blockquote>old</blockquote>";
		await fake.inject({ text: "", mail: { html, text: undefined, inReplyTo: "<x@y>" } });
		const [first, second] = await hear(2);
		const data = Buffer.from("content").toString("base64");
		expect(first?.attachments).toEqual([{ name: "a.txt", contentType: "text/plain", data }]);
		expect(second?.text).toBe("one & two\nthree\n\n> old");
	});

	test("our own, programs', lists' and unwanted mails are dropped", async () => {
		const headers = (fields: object) => ({ mail: { headers: fields } });
		await fake.inject({ text: "own", from: GMAIL_ADDRESS });
		await fake.inject({ text: "auto", ...headers({ "Auto-Submitted": "auto-replied" }) });
		await fake.inject({ text: "list", ...headers({ "List-Id": "<l.example.com>" }) });
		await fake.inject({ text: "bulk", ...headers({ Precedence: "bulk" }) });
		await fake.inject({ text: "bounce", from: "mailer-daemon@example.com" });
		await fake.inject({ text: "robot", from: "No-Reply <noreply@example.com>" });
		await fake.inject({ text: "spam", labelIds: ["INBOX", "SPAM"] });
		await fake.inject({ text: "person", mail: { inReplyTo: "<x@y>" } });
		expect((await hear(1)).map(({ text }) => text)).toEqual(["person"]);
	});

	test("one that no parser takes does not keep back those behind it", async () => {
		await fake.inject({ text: "nested without end" });
		await fake.inject({ text: "person", mail: { inReplyTo: "<x@y>" } });
		const parts = Array.from(
			{ length: 300 },
			(_, at) => `Content-Type: multipart/mixed; boundary=b${at}\r\n\r\n--b${at}\r\n`,
		);
		const [first] = fake.messages;
		if (first) first.raw = Buffer.from(`From: a@example.com\r\n${parts.join("")}\r\nhi\r\n`);
		expect((await hear(1)).map(({ text }) => text)).toEqual(["person"]);
	});
});

describe("the mailbox", () => {
	test("what was not safe comes again, in order; the past does not come", async () => {
		await fake.inject({ text: "long ago" });
		const state = memory();
		const start = listenTo(await open(state));
		await until("the mailbox was read", () => state.get("history_id") !== undefined);
		await start.stop();
		for (const text of ["one", "two", "three"]) await fake.inject({ text, mail: { inReplyTo: "<x@y>" } });
		const first = listenTo(await open(state), async ({ text }) => (text === "one" ? undefined : unsafe()));
		await first.hears(2);
		await first.stop();
		const next = listenTo(await open(state));
		await next.hears(3);
		await next.stop();
		expect([...first.texts(), ...next.texts()]).toEqual(["one", "two", "one", "two", "three"]);
	});

	test("when the history has been forgotten, mails since the last reading come", async () => {
		const texts = Array.from({ length: 30 }, (_, index) => `while away ${index}`);
		for (const text of texts) await fake.inject({ text, mail: { inReplyTo: "<x@y>" } });
		fake.forgetHistory();
		const state = memory();
		state.set("read_at", String(Date.now() - 60_000));
		expect((await hear(30, state)).map(({ text }) => text)).toEqual(texts);
		expect(Number(state.get("history_id"))).toBeGreaterThan(1000);
	});

	test("push: the watch is set, its secret decides, and the push is confirmed when the mail is safe", async () => {
		const state = memory();
		const topic = "projects/p/topics/t";
		const session = await open(state, { topic, webhook_secret: "s3cret" });
		const post = (secret: string, method = "POST") =>
			session.webhook?.({ method, query: new URLSearchParams({ secret }), headers: {}, body: Buffer.from("{}") });
		expect(await post("s3cret")).toMatchObject({ status: 503 });
		const { texts, stop } = listenTo(session);
		await until("the mailbox was read", () => state.get("history_id") !== undefined);
		await fake.inject({ text: "hi", mail: { inReplyTo: "<x@y>" } });
		expect(await post("s3cret")).toEqual({ status: 204, messages: [] });
		expect(texts()).toEqual(["hi"]);
		expect(fake.watched).toEqual([topic]);
		expect(await post("wrong")).toMatchObject({ status: 401 });
		expect(await post("s3cret", "GET")).toMatchObject({ status: 405 });
		await stop();
	});

	test("a revoked token ends it with the reason", async () => {
		const session = await open(memory(), { refresh_token: "old" });
		expect((await faultOf(session.monitor?.(unsafe, new AbortController().signal))).fault).toBe("denied");
	});
});
