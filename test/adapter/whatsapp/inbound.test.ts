import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createWhatsAppFake, type WebhookCall, type WhatsAppFake } from "../../../packages/lab/src/whatsapp.ts";
import { readPayload } from "../../../packages/platforms/src/whatsapp/inbound.ts";
import { platform } from "../../../packages/platforms/src/whatsapp/whatsapp.ts";
import { type OpenSession, openSession } from "../session.ts";

let fake: WhatsAppFake;
let session: Required<OpenSession>;

beforeEach(async () => {
	fake = await createWhatsAppFake();
	session = (await openSession(platform, fake.settings)) as Required<OpenSession>;
});
afterEach(() => fake.close());

const post = (call: WebhookCall) => session.webhook({ query: new URLSearchParams(), ...call });
const read = (fields: object) =>
	readPayload(
		fake.payload({ text: "hi", id: "wamid.IN9", at: 1_700_000_000_000, ...fields }),
		"1066100",
		1_700_000_000_000,
	).inbound;

describe("what is a message", () => {
	test("a text", () => {
		expect(read({})).toEqual([
			{
				files: [],
				message: {
					eventId: "wamid.IN9",
					from: { id: "15550001", name: "Ann" },
					chat: { id: "15550001", type: "direct" },
					text: "hi",
					target: { to: "15550001", reply_to: "wamid.IN9", direct: true },
					ts: 1_700_000_000_000,
				},
			},
		]);
	});

	test("of a person who goes by a username: named by the id that WhatsApp gives instead of the number", () => {
		const [inbound] = read({ from: "US.13491208655302741918" });
		expect(inbound?.message).toMatchObject({
			from: { id: "US.13491208655302741918", name: "Ann" },
			chat: { id: "US.13491208655302741918", type: "direct" },
			target: { to: "US.13491208655302741918", direct: true },
		});
	});

	test.each([
		["a button", { type: "button", button: { text: "Yes" } }, "Yes"],
		["a choice", { type: "interactive", interactive: { list_reply: { title: "Two" } } }, "Two"],
		[
			"a place",
			{ type: "location", location: { latitude: 1.5, longitude: 2, name: "Home" } },
			"[location 1.5, 2 Home]",
		],
		[
			"a contact",
			{
				type: "contacts",
				contacts: [{ name: { formatted_name: "Bo" }, phones: [{ phone: "+1" }] }],
			},
			"[contact Bo +1]",
		],
	])("%s", (_, fields, expected) => {
		expect(read({ ...fields, text: "" }).map(({ message }) => message.text)).toEqual([expected]);
	});

	test.each([
		["a reaction", { type: "reaction", reaction: { emoji: "👍" } }],
		["a change of number", { type: "system", system: { body: "changed" } }],
		["what WhatsApp cannot show", { type: "unsupported" }],
	])("not: %s", (_, fields) => {
		expect(read({ ...fields, text: "" })).toEqual([]);
	});

	test("not: groups, other numbers, other objects, and copies of old requests", () => {
		expect(read({ group_id: "g1" })).toEqual([]);
		expect(readPayload(fake.payload({ text: "hi" }), "other", Date.now()).inbound).toEqual([]);
		expect(readPayload({ object: "page" }, "1066100", Date.now()).inbound).toEqual([]);
		expect(readPayload(null, "1066100", Date.now()).inbound).toEqual([]);
		expect(read({ at: 1_700_000_000_000 - 8 * 24 * 3_600_000 })).toEqual([]);
	});
});

describe("the webhook", () => {
	test("a signed request brings its message; redelivered, the same one", async () => {
		const call = fake.signed(fake.payload({ text: "hello" }));
		const answers = [await post(call), await post(call)];
		expect(answers[0]).toMatchObject({ status: 200, messages: [{ text: "hello", from: { name: "Ann" } }] });
		expect(answers[1]?.messages).toEqual(answers[0]?.messages);
	});

	test("refused: another secret, a changed body, no signature, an account without a secret, another method", async () => {
		const call = fake.signed(fake.payload({ text: "hello" }));
		const changed = Buffer.from(call.body.toString().replace("hello", "jello"));
		expect(await post(fake.signed(fake.payload({ text: "hello" }), "other"))).toMatchObject({
			status: 401,
			messages: [],
		});
		expect(await post({ ...call, body: changed })).toMatchObject({ status: 401 });
		expect(await post({ ...call, headers: {} })).toMatchObject({ status: 401 });
		expect(await post({ ...call, method: "PUT" })).toMatchObject({ status: 405 });
		session = (await openSession(platform, { ...fake.settings, app_secret: "" })) as Required<OpenSession>;
		expect(await post(call)).toMatchObject({ status: 401 });
	});

	test("the address is verified by the verify token", async () => {
		const verify = (token: string, mode = "subscribe") =>
			session.webhook({
				method: "GET",
				query: new URLSearchParams({ "hub.mode": mode, "hub.verify_token": token, "hub.challenge": "1158201444" }),
				headers: {},
				body: Buffer.alloc(0),
			});
		expect(await verify("my-word")).toMatchObject({ status: 200, body: "1158201444" });
		expect(await verify("another")).toMatchObject({ status: 403 });
		expect(await verify("my-word", "other")).toMatchObject({ status: 403 });
		session = (await openSession(platform, { ...fake.settings, verify_token: "" })) as Required<OpenSession>;
		expect(await verify("")).toMatchObject({ status: 403 });
	});

	test("media are fetched with our token; too large ones are named", async () => {
		const media = { kind: "document", name: "a.pdf", contentType: "application/pdf", data: Buffer.from("hi") };
		const small = await post(fake.signed(fake.payload({ text: "look", media })));
		expect(small.messages).toMatchObject([
			{ text: "look", attachments: [{ name: "a.pdf", contentType: "application/pdf", data: "aGk=" }] },
		]);
		const voice = { kind: "audio", contentType: "audio/ogg; codecs=opus", data: Buffer.alloc(2_600_000) };
		const large = await post(fake.signed(fake.payload({ text: "", media: voice })));
		expect(large.messages).toMatchObject([
			{ text: "[attachment audio.ogg could not be fetched: it has 2600000 bytes]" },
		]);
	});
});
