import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type InboundMessage, PlatformError } from "../../../packages/adapter/src/kit.ts";
import { createSlackFake, PATIENT, type SlackFake } from "../../../packages/lab/src/slack/slack.ts";
import { openRequest } from "../../../packages/platforms/src/slack/inbound.ts";
import { platform } from "../../../packages/platforms/src/slack/slack.ts";
import { systemClock } from "../../../packages/protocol/src/clock.ts";
import { type OpenSession, openSession } from "../session.ts";

let fake: SlackFake;
let stop = new AbortController();

beforeEach(async () => {
	fake = await createSlackFake(PATIENT);
	stop = new AbortController();
});
afterEach(async () => {
	stop.abort();
	await fake.close();
});

const open = async (settings: Record<string, string> = {}): Promise<Required<OpenSession>> =>
	(await openSession(platform, { ...fake.settings, ...settings }, { clock: systemClock })) as Required<OpenSession>;

describe("Socket Mode", () => {
	test("a message is confirmed only after it is safe", async () => {
		const order: string[] = [];
		const session = await open();
		void session.monitor(async ({ text }) => {
			await new Promise((resolve) => setTimeout(resolve, 50));
			order.push(`safe ${text}`);
		}, stop.signal);
		await fake.inject({ text: "hello" });
		order.push("confirmed");
		expect(order).toEqual(["safe hello", "confirmed"]);
	});

	test("one that was not confirmed comes again, with the same id", async () => {
		await fake.close();
		fake = await createSlackFake();
		const heard: string[] = [];
		const session = await open();
		void session.monitor(async ({ eventId }) => {
			heard.push(eventId);
			if (heard.length === 1) throw new Error("not safe");
		}, stop.signal);
		await fake.inject({ text: "hello" });
		// On a slow machine it may come once more before its confirmation does.
		expect(heard.length).toBeGreaterThanOrEqual(2);
		expect(new Set(heard).size).toBe(1);
	});

	test("a connection that breaks is opened again", async () => {
		const heard: string[] = [];
		const session = await open();
		void session.monitor(async ({ text }) => void heard.push(text), stop.signal);
		await fake.inject({ text: "one" });
		fake.dropSockets();
		await fake.inject({ text: "two" });
		expect(heard).toEqual(["one", "two"]);
	});

	test("a wrong app token ends listening with what to do", async () => {
		const listening = (await open({ app_token: "xapp-2" })).monitor(async () => {}, stop.signal);
		const error = await listening.catch((cause: unknown) => cause);
		expect(error).toBeInstanceOf(PlatformError);
		expect((error as PlatformError).message).toContain("api.slack.com");
	});

	test("files are fetched with our token; too large ones, and ones elsewhere, are named", async () => {
		const heard: InboundMessage[] = [];
		const session = await open();
		void session.monitor(async (message) => void heard.push(message), stop.signal);
		const small = { name: "a.txt", contentType: "text/plain", data: Buffer.from("hi") };
		const large = { name: "b.bin", contentType: "application/zip", data: Buffer.alloc(2_600_000) };
		await fake.inject({ text: "look", files: [small, large] });
		const elsewhere = [{ name: "c.txt", mimetype: "text/plain", size: 1, url_private: "https://evil.example/c" }];
		expect(heard[0]).toMatchObject({
			text: "look\n[attachment b.bin is too large: 2600000 bytes]",
			attachments: [{ name: "a.txt", contentType: "text/plain", data: "aGk=" }],
		});
		const { headers, body } = fake.signed({
			type: "event_callback",
			event: {
				type: "message",
				channel: "D1",
				channel_type: "im",
				user: "U1",
				text: "",
				ts: "2.000001",
				files: elsewhere,
			},
		});
		const answer = await session.webhook({ method: "POST", query: new URLSearchParams(), headers, body });
		expect(answer.messages[0]?.text).toBe("[attachment c.txt could not be fetched: it is not kept at Slack]");
	});

	test("without the scope for files, Slack's page for signing in is not taken for the file", async () => {
		const deaf = await createSlackFake({ ...PATIENT, filesRead: false });
		try {
			const heard: InboundMessage[] = [];
			const session = await openSession(platform, deaf.settings, { clock: systemClock });
			void session.monitor?.(async (message) => void heard.push(message), stop.signal);
			await deaf.inject({
				text: "look",
				files: [{ name: "a.png", contentType: "image/png", data: Buffer.from("hi") }],
			});
			expect(heard[0]?.attachments).toBeUndefined();
			expect(heard[0]?.text).toMatch(/^look\n\[attachment a\.png could not be fetched: .*files:read/);
		} finally {
			stop.abort();
			await deaf.close();
		}
	});
});

describe("Events API", () => {
	const post = async (session: OpenSession, request: { headers: Record<string, string>; body: Buffer }) =>
		session.webhook?.({ method: "POST", query: new URLSearchParams(), ...request });

	test("a signed event brings its message; redelivered, the same one", async () => {
		const session = await open();
		const request = fake.signed(fake.event({ text: "hello", to: "C1" }));
		const answers = [await post(session, request), await post(session, request)];
		expect(answers[0]).toMatchObject({ status: 200, messages: [{ text: "hello", chat: { id: "C1" } }] });
		expect(answers[1]?.messages).toEqual(answers[0]?.messages);
	});

	test("the address is verified by saying the challenge", async () => {
		const request = fake.signed({ type: "url_verification", challenge: "3eZbrw1aB" });
		expect(await post(await open(), request)).toMatchObject({ status: 200, body: "3eZbrw1aB", messages: [] });
	});

	test.each([
		["another secret", 0, { secret: "other" }],
		["more than five minutes old", -301_000, {}],
		["more than five minutes ahead", 310_000, {}],
	])("refused: %s", async (_, offMs, options) => {
		const request = fake.signed(fake.event({ text: "hello" }), { at: Date.now() + offMs, ...options });
		expect(await post(await open(), request)).toMatchObject({ status: 401, messages: [] });
	});

	test("refused: a changed body, no headers, an account without a secret, another method", async () => {
		const session = await open();
		const request = fake.signed(fake.event({ text: "hello" }));
		const changed = Buffer.from(request.body.toString().replace("hello", "jello"));
		expect(await post(session, { ...request, body: changed })).toMatchObject({ status: 401 });
		expect(await post(session, { ...request, headers: {} })).toMatchObject({ status: 401 });
		expect(await post(await open({ signing_secret: "" }), request)).toMatchObject({ status: 401 });
		const get = { method: "GET", query: new URLSearchParams(), ...request };
		expect(await session.webhook(get)).toMatchObject({ status: 405 });
	});

	test("signed by Slack's own example", () => {
		const body =
			"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
		const headers = {
			"x-slack-request-timestamp": "1531420618",
			"x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
		};
		const request = { method: "POST", query: new URLSearchParams(), headers, body: Buffer.from(body) };
		// The signature holds, but the body is a command and not JSON.
		expect(openRequest(request, "8f742231b10e8888abcd99yyyzzz85a5", 1531420618_000)).toMatchObject({ status: 400 });
		expect(openRequest(request, "8f742231b10e8888abcd99yyyzzz85a6", 1531420618_000)).toMatchObject({ status: 401 });
	});
});
