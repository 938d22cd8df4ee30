/** Messages from real relays arrive once, in order and checked; one that was not safe arrives again. */

import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import type { Event } from "nostr-tools/core";
import { createRumor, createSeal, createWrap } from "nostr-tools/nip59";
import { finalizeEvent } from "nostr-tools/pure";
import { afterEach, beforeEach, expect, test } from "vitest";
import { WebSocketServer } from "ws";
import type { InboundMessage } from "../../../packages/adapter/src/kit.ts";
import { AGENT, createNostrFake, type NostrFake, person } from "../../../packages/lab/src/nostr.ts";
import { CHAT_MESSAGE, NOTE } from "../../../packages/platforms/src/nostr/events.ts";
import { platform } from "../../../packages/platforms/src/nostr/nostr.ts";
import { rumorOf, wrapFor } from "../../../packages/platforms/src/nostr/private.ts";
import { until } from "../../until.ts";
import { memory, type OpenSession, openSession } from "../session.ts";

const ann = person("ann");
const eve = person("eve");
const toUs = ["p", AGENT.pubkey];
const now = () => Math.floor(Date.now() / 1000);

let fakes: NostrFake[];
let stops: (() => Promise<void>)[];

beforeEach(async () => {
	fakes = [await createNostrFake(), await createNostrFake()];
	stops = [];
});
afterEach(async () => {
	for (const stop of stops) await stop();
	for (const fake of fakes) await fake.close();
});

type Emit = NonNullable<Parameters<NonNullable<OpenSession["monitor"]>>[0]>;

async function listen(emit: Emit, state = memory(), relays = fakes.map(({ url }) => url).join(" ")) {
	const heard: (string | undefined)[] = [];
	const listening = (error?: string) => void heard.push(error);
	const session = await openSession(platform, { ...fakes[0]!.settings, relays }, { state, listening });
	const stopping = new AbortController();
	const going = session.monitor?.(emit, stopping.signal);
	const stop = async () => {
		stopping.abort();
		await going;
		await session.close?.();
	};
	stops.push(stop);
	return { stop, heard };
}

const note = (text: string, created_at = now(), keys = ann) =>
	finalizeEvent({ kind: NOTE, created_at, tags: [toUs], content: text }, keys.secret);

const wrap = (text: string, created_at = now(), keys = ann) =>
	wrapFor(keys, rumorOf(keys, { kind: CHAT_MESSAGE, created_at, tags: [toUs] }, text), AGENT.pubkey);

test("R2-87: a mention and a private message, from both relays and in two wraps, are received once each", async () => {
	const seen: InboundMessage[] = [];
	await listen(async (message) => void seen.push(message));
	const said = note("public");
	const rumor = rumorOf(ann, { kind: CHAT_MESSAGE, created_at: now(), tags: [toUs] }, "private");
	for (const fake of fakes) {
		await fake.put(said);
		await fake.put(wrapFor(ann, rumor, AGENT.pubkey));
		await fake.put(wrapFor(ann, rumor, AGENT.pubkey));
	}
	// Each relay's own order is kept: when this has come from both, so has everything before.
	await fakes[0]!.put(note("end 0"));
	await fakes[1]!.put(note("end 1"));
	await until("both ends are received", () => seen.filter(({ text }) => text.startsWith("end")).length === 2);
	expect(seen.map(({ eventId }) => eventId).filter((id) => id === said.id)).toHaveLength(1);
	expect(seen.filter(({ text }) => text === "private")).toMatchObject([
		{ eventId: rumor.id, from: { id: ann.pubkey }, chat: { type: "direct" } },
	]);
});

test("a wrap that is dated back is received after a pause, an old rumor in a new wrap is not; stored ones come in order", async () => {
	const state = memory();
	state.set("begun", String(now() - 7 * 86_400));
	for (const { url } of fakes) state.set(`heard:${url}`, String(now() - 3600));
	// nostr-tools dates wraps back by up to two days.
	await fakes[0]!.put(wrap("second", now() - 60));
	await fakes[0]!.put(wrap("first", now() - 600));
	await fakes[0]!.put(wrap("stale", now() - 3 * 86_400));
	await fakes[0]!.put(note("third", now() - 30));
	const seen: string[] = [];
	await listen(async ({ text }) => void seen.push(text), state);
	await until("three messages are received", () => seen.length >= 3);
	await fakes[0]!.put(note("fourth"));
	await until("the last is received", () => seen.includes("fourth"));
	expect(seen).toEqual(["first", "second", "third", "fourth"]);
});

function begunBefore() {
	const state = memory();
	state.set("begun", String(now() - 100));
	return state;
}

test("a message that was not safe comes again; one that was moves the position", async () => {
	const state = begunBefore();
	const first: string[] = [];
	const { stop } = await listen(({ text }) => {
		first.push(text);
		return text === "safe" ? Promise.resolve() : new Promise(() => {});
	}, state);
	await until("it listens", () => fakes[0]!.connections > 0);
	await fakes[0]!.put(note("safe", now() - 1));
	await until("it is received", () => first.length === 1);
	await fakes[0]!.put(note("lost"));
	await until("both are received", () => first.length === 2);
	await stop();
	expect(Number(state.get(`heard:${fakes[0]!.url}`))).toBeLessThanOrEqual(now() - 1);
	const second: string[] = [];
	await listen(async ({ text }) => void second.push(text), state);
	await until("it is received again", () => second.includes("lost"));
});

test("a time in the future does not hide what comes later", async () => {
	const state = begunBefore();
	const seen: string[] = [];
	await listen(async ({ text }) => void seen.push(text), state);
	await fakes[0]!.put(note("from the future", now() + 86_400));
	await until("it is received", () => seen.length === 1);
	await until("it is noted", () => state.get(`heard:${fakes[0]!.url}`) !== undefined);
	expect(Number(state.get(`heard:${fakes[0]!.url}`))).toBeLessThanOrEqual(now());
});

test("a relay that vanishes is listened to again; only when no relay can be reached is the account deaf", async () => {
	const seen: string[] = [];
	const { heard } = await listen(async ({ text }) => void seen.push(text));
	await until("it listens", () => fakes.every(({ connections }) => connections > 0));
	fakes[0]!.dropConnections();
	await fakes[0]!.put(note("after the break"));
	await until("it is received", () => seen.includes("after the break"));
	expect(heard.some((error) => error !== undefined)).toBe(false);
	for (const fake of fakes) await fake.close();
	await until("it is deaf", () => heard.at(-1) !== undefined);
	fakes = [await createNostrFake()];
});

/** A relay that answers every request with these events. */
async function lyingRelay(events: readonly Event[]) {
	const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
	await new Promise<void>((resolve) => server.once("listening", resolve));
	server.on("connection", (socket) => {
		socket.on("message", (data) => {
			const [type, id] = JSON.parse(String(data as Buffer));
			if (type === "EVENT") socket.send(JSON.stringify(["OK", id.id, true, ""]));
			if (type !== "REQ") return;
			for (const event of events) socket.send(JSON.stringify(["EVENT", id, event]));
			for (const line of ['["EVENT"]', '["OK"]', '["NOTICE","x"]', '["NEW"]']) socket.send(line);
			socket.send(JSON.stringify(["EOSE", id]));
		});
	});
	const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`;
	const close = async () => {
		for (const socket of server.clients) socket.terminate();
		await new Promise<void>((resolve) => server.close(() => resolve()));
	};
	return { url, close };
}

test("what a relay or a stranger forges is dropped", async () => {
	const honest = note("honest");
	const forged = rumorOf(ann, { kind: CHAT_MESSAGE, created_at: now(), tags: [toUs] }, "as Ann");
	const chosen = {
		...createRumor({ ...forged, content: "chosen id" }, eve.secret),
		id: randomBytes(32).toString("hex"),
	};
	const lies = [
		{ ...note("changed"), content: "other words" },
		{ ...note("another's"), pubkey: eve.pubkey },
		createWrap(createSeal(forged, eve.secret, AGENT.pubkey), AGENT.pubkey),
		createWrap(createSeal(chosen, eve.secret, AGENT.pubkey), AGENT.pubkey),
		{ ...wrap("x"), content: "garbage" },
		finalizeEvent({ kind: NOTE, created_at: now(), tags: [], content: "not for us" }, eve.secret),
		{} as Event,
	];
	const liar = await lyingRelay([...lies, honest, ...lies]);
	const seen: string[] = [];
	await listen(async ({ text }) => void seen.push(text), memory(), liar.url);
	stops.push(() => liar.close());
	await until("the honest one is received", () => seen.length > 0);
	expect(seen).toEqual(["honest"]);
});

test("a relay that serves only known clients gets our authentication", async () => {
	await Promise.all(fakes.map((fake) => fake.close()));
	fakes = [await createNostrFake({ isClosed: true })];
	const seen: string[] = [];
	await listen(async ({ text }) => void seen.push(text));
	await fakes[0]!.put(note("hello"));
	await until("it is received", () => seen.includes("hello"));
});
