import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
	createSmsFake,
	type SmsFake,
	TWILIO_FULL,
	TWILIO_NUMBER,
	TWILIO_SERVICE,
} from "../../../packages/lab/src/sms.ts";
import { platform } from "../../../packages/platforms/src/sms/sms.ts";
import { faultOf, memory, openSession, sendOptions, standingClock } from "../session.ts";

let fake: SmsFake;

beforeEach(async () => {
	fake = await createSmsFake();
});
afterEach(() => fake.close());

const TO = "+15551230001";

const open = (more: Record<string, string> = {}, state = memory()) =>
	openSession(platform, { ...fake.settings, ...more }, { state });

describe("messages", () => {
	test("from the account's number, from the number that was written to, from a messaging service", async () => {
		await (await open()).create({ to: TO }, "one", sendOptions());
		await (await open({ from: "+1999" })).create({ to: TO, from: TWILIO_NUMBER }, "two", sendOptions());
		await (await open({ from: TWILIO_SERVICE })).create({ to: TO }, "three", sendOptions());
		expect(fake.visible(TO)).toEqual(["one", "two", "three"]);
		expect(fake.calls.map(({ body }) => body)).toEqual([
			{ To: TO, Body: "one", From: TWILIO_NUMBER },
			{ To: TO, Body: "two", From: TWILIO_NUMBER },
			{ To: TO, Body: "three", MessagingServiceSid: TWILIO_SERVICE },
		]);
	});

	test("nothing is said that text messages cannot do", async () => {
		const session = await open();
		expect([session.edit, session.typing, session.attach]).toEqual([undefined, undefined, undefined]);
		expect(platform.info.supports).not.toContain("stream");
	});

	test("length: septets while the alphabet allows, else units of UCS-2", () => {
		expect(platform.measure("a".repeat(1600))).toBe(1600);
		expect(platform.measure("€")).toBe(2);
		expect(platform.measure("€🙂")).toBe(3);
	});
});

describe("a message that may have been sent", () => {
	test("is found by its text, once it is listed", async () => {
		const session = await open();
		fake.fault({ kind: "reset_after_accept", count: 1 });
		expect((await faultOf(session.create({ to: TO }, "hello", sendOptions("a")))).fault).toBe("unknown_outcome");
		expect(await session.find?.({ to: TO }, "a", "hell")).toBeUndefined();
		expect(await session.find?.({ to: "+15551230002" }, "a", "hello")).toBeUndefined();
		expect(await session.find?.({ to: TO }, "a", "hello")).toEqual({ messageId: fake.raw(TO)[0]?.sid });
	});

	test("is not another one that says the same, and is the one that its nonce made", async () => {
		const state = memory();
		const { messageId } = await (await open({}, state)).create({ to: TO }, "ok", sendOptions("a"));
		const later = await open({}, state);
		expect(await later.find?.({ to: TO }, "b", "ok")).toBeUndefined();
		expect(await later.find?.({ to: TO }, "a", "ok")).toEqual({ messageId });
	});

	test("I7: is not the same text of an earlier answer that was looked up itself", async () => {
		const state = memory();
		const session = await open({}, state);
		fake.fault({ kind: "reset_after_accept", count: 1 });
		await faultOf(session.create({ to: TO }, "ok", sendOptions("a")));
		const first = await session.find?.({ to: TO }, "a", "ok");
		fake.fault({ kind: "reset_before", count: 1 });
		await faultOf(session.create({ to: TO }, "ok", sendOptions("b")));
		expect(await (await open({}, state)).find?.({ to: TO }, "b", "ok")).toBeUndefined();
		expect(await (await open({}, state)).find?.({ to: TO }, "a", "other")).toEqual(first);
	});

	test("I7: is not an earlier message of unknown origin; without another message in between the look-up cannot decide", async () => {
		const clock = standingClock();
		await fake.close();
		fake = await createSmsFake({ clock });
		const session = await openSession(platform, fake.settings, { state: memory(), clock });
		const lose = (kind: "reset_before" | "reset_after_accept", nonce: string) => {
			fake.fault({ kind, count: 1 });
			return faultOf(session.create({ to: TO }, "ok", sendOptions(nonce)));
		};
		await lose("reset_after_accept", "a");
		clock.pass(60_000);
		await lose("reset_before", "b");
		expect((await faultOf(session.find?.({ to: TO }, "b", "ok"))).message).toContain("does not tell");
		await session.create({ to: TO }, "in between", sendOptions("c"));
		clock.pass(1000);
		await lose("reset_before", "d");
		expect(await session.find?.({ to: TO }, "d", "ok")).toBeUndefined();
		await lose("reset_after_accept", "d");
		expect(await session.find?.({ to: TO }, "d", "ok")).toEqual({ messageId: fake.raw(TO).at(-1)?.sid });
	});

	test("is found behind the words of a trial account", async () => {
		const trial = await createSmsFake({ prefix: "Sent from your Twilio trial account - " });
		trial.fault({ kind: "reset_after_accept", count: 1 });
		const session = await open({ api_url: trial.url });
		await faultOf(session.create({ to: TO }, "hello", sendOptions()));
		expect(await session.find?.({ to: TO }, "n1", "hello")).toEqual({ messageId: trial.raw(TO)[0]?.sid });
		await trial.close();
	});
});

describe("faults", () => {
	test.each([
		["+15005550001", "gone"],
		["+15005550002", "gone"],
		["+15005550003", "denied"],
		["+15005550004", "denied"],
		["+15005550009", "gone"],
		["ann", "gone"],
	])("to %s: %s", async (to, fault) => {
		expect((await faultOf((await open()).create({ to }, "x", sendOptions()))).fault).toBe(fault);
	});

	test("too long and empty are invalid; another's number and a wrong token are denied, with what to do", async () => {
		const session = await open();
		expect((await faultOf(session.create({ to: TO }, "x".repeat(1601), sendOptions()))).fault).toBe("invalid");
		expect((await faultOf(session.create({ to: TO }, " ", sendOptions()))).fault).toBe("invalid");
		const stranger = await faultOf((await open({ from: "+1999" })).create({ to: TO }, "x", sendOptions()));
		expect(stranger).toMatchObject({ fault: "denied", message: expect.stringContaining("`from`") });
		const wrong = await faultOf((await open({ auth_token: "wrong" })).health());
		expect(wrong).toMatchObject({ fault: "denied", message: expect.stringContaining("auth token is wrong") });
		await expect(open({ account_sid: "AC1" })).rejects.toThrow(/account_sid/);
	});

	test("a number whose queue is full has to wait", async () => {
		const full = await faultOf((await open({ from: TWILIO_FULL })).create({ to: TO }, "x", sendOptions()));
		expect(full.fault).toBe("rate_limited");
	});

	test("429 without a time: rate limited, without a wait", async () => {
		fake.fault({ kind: "429", count: 1 });
		const unsaid = await faultOf((await open()).create({ to: TO }, "x", sendOptions()));
		expect(unsaid).toMatchObject({ fault: "rate_limited", retryAfterMs: undefined });
	});
});

test("health says whose account it is, and whether messages come in", async () => {
	expect(await (await open()).health()).toEqual({
		ok: true,
		detail: `Fake account (active), ${TWILIO_NUMBER}, no webhook_url, so nothing comes in`,
	});
});
