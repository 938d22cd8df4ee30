import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { PlatformError } from "../../../packages/adapter/src/kit.ts";
import { createSlackFake, type SlackFake } from "../../../packages/lab/src/slack/slack.ts";
import { platform } from "../../../packages/platforms/src/slack/slack.ts";
import { faultOf, memory, type OpenSession, openSession, sendOptions } from "../session.ts";

let fake: SlackFake;

beforeEach(async () => {
	fake = await createSlackFake({ foreign: ["CFOREIGN"] });
});
afterEach(() => fake.close());

const open = async (settings: Record<string, string> = {}, state = memory()): Promise<Required<OpenSession>> =>
	(await openSession(platform, { ...fake.settings, ...settings }, { state })) as Required<OpenSession>;

const names = () => fake.calls.map(({ name }) => name);
const THREAD = "1700000000.000001";
const inThread = { to: "C1", thread_id: THREAD, user_id: "U1", team_id: "TTEAM" };

describe("messages", () => {
	test("a message is created, edited, and saying the same again is a success", async () => {
		const session = await open();
		const { messageId } = await session.create({ to: "C1" }, "one &amp; two", sendOptions());
		await session.edit({ to: "C1" }, messageId, "&lt;three&gt;", sendOptions());
		await session.edit({ to: "C1" }, messageId, "&lt;three&gt;", sendOptions());
		expect(fake.visible("C1")).toEqual(["<three>"]);
		expect(fake.calls.at(-1)?.body).toMatchObject({ parse: "none" });
	});

	test("an answer goes to the thread that its target names", async () => {
		const session = await open();
		await session.create(inThread, "hi", sendOptions());
		expect(fake.raw("C1")).toMatchObject([{ thread_ts: THREAD, text: "hi" }]);
	});

	test("a person is written to in the direct channel with them, which is opened once", async () => {
		const session = await open();
		const { messageId } = await session.create({ to: "U7" }, "one", sendOptions());
		await session.edit({ to: "U7" }, messageId, "two", sendOptions());
		expect(fake.visible("DU7")).toEqual(["two"]);
		expect(names()).toEqual(["conversations.open", "chat.postMessage", "chat.update"]);
	});

	test("a message that had nothing to say is taken away", async () => {
		const session = await open();
		const { messageId } = await session.create({ to: "C1" }, "⏳", sendOptions());
		await session.remove({ to: "C1" }, messageId, sendOptions());
		expect(fake.visible("C1")).toEqual([]);
		expect(await faultOf(session.remove({ to: "C1" }, messageId, sendOptions()))).toMatchObject({ fault: "gone" });
	});

	test("which tool runs stands where typing does, and is stronger than it", async () => {
		const session = await open();
		await session.typing(inThread, true);
		await session.status(inThread, "is using Read…");
		await session.typing(inThread, true);
		await session.status(inThread, "");
		await session.typing(inThread, false);
		expect(fake.calls.map(({ body }) => (body as { status: string }).status)).toEqual([
			...["is thinking…", "is using Read…", "is using Read…", "is thinking…", ""],
		]);
	});

	test("typing is a status in threads, and nothing elsewhere", async () => {
		const session = await open();
		await session.typing({ to: "C1" }, true);
		await session.typing(inThread, true);
		await session.typing(inThread, false);
		expect(fake.calls.map(({ name, body }) => [name, (body as { status: string }).status])).toEqual([
			["assistant.threads.setStatus", "is thinking…"],
			["assistant.threads.setStatus", ""],
		]);
	});
});

describe("streams", () => {
	test("where: in threads; in channels only when it is known for whom; not when switched off", async () => {
		const session = await open();
		expect(session.style({ to: "D1", thread_id: THREAD })).toBe("append");
		expect(session.style({ to: "D1" })).toBe("edit");
		expect(session.style(inThread)).toBe("append");
		expect(session.style({ to: "C1", thread_id: THREAD })).toBe("edit");
		expect((await open({ streaming: "direct" })).style(inThread)).toBe("edit");
		expect((await open({ streaming: "update" })).style({ to: "D1", thread_id: THREAD })).toBe("edit");
	});

	test("started, appended to, stopped; then it is a message that can be edited", async () => {
		const session = await open();
		const { messageId } = await session.start(inThread, "**one** ", sendOptions());
		expect((await faultOf(session.edit(inThread, messageId, "x", sendOptions()))).message).toContain(
			"streaming_state_conflict",
		);
		await session.append(inThread, messageId, "two", sendOptions());
		await session.stop(inThread, messageId, sendOptions());
		expect(fake.visible("C1")).toEqual(["**one** two"]);
		await session.edit(inThread, messageId, "three", sendOptions());
		expect(fake.visible("C1")).toEqual(["three"]);
		expect(fake.calls[0]?.body).toMatchObject({
			recipient_user_id: "U1",
			recipient_team_id: "TTEAM",
			thread_ts: THREAD,
		});
	});

	test("an agent's text notifies no member, though streams take Slack's own marks", async () => {
		const session = await open();
		const { messageId } = await session.start(inThread, "hi <@U2> and <!chan", sendOptions());
		await session.append(inThread, messageId, "nel> <!--", sendOptions());
		expect(fake.visible("C1")).toEqual(["hi <\u200b@U2> and <!chan\u200bnel> <!--"]);
	});

	test("a stream that Slack has ended refuses more, and is stopped already", async () => {
		const session = await open();
		const { messageId } = await session.start(inThread, "one", sendOptions());
		fake.expireStreams();
		const error = await faultOf(session.append(inThread, messageId, "two", sendOptions()));
		expect([error.fault, error.message]).toEqual(["invalid", "chat.appendStream: message_not_in_streaming_state"]);
		await session.stop(inThread, messageId, sendOptions());
	});

	test("a workspace without native streaming gets messages that are edited, from the same delivery on", async () => {
		await fake.close();
		fake = await createSlackFake({ streaming: false });
		const session = await open();
		const { messageId } = await session.start(inThread, "a & ", sendOptions());
		await session.append(inThread, messageId, "b", sendOptions());
		await session.stop(inThread, messageId, sendOptions());
		expect(fake.visible("C1")).toEqual(["a & b"]);
		expect(names()).toEqual(["chat.startStream", "chat.postMessage", "chat.update"]);
		expect(session.style(inThread)).toBe("edit");
	});

	test.each([404, 405, 501])("a gateway that knows no native streaming (%i) is not asked again", async (status) => {
		fake.fault({
			kind: "gateway",
			call: "chat.startStream",
			answer: { status, body: "<html>Not Found</html>" },
			count: 9,
		});
		const session = await open();
		const { messageId } = await session.start(inThread, "a & ", sendOptions());
		await session.append(inThread, messageId, "b", sendOptions());
		await session.stop(inThread, messageId, sendOptions());
		expect(fake.visible("C1")).toEqual(["a & b"]);
		expect(names()).toEqual(["chat.startStream", "chat.postMessage", "chat.update"]);
		expect(session.style(inThread)).toBe("edit");
	});

	test("what one call does not take is added in several", async () => {
		const session = await open();
		const { messageId } = await session.start(inThread, "x", sendOptions());
		await session.append(inThread, messageId, "y".repeat(25_000), sendOptions());
		expect(fake.visible("C1")[0]).toHaveLength(25_001);
		expect(names()).toEqual(["chat.startStream", ...Array(3).fill("chat.appendStream")]);
	});
});

describe("attachments", () => {
	const file = {
		name: "a file.txt",
		contentType: "text/plain",
		data: Buffer.from("bytes\r\nof it").toString("base64"),
	};

	test("a file is uploaded and shared in the thread", async () => {
		const session = await open();
		const { messageId } = await session.attach(inThread, file, sendOptions());
		expect(fake.raw("C1")).toMatchObject([{ thread_ts: THREAD, files: [{ id: messageId, title: "a file.txt" }] }]);
		expect(fake.visible("C1")).toEqual(["[a file.txt]"]);
	});

	test("I7: whether a file was shared is known in another process too", async () => {
		const state = memory();
		fake.fault({ kind: "reset_after_accept", count: 1, call: "completeUpload" });
		const error = await faultOf((await open({}, state)).attach(inThread, file, sendOptions("n1")));
		expect(error.fault).toBe("unknown_outcome");
		const found = await (await open({}, state)).find(inThread, "n1", "a file.txt");
		expect(found?.messageId).toMatch(/^F/);
		fake.fault({ kind: "reset_before", count: 1, call: "completeUpload" });
		await faultOf((await open({}, state)).attach(inThread, file, sendOptions("n2")));
		expect(await (await open({}, state)).find(inThread, "n2", "a file.txt")).toBeUndefined();
	});

	test("ST26, I7: a file is not shared before it is on record which one it is", async () => {
		const lost = new PlatformError("unavailable", "not on record");
		const state = { ...memory(), recorded: () => Promise.reject(lost) };
		expect(await faultOf((await open({}, state)).attach(inThread, file, sendOptions()))).toBe(lost);
		expect(fake.visible("C1")).toEqual([]);
	});

	test("a failure before the last step is `unavailable`, because nothing was posted", async () => {
		for (const call of ["getUploadURL", "upload"]) {
			fake.fault({ kind: "reset_after_accept", count: 1, call });
			expect((await faultOf((await open()).attach(inThread, file, sendOptions()))).fault).toBe("unavailable");
		}
		expect(fake.visible("C1")).toEqual([]);
	});
});

describe("I7: looking up a message that may have been created", () => {
	/** A session whose account's notes are lost. */
	const forgetful = async (settings: Record<string, string> = {}): Promise<Required<OpenSession>> =>
		(await openSession(platform, { ...fake.settings, ...settings })) as Required<OpenSession>;

	async function loseStart(
		session: Required<OpenSession>,
		text: string,
		nonce: string,
		kind: "reset_before" | "reset_after_accept" = "reset_after_accept",
	): Promise<void> {
		fake.fault({ kind, count: 1, call: "chat.startStream" });
		await faultOf(session.start(inThread, text, sendOptions(nonce)));
	}

	test("by its nonce, in a channel and in a thread", async () => {
		const session = await open();
		for (const target of [{ to: "C1" }, inThread]) {
			fake.fault({ kind: "reset_after_accept", count: 1, call: "chat.postMessage" });
			const error = await faultOf(session.create(target, "said", sendOptions(`x${target.to}`)));
			expect(error.fault).toBe("unknown_outcome");
			const nonce = `x${target.to}`;
			expect(await session.find(target, nonce, "said")).toBeDefined();
		}
		expect(await (await open({ streaming: "update" })).find(inThread, "other", "said")).toBeUndefined();
	});

	test("edits keep the nonce", async () => {
		const session = await open();
		const { messageId } = await session.create({ to: "C1" }, "one", sendOptions("n9"));
		await session.edit({ to: "C1" }, messageId, "two", sendOptions("n9"));
		expect(await session.find({ to: "C1" }, "n9", "two")).toEqual({ messageId });
	});

	test("behind more messages than a page holds", async () => {
		await fake.close();
		fake = await createSlackFake({ rate: "off" });
		const session = await open({ streaming: "update" });
		const { messageId } = await session.create(inThread, "first", sendOptions("n0"));
		for (let index = 0; index < 250; index++)
			await session.create({ ...inThread }, `m${index}`, sendOptions(`m${index}`));
		const other = await forgetful({ streaming: "update" });
		expect(await other.find(inThread, "n0", "first")).toEqual({ messageId });
		expect(await other.find(inThread, "m249", "m249")).toBeDefined();
		expect(names().filter((name) => name === "conversations.replies")).toHaveLength(4);
	});

	test("a stream that was begun carries no nonce yet: it is the one without, if it begins alike", async () => {
		const session = await open();
		const other = await forgetful();
		expect(await other.find(inThread, "n2", "Hello *you*")).toBeUndefined();
		const done = await session.start(inThread, "earlier", sendOptions("n1"));
		await session.stop(inThread, done.messageId, sendOptions("n1"));
		expect(await other.find(inThread, "n2", "Hello *you*")).toBeUndefined();
		await loseStart(session, "Hello **yo", "n2");
		// Without the account's notes the age of the message is unknown.
		expect((await faultOf(other.find(inThread, "n2", "Hello *you*"))).message).toContain("it is unknown whether");
		expect((await faultOf(session.find(inThread, "n2", "Something else"))).message).toContain("it is unknown whether");
		const messageId = (fake.raw("C1") as { ts: string }[]).at(-1)?.ts;
		expect(await session.find(inThread, "n2", "Hello *you*, and more")).toEqual({ messageId });
		await loseStart(session, "Hello", "n3");
		await loseStart(session, "Hello", "n4");
		expect((await faultOf(session.find(inThread, "n3", "Hello *you*"))).message).toContain("it is unknown whether");
	});

	test("a stream of an earlier answer that begins alike and was looked up itself is not it", async () => {
		const session = await open();
		await loseStart(session, "Hello", "n1");
		expect(await session.find(inThread, "n1", "Hello")).toBeDefined();
		await loseStart(session, "Hello", "n2", "reset_before");
		expect(await session.find(inThread, "n2", "Hello")).toBeUndefined();
	});

	test("of streams without a nonce, one that the account knows to be another's is not it", async () => {
		const session = await open();
		await session.start(inThread, "Hello", sendOptions("n1"));
		fake.fault({ kind: "reset_after_accept", count: 1, call: "chat.startStream" });
		await faultOf(session.start(inThread, "Hello", sendOptions("n2")));
		const [, lost] = fake.raw("C1") as { ts: string }[];
		expect(await session.find(inThread, "n2", "Hello")).toEqual({ messageId: lost?.ts });
		expect(await session.find(inThread, "n3", "Hello")).toBeUndefined();
	});
});

describe("refusals", () => {
	const create = async (to: string, text = "x", settings = {}) =>
		faultOf((await open(settings)).create({ to }, text, sendOptions()));

	test.each([
		["a wrong token", () => create("C1", "x", { bot_token: "xoxb-2" }), "denied", "invalid_auth"],
		["no such channel", () => create("nowhere"), "gone", "channel_not_found"],
		["not a member", () => create("CFOREIGN"), "denied", "/invite"],
		["too long", () => create("C1", "x".repeat(40_001)), "invalid", "msg_too_long"],
		["empty", () => create("C1", " "), "invalid", "no_text"],
		[
			"no such message",
			async () => faultOf((await open()).edit({ to: "C1" }, "1.000001", "x", sendOptions())),
			"gone",
			"message_not_found",
		],
	])("%s", async (_, work, fault, words) => {
		const error = await work();
		expect([error.fault, error.message]).toEqual([fault, expect.stringContaining(words)]);
	});

	test("the tier of a method is a 429 too", async () => {
		const session = await open();
		// Ten at once, and one more for every second that it takes.
		const sends = Array.from({ length: 40 }, (_, index) => session.create({ to: "C1" }, `${index}`, sendOptions()));
		const refused = (await Promise.allSettled(sends)).filter(({ status }) => status === "rejected");
		expect(refused.length).toBeGreaterThan(0);
		expect(refused.length).toBeLessThanOrEqual(30);
		for (const each of refused) expect(each).toMatchObject({ reason: { fault: "rate_limited" } });
	});

	test("a setting with an unknown word is refused with the known ones", async () => {
		await expect(open({ threads: "sometimes" })).rejects.toThrow("channels, always, never");
	});
});

describe("health", () => {
	test("says who we are and how events come", async () => {
		expect(await (await open()).health()).toEqual({
			ok: true,
			detail: "@nexus in Fake, Socket Mode and Events API",
		});
		const mute = await open({ app_token: "", signing_secret: "" });
		expect((await mute.health()).detail).toContain("sends only");
		expect(mute.monitor).toBeUndefined();
	});

	test("a wrong app token is found", async () => {
		const error = await faultOf((await open({ app_token: "xapp-2" })).health());
		expect([error.fault, error.message]).toEqual(["denied", expect.stringContaining("apps.connections.open")]);
	});
});
