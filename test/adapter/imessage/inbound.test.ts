import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createIMessageFake, type IMessageFake } from "../../../packages/lab/src/imessage/imessage.ts";
import { OWN_CHAT } from "../../../packages/lab/src/imessage/mac.ts";
import { platform } from "../../../packages/platforms/src/imessage/imessage.ts";
import {
	type BlueBubblesMessage,
	readBlueBubbles,
	readImsg,
} from "../../../packages/platforms/src/imessage/inbound.ts";
import { until } from "../../until.ts";
import { faultOf, listenTo, memory, type OpenSession, openSession, sendOptions, unsafe } from "../session.ts";

const message = (more: Partial<BlueBubblesMessage> = {}): BlueBubblesMessage => ({
	originalROWID: 3,
	guid: "G3",
	text: "hi",
	isFromMe: false,
	handle: { address: "+15551230001" },
	chats: [{ guid: "iMessage;-;+15551230001", style: 45 }],
	dateCreated: 1700,
	...more,
});

const GROUP = [{ guid: "iMessage;+;chat1", style: 43, displayName: "Team" }];

describe("a message of BlueBubbles", () => {
	test("of one person", () => {
		expect(readBlueBubbles(message(), "nexus")).toEqual({
			files: [],
			message: {
				eventId: "G3",
				from: { id: "+15551230001" },
				chat: { id: "iMessage;-;+15551230001", type: "direct" },
				text: "hi",
				target: { to: "iMessage;-;+15551230001", direct: true },
				ts: 1700,
			},
		});
	});

	test.each([
		["Nexus, what is up", "what is up", true],
		["@nexus: go", "go", true],
		["ask nexus about it", "ask nexus about it", true],
		["nexuses are many", "nexuses are many", false],
		["hello all", "hello all", false],
	])("in a group, %j says %j to us: %s", (text, said, mention) => {
		const found = readBlueBubbles(message({ text, chats: GROUP }), "nexus")?.message;
		expect(found).toMatchObject({
			chat: { id: "iMessage;+;chat1", type: "group", name: "Team" },
			text: said,
			mention,
			target: { to: "iMessage;+;chat1", direct: false, reply_to: "G3" },
		});
	});

	test.each([
		["our own", { isFromMe: true }],
		["a tapback", { associatedMessageGuid: "p:0/G1" }],
		["a change of the group", { itemType: 1 }],
		["something taken back", { dateRetracted: 5 }],
		["nothing", { text: "\uFFFC" }],
		["in no chat", { chats: [] }],
	])("not read as a message: %s", (_, more) => {
		expect(readBlueBubbles(message(more), "nexus")).toBeUndefined();
	});

	test("a hidden attachment (a link's preview) is not a file", () => {
		const attachments = [{ guid: "a", hideAttachment: true }];
		expect(readBlueBubbles(message({ attachments }), "nexus")?.files).toEqual([]);
	});
});

test("a message of imsg carries the number of its chat; reactions and our own are dropped", () => {
	const given = { id: 9, chat_id: 7, chat_guid: "iMessage;-;ann@example.org", guid: "G9", sender: "ann@example.org" };
	const said = { ...given, is_from_me: false, text: "hi", created_at: "2026-01-02T03:04:05Z" };
	expect(readImsg(said, "nexus")?.message).toMatchObject({
		eventId: "G9",
		target: { to: "iMessage;-;ann@example.org", chat_id: 7, direct: true },
		ts: Date.UTC(2026, 0, 2, 3, 4, 5),
	});
	expect(readImsg({ ...said, is_reaction: true }, "nexus")).toBeUndefined();
	expect(readImsg({ ...said, is_from_me: true }, "nexus")).toBeUndefined();
});

describe("from the Mac", () => {
	let fake: IMessageFake;
	let opened: OpenSession[];
	let folder: string;

	beforeEach(async () => {
		fake = await createIMessageFake();
		opened = [];
		folder = mkdtempSync(join(tmpdir(), "nexus-imessage-test-"));
	});
	afterEach(async () => {
		for (const session of opened) await session.close?.();
		await fake.close();
		rmSync(folder, { recursive: true, force: true });
	});

	async function open(backend: string, state = memory(), more: Record<string, string> = {}): Promise<OpenSession> {
		const settings = { ...fake.settings, backend, imsg_command: fake.imsgCommand, name: "nexus", ...more };
		const session = await openSession(platform, settings, { state });
		opened.push(session);
		return session;
	}

	test.each(["bluebubbles", "imsg"])(
		"%s: what was not safe comes again, the past does not, files are fetched",
		async (backend) => {
			await fake.inject({ text: "long ago" });
			const state = memory();
			state.set("last_row", "1");
			await fake.inject({ text: "one" });
			const first = listenTo(await open(backend, state), unsafe);
			await first.hears(1);
			await first.stop();
			const next = listenTo(await open(backend, state));
			await next.hears(1);
			const filePath = join(folder, "a.txt");
			writeFileSync(filePath, "content");
			await fake.inject({ text: "read", file: Buffer.from("content"), fileName: "a.txt", filePath });
			await next.hears(2);
			await next.stop();
			expect([...first.texts(), ...next.texts()]).toEqual(["one", "one", "read"]);
			expect(first.seen[0]?.eventId).toBe(next.seen[0]?.eventId);
			const data = Buffer.from("content").toString("base64");
			expect(next.seen[1]?.attachments).toEqual([{ name: "a.txt", contentType: "text/plain", data }]);
			expect(state.get("last_row")).toBe("3");
		},
	);

	test("imsg: listening resumes after the cursor, because an earlier row may still come", async () => {
		await fake.inject({ text: "held" });
		const state = memory();
		state.set("last_row", "1");
		await fake.inject({ text: "overtakes", cursor: 1 });
		const { hears, stop } = listenTo(await open("imsg", state));
		await hears(1);
		expect(state.get("last_row")).toBe("1");
		await fake.inject({ text: "next" });
		await until("row 3 is recorded", () => state.get("last_row") === "3");
		await stop();
	});

	test.each(["bluebubbles", "imsg"])("%s: years of messages that the Mac fetches are not answered", async (backend) => {
		const state = memory();
		state.set("last_row", "1");
		await fake.inject({ text: "heard" });
		await fake.inject({ text: "last year", at: Date.now() - 365 * 86_400_000 });
		await fake.inject({ text: "now" });
		const { texts, stop } = listenTo(await open(backend, state));
		await until("row 3 is recorded", () => state.get("last_row") === "3");
		await stop();
		expect(texts()).toEqual(["now"]);
	});

	test.each(["bluebubbles", "imsg"])(
		"%s: what the account writes to itself is not taken for a person's message",
		async (backend) => {
			const state = memory();
			await fake.inject({ text: "before" });
			state.set("last_row", "1");
			const session = await open(backend, state);
			const { texts, stop } = listenTo(session);
			await session.create({ to: OWN_CHAT }, "An answer", sendOptions("n1"));
			await session.create({ to: OWN_CHAT }, "Nexus here: “another”", sendOptions("n2"));
			// A person wrote the same a minute earlier.
			await fake.inject({ text: "An answer", to: OWN_CHAT, at: Date.now() - 60_000 });
			await fake.inject({ text: "hello", to: OWN_CHAT });
			await until("hello is received", () => texts().includes("hello"));
			await stop();
			expect(texts()).toEqual(["An answer", "hello"]);
		},
	);

	test("a person's message with the same short text as the agent's is received", async () => {
		const state = memory();
		state.set("last_row", "0");
		const session = await open("bluebubbles", state);
		await session.create({ to: "iMessage;-;+15550009" }, "OK", sendOptions("n1"));
		const { texts, hears, stop } = listenTo(session);
		await fake.inject({ text: "OK", to: "iMessage;-;+15550009", at: Date.now() + 5000 });
		await hears(1);
		await stop();
		expect(texts()).toEqual(["OK"]);
	});

	test("BlueBubbles: a webhook with what the account wrote to itself brings nothing", async () => {
		const session = await open("bluebubbles", memory(), { webhook_secret: "s3cret" });
		await session.create({ to: OWN_CHAT }, "An answer", sendOptions());
		const copy = fake.messages.find(({ fromMe }) => !fromMe);
		const body = Buffer.from(JSON.stringify({ type: "new-message", data: copy && fake.wire(copy) }));
		const query = new URLSearchParams({ secret: "s3cret" });
		expect(await session.webhook?.({ method: "POST", query, headers: {}, body })).toEqual({
			status: 200,
			messages: [],
		});
	});

	test("imsg: messages that come while no process listens are not lost, also before the first one was received", async () => {
		await fake.inject({ text: "long ago" });
		const state = memory();
		const first = listenTo(await open("imsg", state));
		await until("row 1 is recorded", () => state.get("last_row") === "1");
		await first.stop();
		await fake.inject({ text: "meanwhile" });
		const next = listenTo(await open("imsg", state));
		await next.hears(1);
		expect(next.texts()[0]).toBe("meanwhile");
		await next.stop();
	});

	test("BlueBubbles: listening without a position begins now; a wrong password ends it with the reason", async () => {
		await fake.inject({ text: "long ago" });
		const state = memory();
		const { texts, hears, stop } = listenTo(await open("bluebubbles", state));
		await until("row 1 is recorded", () => state.get("last_row") === "1");
		await fake.inject({ text: "new" });
		await hears(1);
		expect(texts()[0]).toBe("new");
		const wrong = await open("bluebubbles", memory(), { password: "wrong" });
		expect((await faultOf(wrong.monitor?.(unsafe, new AbortController().signal))).fault).toBe("denied");
		await stop();
	});

	test("webhook: the secret of its address decides; a repeated one has the same id", async () => {
		const session = await open("bluebubbles", memory(), { webhook_secret: "s3cret" });
		await fake.inject({ text: "hi" });
		const [said] = fake.messages;
		const body = JSON.stringify({ type: "new-message", data: said && fake.wire(said) });
		const post = (secret: string, text: string, method = "POST") =>
			session.webhook?.({
				method,
				query: new URLSearchParams(secret ? { secret } : {}),
				headers: {},
				body: Buffer.from(text),
			});
		for (let time = 0; time < 2; time++) {
			expect(await post("s3cret", body)).toMatchObject({
				status: 200,
				messages: [{ eventId: said?.guid, text: "hi" }],
			});
		}
		expect(await post("wrong", body)).toMatchObject({ status: 401, messages: [] });
		expect(await post("", body)).toMatchObject({ status: 401, messages: [] });
		expect(await post("s3cret", "{")).toMatchObject({ status: 400, messages: [] });
		expect(await post("s3cret", body, "GET")).toMatchObject({ status: 405, messages: [] });
		expect(await post("s3cret", '{"type":"typing-indicator","data":{}}')).toEqual({ status: 200, messages: [] });
		const closed = await open("bluebubbles");
		const asked = { method: "POST", query: new URLSearchParams("secret="), headers: {}, body: Buffer.from(body) };
		expect(await closed.webhook?.(asked)).toMatchObject({ status: 401 });
	});
});
