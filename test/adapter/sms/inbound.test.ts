import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { WebhookAnswer } from "../../../packages/adapter/src/kit.ts";
import { createSmsFake, type SmsFake, TWILIO_NUMBER } from "../../../packages/lab/src/sms.ts";
import { readMessage } from "../../../packages/platforms/src/sms/inbound.ts";
import { platform } from "../../../packages/platforms/src/sms/sms.ts";
import { type OpenSession, openSession } from "../session.ts";

const HOOK = "https://example.org/hook?account=a";

let fake: SmsFake;
let session: OpenSession;

beforeEach(async () => {
	fake = await createSmsFake();
	session = await openSession(platform, { ...fake.settings, webhook_url: HOOK });
});
afterEach(() => fake.close());

const post = (
	fields: URLSearchParams,
	signature: string | undefined,
	method = "POST",
): Promise<WebhookAnswer> | undefined =>
	session.webhook?.({
		method,
		query: new URLSearchParams("account=a"),
		headers: signature === undefined ? {} : { "x-twilio-signature": signature },
		body: Buffer.from(fields.toString()),
	});

describe("the webhook", () => {
	test("a signed message is taken, answered with an empty response, and has the same id when it comes again", async () => {
		const fields = fake.fieldsOf({ text: "hi & bye + 🙂" });
		const expected = {
			status: 200,
			headers: { "content-type": "text/xml" },
			body: expect.stringContaining("<Response></Response>"),
			messages: [
				{
					eventId: fields.get("MessageSid"),
					from: { id: "+15551230001" },
					chat: { id: "+15551230001", type: "direct" },
					text: "hi & bye + 🙂",
					target: { to: "+15551230001", direct: true, from: TWILIO_NUMBER },
				},
			],
		};
		expect(await post(fields, fake.sign(HOOK, fields))).toMatchObject(expected);
		expect(await post(fields, fake.sign(HOOK, fields))).toMatchObject(expected);
	});

	test("no, a wrong, or another address's signature is refused, and so is a changed body", async () => {
		const fields = fake.fieldsOf({ text: "hi" });
		const good = fake.sign(HOOK, fields);
		const changed = new URLSearchParams(fields);
		changed.set("Body", "transfer all the money");
		for (const [body, signature] of [
			[fields, undefined],
			[fields, "wrong"],
			[fields, fake.sign("https://example.org/other", fields)],
			[changed, good],
		] as const) {
			expect(await post(body, signature)).toMatchObject({ status: 403, messages: [] });
		}
		expect(await post(fields, good, "GET")).toMatchObject({ status: 405, messages: [] });
	});

	test("media are fetched with the account's credentials, and only from Twilio", async () => {
		const fields = fake.fieldsOf({ text: "look", media: Buffer.from("picture") });
		const answer = await post(fields, fake.sign(HOOK, fields));
		const data = Buffer.from("picture").toString("base64");
		expect(answer?.messages[0]?.attachments).toEqual([{ name: "media1.png", contentType: "image/png", data }]);
		fields.set("MediaUrl0", "https://elsewhere.example/secret");
		const stranger = await post(fields, fake.sign(HOOK, fields));
		expect(stranger?.messages[0]?.text).toBe(
			"look\n[attachment media1.png could not be fetched: it is not kept at Twilio]",
		);
	});
});

describe("a message that was taken and did not arrive", () => {
	const report = (more: Record<string, string>) =>
		new URLSearchParams({
			MessageSid: "SM1",
			SmsStatus: "undelivered",
			From: TWILIO_NUMBER,
			To: "+15551230001",
			...more,
		});

	test("is reported with its cause, because its status was requested", async () => {
		await session.create({ to: "+15551230001" }, "hello", {
			nonce: "n1",
			final: true,
			signal: AbortSignal.timeout(9000),
		});
		expect(fake.calls.at(-1)?.body).toMatchObject({ StatusCallback: HOOK });
		const fields = report({ MessageStatus: "undelivered", ErrorCode: "30005" });
		expect(await post(fields, fake.sign(HOOK, fields))).toMatchObject({
			status: 200,
			messages: [],
			failures: [{ messageId: "SM1", error: "undelivered, 30005: the number does not exist" }],
		});
	});

	test.each(["queued", "sent", "delivered"])("%s is not a failure", async (MessageStatus) => {
		const fields = report({ MessageStatus });
		expect(await post(fields, fake.sign(HOOK, fields))).toMatchObject({ status: 200, failures: [] });
	});
});

test.each([
	["a delivery report", { SmsStatus: "delivered", MessageStatus: "delivered" }],
	["STOP, which Twilio answers itself", { OptOutType: "STOP" }],
	["our own number", { From: TWILIO_NUMBER }],
	["an empty text", { Body: " " }],
])("not read as a message: %s", (_, fields) => {
	expect(readMessage(fake.fieldsOf({ text: "x", ...fields }), 0)).toBeUndefined();
});
