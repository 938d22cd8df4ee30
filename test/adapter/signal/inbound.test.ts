import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { InboundMessage } from "../../../packages/adapter/src/kit.ts";
import { createSignalFake, SIGNAL_NUMBER, SIGNAL_UUID, type SignalFake } from "../../../packages/lab/src/signal.ts";
import { readEnvelope } from "../../../packages/platforms/src/signal/inbound.ts";
import { platform } from "../../../packages/platforms/src/signal/signal.ts";
import { until } from "../../until.ts";
import { faultOf, memory, openSession } from "../session.ts";

const ME = { number: SIGNAL_NUMBER, uuid: SIGNAL_UUID };

const envelope = (data: object | undefined, more: object = {}) => ({
	envelope: {
		sourceNumber: "+15551230001",
		sourceUuid: "u1",
		sourceName: "Ann",
		timestamp: 1700,
		dataMessage: data && { timestamp: 1700, message: null, ...data },
		...more,
	},
});

const GROUP = { groupInfo: { groupId: "abc=", groupName: "Team" } };

describe("an envelope as a message", () => {
	test("of one person", () => {
		expect(readEnvelope(envelope({ message: "hi" }), ME)).toEqual({
			files: [],
			message: {
				eventId: "u1:1700",
				from: { id: "+15551230001", name: "Ann" },
				chat: { id: "+15551230001", type: "direct" },
				text: "hi",
				target: { to: "+15551230001", direct: true, uuid: "u1" },
				ts: 1700,
			},
		});
	});

	test("of a person who hides their number", () => {
		const found = readEnvelope(envelope({ message: "hi" }, { sourceNumber: null }), ME)?.message;
		expect(found).toMatchObject({ from: { id: "u1" }, target: { to: "u1" } });
	});

	test("in a group: our mention goes and counts, others are named, the answer shows what it answers", () => {
		const mentions = [
			{ name: "Nexus", uuid: SIGNAL_UUID, start: 0, length: 1 },
			{ name: "Bo", uuid: "u2", start: 6, length: 1 },
		];
		const found = readEnvelope(envelope({ message: "￼ ask ￼ now", mentions, ...GROUP }), ME)?.message;
		expect(found).toMatchObject({
			chat: { id: "group:abc=", type: "group", name: "Team" },
			text: "ask @Bo now",
			mention: true,
			target: { to: "group:abc=", direct: false, reply_to: "1700", reply_author: "+15551230001" },
		});
	});

	test("in a group: an answer to us addresses us, anything else does not", () => {
		const quote = { authorUuid: SIGNAL_UUID };
		expect(readEnvelope(envelope({ message: "and?", quote, ...GROUP }), ME)?.message.mention).toBe(true);
		expect(readEnvelope(envelope({ message: "and?", ...GROUP }), ME)?.message.mention).toBe(false);
	});

	test("a reply to another person quotes what it answers", () => {
		const quote = { authorNumber: "+15551230002", authorUuid: "u2", text: "We ship on Friday" };
		const found = readEnvelope(envelope({ message: "why?", quote, ...GROUP }), ME)?.message;
		expect(found).toMatchObject({ text: "why?\n[in reply to +15551230002: We ship on Friday]", mention: false });
		const ours = { authorUuid: SIGNAL_UUID, text: "a" };
		expect(readEnvelope(envelope({ message: "why?", quote: ours }), ME)?.message.text).toBe("why?");
	});

	test.each([
		["a sticker", { sticker: { packId: "p", stickerId: 3 } }, "[sticker]"],
		[
			"a contact",
			{
				contacts: [
					{ name: { given: "Bo", family: "Lee" }, phone: [{ value: "+491", type: "MOBILE" }], organization: null },
				],
			},
			"[contact Bo Lee +491]",
		],
		["a company", { contacts: [{ name: { given: null }, organization: "Acme" }] }, "[contact Acme]"],
	])("%s is described in words", (_, data, text) => {
		expect(readEnvelope(envelope(data), ME)?.message.text).toBe(text);
	});

	test.each([
		["typing", envelope(undefined, { typingMessage: { action: "STARTED" } })],
		["a receipt", envelope(undefined, { receiptMessage: { isRead: true } })],
		["an edit", envelope(undefined, { editMessage: { targetSentTimestamp: 1, dataMessage: { message: "x" } } })],
		["what another device of ours sent", envelope(undefined, { syncMessage: { sentMessage: { message: "x" } } })],
		["our own", envelope({ message: "x" }, { sourceNumber: SIGNAL_NUMBER })],
		["a reaction", envelope({ message: "👍", reaction: { emoji: "👍" } })],
		["a new expiry time", envelope({ isExpirationUpdate: true })],
		["an error of signal-cli", { exception: { message: "x" } }],
		["nothing", undefined],
	])("not read as a message: %s", (_, payload) => {
		expect(readEnvelope(payload, ME)).toBeUndefined();
	});
});

describe("the event stream", () => {
	let fake: SignalFake;
	let stopping: AbortController;

	beforeEach(async () => {
		fake = await createSignalFake();
		stopping = new AbortController();
	});
	afterEach(async () => {
		stopping.abort();
		await fake.close();
	});

	const open = (state = memory(), more: Record<string, string> = {}) =>
		openSession(platform, { ...fake.settings, ...more }, { state });

	test("a message that was not safe comes again; one that was does not; a broken stream is resumed", async () => {
		const state = memory();
		const seen: InboundMessage[] = [];
		// A stream without a position begins now; with any it brings what is kept.
		state.set("last_event", "0-0");
		const first = new AbortController();
		const never = (await open(state)).monitor?.((message) => {
			seen.push(message);
			return new Promise(() => {});
		}, first.signal);
		await fake.inject({ text: "one" });
		await until("one message is received", () => seen.length === 1);
		first.abort();
		await never;
		const going = (await open(state)).monitor?.(async (message) => void seen.push(message), stopping.signal);
		await until("2 messages are received", () => seen.length === 2);
		fake.dropEvents();
		await fake.inject({ text: "two" });
		await until("3 messages are received", () => seen.length === 3);
		stopping.abort();
		await going;
		expect(seen.map(({ text }) => text)).toEqual(["one", "one", "two"]);
		expect(seen[0]?.eventId).toBe(seen[1]?.eventId);
	});

	test("attachments are fetched", async () => {
		const seen: InboundMessage[] = [];
		const state = memory();
		state.set("last_event", "0-0");
		await fake.inject({ text: "read", file: Buffer.from("content"), fileName: "a.txt" });
		await fake.inject({ text: "gone", attachments: [{ id: "404", contentType: "text/plain" }] });
		const going = (await open(state)).monitor?.(async (message) => void seen.push(message), stopping.signal);
		await until("2 messages are received", () => seen.length === 2);
		stopping.abort();
		await going;
		const data = Buffer.from("content").toString("base64");
		expect(seen[0]?.attachments).toEqual([{ name: "a.txt", contentType: "text/plain", data }]);
		expect(seen[1]?.text).toMatch(/^gone\n\[attachment 404 could not be fetched: getAttachment: -1/);
	});

	test("a message is not lost when our own id cannot be asked for", async () => {
		await fake.close();
		fake = await createSignalFake({ lookup: false });
		const seen: InboundMessage[] = [];
		const state = memory();
		state.set("last_event", "0-0");
		const mentions = [{ number: SIGNAL_NUMBER, uuid: "u", start: 0, length: 1 }];
		await fake.inject({ text: "\uFFFC hi", to: "group:abc=", mentions });
		const going = (await open(state)).monitor?.(async (message) => void seen.push(message), stopping.signal);
		await until("one message is received", () => seen.length === 1);
		stopping.abort();
		await going;
		expect(seen).toMatchObject([{ text: "hi", mention: true }]);
	});

	test("an unknown number ends it with the reason", async () => {
		const session = await open(memory(), { number: "+15005550999" });
		expect((await faultOf(session.monitor?.(async () => {}, stopping.signal))).fault).toBe("denied");
	});
});
