import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createSignalFake, SIGNAL_NUMBER, type SignalFake } from "../../../packages/lab/src/signal.ts";
import { platform } from "../../../packages/platforms/src/signal/signal.ts";
import { faultOf, memory, openSession, sendOptions } from "../session.ts";

let fake: SignalFake;

beforeEach(async () => {
	fake = await createSignalFake();
});
afterEach(() => fake.close());

const TO = "+15551230001";

const open = (more: Record<string, string> = {}, state = memory()) =>
	openSession(platform, { ...fake.settings, ...more }, { state });

describe("messages", () => {
	test("are created and edited; an edit refers to the newest revision, also after a restart", async () => {
		const state = memory();
		const session = await open({}, state);
		const { messageId } = await session.create({ to: TO }, "one", sendOptions());
		await session.edit?.({ to: TO }, messageId, "two", sendOptions());
		await (await open({}, state)).edit?.({ to: TO }, messageId, "three", sendOptions());
		expect(fake.visible(TO)).toEqual(["three"]);
		const [message] = fake.raw(TO);
		expect(message?.timestamps[0]).toBe(Number(messageId));
		expect(fake.calls.map(({ body }) => (body as { editTimestamp?: number }).editTimestamp)).toEqual([
			undefined,
			message?.timestamps[0],
			message?.timestamps[1],
		]);
	});

	test("to a group, and showing what they answer", async () => {
		const target = { to: "group:abc=", reply_to: "1700", reply_author: "+15551230002" };
		await (await open()).create(target, "hi", sendOptions());
		expect(fake.raw("group:abc=")[0]?.quote).toEqual({ timestamp: 1700, author: "+15551230002" });
	});

	test("drafts are for those who want them", async () => {
		expect((await open()).style?.({ to: TO })).toBe("whole");
		expect((await open({ drafts: "true" })).style?.({ to: TO })).toBe("edit");
	});

	test("typing is shown and hidden", async () => {
		const session = await open();
		await session.typing?.({ to: TO }, true);
		expect(fake.isTyping(TO)).toBe(true);
		await session.typing?.({ to: TO }, false);
		expect(fake.isTyping(TO)).toBe(false);
	});

	test("attachments go as data with their name", async () => {
		const file = {
			name: "a;b,c.txt",
			contentType: "text/plain; charset=utf-8",
			data: Buffer.from("hi").toString("base64"),
		};
		await (await open()).attach?.({ to: TO }, file, sendOptions());
		expect(fake.raw(TO)[0]?.file).toEqual({ name: "a_b_c.txt", contentType: "text/plain", data: Buffer.from("hi") });
	});

	test("length counts bytes, as Signal's limit does", () => {
		expect(platform.measure("ä🙂")).toBe(6);
	});
});

describe("faults", () => {
	test.each([
		["not registered", "+404", "gone"],
		["not registered any more", "+410", "gone"],
		["no such group", "group:404", "gone"],
		["a changed safety number", "+403", "denied"],
		["signal-cli could not reach Signal", "+503", "unknown_outcome"],
	])("%s", async (_, to, fault) => {
		expect((await faultOf((await open()).create({ to }, "x", sendOptions()))).fault).toBe(fault);
	});

	test("an empty message is invalid, another number denied, a wrong setting said at once", async () => {
		expect((await faultOf((await open()).create({ to: TO }, "", sendOptions()))).fault).toBe("invalid");
		const stranger = await open({ number: "+15005550999" });
		expect((await faultOf(stranger.create({ to: TO }, "x", sendOptions()))).fault).toBe("denied");
		await expect(open({ number: "0151" })).rejects.toThrow(/country code/);
	});
});

test("health says whether the number is registered", async () => {
	expect(await (await open()).health()).toEqual({ ok: true, detail: `${SIGNAL_NUMBER}, drafts off` });
});
