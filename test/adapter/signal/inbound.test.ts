import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createSignalFake, SIGNAL_NUMBER, SIGNAL_UUID, type SignalFake } from "../../../packages/lab/src/signal.ts";
import { readEnvelope } from "../../../packages/platforms/src/signal/inbound.ts";
import { platform } from "../../../packages/platforms/src/signal/signal.ts";
import { faultOf, listenTo, memory, openSession, unsafe } from "../session.ts";

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

	beforeEach(async () => {
		fake = await createSignalFake();
	});
	afterEach(() => fake.close());

	const open = (state = fromTheBeginning(), more: Record<string, string> = {}) =>
		openSession(platform, { ...fake.settings, ...more }, { state });

	/** A stream without a position begins now; with any it brings what is kept. */
	const fromTheBeginning = () => {
		const state = memory();
		state.set("last_event", "0-0");
		return state;
	};

	test("a message that was not safe comes again; one that was does not; a broken stream is resumed", async () => {
		const state = fromTheBeginning();
		const first = listenTo(await open(state), unsafe);
		await fake.inject({ text: "one" });
		await first.hears(1);
		await first.stop();
		const next = listenTo(await open(state));
		await next.hears(1);
		fake.dropEvents();
		await fake.inject({ text: "two" });
		await next.hears(2);
		await next.stop();
		expect([...first.texts(), ...next.texts()]).toEqual(["one", "one", "two"]);
		expect(first.seen[0]?.eventId).toBe(next.seen[0]?.eventId);
	});

	test("attachments are fetched", async () => {
		await fake.inject({ text: "read", file: Buffer.from("content"), fileName: "a.txt" });
		await fake.inject({ text: "gone", attachments: [{ id: "404", contentType: "text/plain" }] });
		const { seen, hears, stop } = listenTo(await open());
		await hears(2);
		await stop();
		const data = Buffer.from("content").toString("base64");
		expect(seen[0]?.attachments).toEqual([{ name: "a.txt", contentType: "text/plain", data }]);
		expect(seen[1]?.text).toMatch(/^gone\n\[attachment 404 could not be fetched: getAttachment: -1/);
	});

	test("a message is not lost when our own id cannot be asked for", async () => {
		await fake.close();
		fake = await createSignalFake({ lookup: false });
		const mentions = [{ number: SIGNAL_NUMBER, uuid: "u", start: 0, length: 1 }];
		await fake.inject({ text: "\uFFFC hi", to: "group:abc=", mentions });
		const { seen, hears, stop } = listenTo(await open());
		await hears(1);
		await stop();
		expect(seen).toMatchObject([{ text: "hi", mention: true }]);
	});

	test("an unknown number ends it with the reason", async () => {
		const session = await open(memory(), { number: "+15005550999" });
		expect((await faultOf(session.monitor?.(unsafe, new AbortController().signal))).fault).toBe("denied");
	});
});
