import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createWhatsAppFake, type WhatsAppFake } from "../../../packages/lab/src/whatsapp.ts";
import { platform } from "../../../packages/platforms/src/whatsapp/whatsapp.ts";
import { manualClock } from "../../clock.ts";
import { faultOf, memory, type OpenSession, openSession, sendOptions } from "../session.ts";

let fake: WhatsAppFake;

beforeEach(async () => {
	fake = await createWhatsAppFake();
});
afterEach(() => fake.close());

const open = async (settings: Record<string, string> = {}, state = memory()): Promise<Required<OpenSession>> =>
	(await openSession(platform, { ...fake.settings, ...settings }, { state })) as Required<OpenSession>;

const ANN = { to: "15550001", reply_to: "wamid.IN1", direct: true };

describe("messages", () => {
	test("a message carries its nonce; a number may be written as people write it", async () => {
		const session = await open();
		await session.create({ to: "+1 555-0001" }, "hello *you*", sendOptions("n7"));
		expect(fake.raw("15550001")).toMatchObject([{ type: "text", text: "hello *you*", nonce: "n7" }]);
		expect(fake.raw("15550001")[0]?.quoted).toBeUndefined();
	});

	test("a person whose number is hidden is written to by their id, which is not a number", async () => {
		const session = await open();
		await session.create({ to: "US.13491208655302741918" }, "hi", sendOptions("n8"));
		expect(fake.raw("US.13491208655302741918")).toMatchObject([{ text: "hi", nonce: "n8" }]);
		expect(fake.calls[0]?.body).toMatchObject({ recipient: "US.13491208655302741918" });
		expect(fake.calls[0]?.body).not.toHaveProperty("to");
	});

	test("the message that is answered is quoted when that is wished", async () => {
		await (await open({ quote: "true" })).create(ANN, "yes", sendOptions());
		expect(fake.raw(ANN.to)).toMatchObject([{ quoted: "wamid.IN1" }]);
	});

	test("there is no editing", async () => {
		expect((await open()).edit).toBeUndefined();
	});

	test("typing answers a message, and ends by itself", async () => {
		const session = await open();
		await session.typing(ANN, true);
		await session.typing(ANN, false);
		await session.typing({ to: "15550001" }, true);
		expect(fake.calls.map(({ name, body }) => [name, body])).toEqual([
			[
				"typing",
				{
					messaging_product: "whatsapp",
					status: "read",
					message_id: "wamid.IN1",
					typing_indicator: { type: "text" },
				},
			],
		]);
	});
});

describe("attachments", () => {
	const send = async (contentType: string) => {
		const data = Buffer.from("bytes\r\n--of it").toString("base64");
		return (await open()).attach(ANN, { name: "a file.bin", contentType, data }, sendOptions("n8"));
	};

	test.each([
		["application/pdf", "document"],
		["image/png", "image"],
		["audio/ogg", "audio"],
		["audio/ogg; codecs=opus", "audio"],
		["video/mp4", "video"],
	])("%s goes as %s", async (contentType, type) => {
		await send(contentType);
		const [message] = fake.raw(ANN.to);
		expect(message).toMatchObject({ type, nonce: "n8", media: { name: "a file.bin", contentType } });
		expect(message?.media?.data.toString()).toBe("bytes\r\n--of it");
	});

	test.each(["text/csv", "application/json; charset=utf-8", "text/markdown"])("%s goes as plain text", async (kind) => {
		await send(kind);
		expect(fake.raw(ANN.to)).toMatchObject([
			{ type: "document", media: { name: "a file.bin", contentType: "text/plain" } },
		]);
	});

	test("what WhatsApp does not take is refused with what it takes", async () => {
		const error = await faultOf(send("image/gif"));
		expect(error).toMatchObject({ fault: "invalid", message: expect.stringContaining("image/jpeg") });
	});

	test("an upload without an answer is `unavailable`, because nothing was sent", async () => {
		fake.fault({ kind: "reset_after_accept", count: 1, call: "media" });
		expect((await faultOf(send("image/png"))).fault).toBe("unavailable");
		expect(fake.visible(ANN.to)).toEqual([]);
	});
});

describe("I7: looking up a message that may have been sent", () => {
	test("its status names the nonce, in whichever process it comes", async () => {
		const state = memory();
		fake.fault({ kind: "reset_after_accept", count: 1, call: "messages" });
		const error = await faultOf((await open({}, state)).create(ANN, "once", sendOptions("n9")));
		expect(error.fault).toBe("unknown_outcome");
		const [message] = fake.raw(ANN.to);
		if (!message) throw new Error("the fake took it");
		const listener = await open({}, state);
		await listener.webhook({ query: new URLSearchParams(), ...fake.signed(fake.status(message, "sent")) });
		expect(await (await open({}, state)).find(ANN, "n9", "once")).toEqual({ messageId: message.id });
	});

	test("one whose answer came is known without a status", async () => {
		const state = memory();
		const { messageId } = await (await open({}, state)).create(ANN, "once", sendOptions("n9"));
		expect(await (await open({}, state)).find(ANN, "n9", "once")).toEqual({ messageId });
	});

	test("without a status the look-up cannot decide, and reports that", async () => {
		let now = 0;
		const clock = {
			now: () => now,
			after(ms: number, work: () => void) {
				now += ms;
				queueMicrotask(work);
				return () => {};
			},
		};
		const session = (await openSession(platform, fake.settings, { clock })) as Required<OpenSession>;
		const error = await faultOf(session.find(ANN, "n9", "once"));
		expect([error.fault, error.message]).toEqual(["invalid", expect.stringContaining("No status")]);
	});
});

describe("refusals", () => {
	const create = async (text = "x", settings = {}, to = ANN.to) =>
		faultOf((await open(settings)).create({ to }, text, sendOptions()));

	test.each([
		["a wrong token", () => create("x", { access_token: "EAAG-2" }), "denied", "system user"],
		["a wrong number id", () => create("x", { phone_number_id: "5" }), "denied", "phone_number_id"],
		["too long", () => create("x".repeat(4097)), "invalid", "4096"],
		["empty", () => create(" "), "invalid", "required"],
		["no such person", () => create("x", {}, "12"), "gone", "not on WhatsApp"],
	])("%s", async (_, work, fault, words) => {
		const error = await work();
		expect([error.fault, error.message]).toEqual([fault, expect.stringContaining(words)]);
	});

	test("a closed 24 hour window is explained", async () => {
		fake.closeWindow(ANN.to);
		const error = await create();
		expect(error.fault).toBe("invalid");
		expect(error.message).toContain("(131047)");
		expect(error.message).toContain("24 hours");
	});

	test("131056 slows one chat, longer every time, until a message is taken", async () => {
		await fake.close();
		const clock = manualClock(1000);
		fake = await createWhatsAppFake({ pairRate: [1, 6000], clock });
		const session = await open();
		await session.create(ANN, "one", sendOptions());
		const waits: unknown[] = [];
		for (let count = 0; count < 3; count++) {
			const error = await faultOf(session.create(ANN, "two", sendOptions()));
			expect([error.fault, error.message]).toEqual(["unavailable", expect.stringContaining("131056")]);
			waits.push(error.retryAfterMs);
		}
		expect(waits).toEqual([6000, 12_000, 24_000]);
		await session.create({ to: "15550002" }, "others go on", sendOptions());
		clock.advance(6000);
		await session.create(ANN, "two", sendOptions());
		expect((await faultOf(session.create(ANN, "three", sendOptions()))).retryAfterMs).toBe(6000);
	});

	test("a number in place of its id is refused with what is meant", async () => {
		await expect(open({ phone_number_id: "+1 555" })).rejects.toThrow("the number's id");
	});
});

describe("health", () => {
	test("says who we are, and what is missing", async () => {
		expect(await (await open()).health()).toEqual({ ok: true, detail: "Fake +1 555 0100, quality GREEN" });
		expect((await (await open({ app_secret: "" })).health()).detail).toContain("set app_secret");
		expect((await faultOf((await open({ access_token: "x" })).health())).fault).toBe("denied");
	});

	test("names the last message that was taken and not delivered", async () => {
		const session = await open();
		await session.create(ANN, "late", sendOptions("n1"));
		const [message] = fake.raw(ANN.to);
		if (!message) throw new Error("the fake took it");
		const failed = fake.status(message, "failed", [{ code: 131047, title: "Re-engagement message" }]);
		const { failures } = await session.webhook({ query: new URLSearchParams(), ...fake.signed(failed) });
		expect(failures).toEqual([{ messageId: message.id, nonce: "n1", error: expect.stringContaining("24 hours") }]);
		expect((await session.health()).detail).toMatch(
			/last message that was not delivered: to 15550001: \(131047\).*24 hours/,
		);
	});
});
