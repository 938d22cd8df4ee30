/** Many answers at the same time through one adapter process: each is read whole, once and in order, and the process stays small. */

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Delivery } from "../../packages/daemon/src/ledger/deliveries/port.ts";
import { createTelegramFake, type TelegramFake } from "../../packages/lab/src/telegram/telegram.ts";
import { atEffort, effort, FULL_EFFORT } from "../effort.ts";
import { beginRun, createRigWith, type Rig } from "../nex/outbound/rig.ts";
import { fastTime } from "../time/time.ts";
import { until } from "../until.ts";
import { residentBytes } from "./daemon.ts";
import { adapterOn, letters, sentencesOf } from "./fake-platforms.ts";

const CHATS = atEffort(200, 40);
const SENTENCES = 40;
/** Deliveries that begin before any answer continues. */
const FIRST = 5;
const TIME = fastTime(5);
const SENTENCE_EVERY_MS = 50;
const isFull = effort >= FULL_EFFORT;
/** A Node process before its platform, and some kilobytes for each of its answers. */
const BYTES_MAX = 256 * 2 ** 20;

const mib = (count: number): string => (count / 2 ** 20).toFixed(0);
const chatOf = (n: number): string => String(5000 + n);
const sourceOf = (n: number): string[] => sentencesOf(SENTENCES, `chat ${n}`);

let fake: TelegramFake;
let rig: Rig;
let rows: Delivery[] = [];
const pids = new Set<number>();
let bytes = 0;
let atOnce = 0;

beforeAll(async () => {
	// With its documented limit of 30 calls a second for all chats together.
	fake = await createTelegramFake({ clock: TIME.clock });
	const account = { settings: { token: fake.token, api_url: fake.url } };
	const config = { ...adapterOn("telegram", TIME), typing: { enabled: false }, accounts: { main: account } };
	rig = createRigWith(() => ({ telegram: config }));
	const watch = setInterval(() => {
		const pid = rig.outbound.accounts()[0]?.processes.stream?.pid;
		if (pid === undefined) return;
		pids.add(pid);
		if (isFull) bytes = Math.max(bytes, residentBytes(pid));
	}, 100);
	const begun = await Promise.all(Array.from({ length: CHATS }, (_, n) => begin(n)));
	const shown = () =>
		Array.from({ length: CHATS }, (_, n) => fake.visible(chatOf(n))).filter((texts) => texts.length > 0);
	await until("every answer has begun on the platform", () => shown().length === CHATS);
	atOnce = rig.outbound.accounts()[0]?.deliveries ?? 0;
	rows = await Promise.all(begun.map((finish) => finish()));
	clearInterval(watch);
});

afterAll(async () => {
	await rig?.close();
	await fake?.close();
});

/** A delivery whose answer has begun, and what writes the rest of it. */
async function begin(n: number): Promise<() => Promise<Delivery>> {
	const run = await beginRun(rig.bus, `chat-${n}`);
	const request = {
		runId: run.runId,
		account: { channel: "telegram", id: "main" },
		target: { to: chatOf(n), direct: true },
	};
	const { id } = await rig.outbound.deliver(request);
	const sentences = sourceOf(n);
	for (const sentence of sentences.slice(0, FIRST)) run.text(sentence);
	return async () => {
		for (const sentence of sentences.slice(FIRST)) {
			run.text(sentence);
			await sleep(SENTENCE_EVERY_MS);
		}
		await run.end();
		return await rig.outbound.settled(id);
	};
}

describe(`proof: ${CHATS} deliveries at once on one adapter process`, () => {
	it("I7: all are complete, each exactly once", () => {
		if (isFull) console.log(`${CHATS} deliveries: ${fake.calls.length} calls, ${mib(bytes)} MiB at most`);
		expect(rows.filter(({ state }) => state !== "complete")).toEqual([]);
		for (let n = 0; n < CHATS; n++) {
			expect(letters(fake.visible(chatOf(n)).join(""))).toBe(letters(sourceOf(n).join("")));
			expect(fake.visible(chatOf(n))).toHaveLength(1);
		}
		expect(atOnce).toBe(CHATS);
	});

	it("one process does it, in bounded memory, within the account's rate", () => {
		expect(pids.size).toBe(1);
		expect(rig.outbound.accounts()[0]?.restarts).toBe(0);
		if (isFull) expect(bytes).toBeLessThan(BYTES_MAX);
		expect(fake.calls.filter(({ status }) => status === 429)).toEqual([]);
	});
});
