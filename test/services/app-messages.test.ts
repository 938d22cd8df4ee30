/** Messages between applications: the log of each recipient, receipts, limits. */

import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Cursor } from "../../packages/daemon/src/bus/bus.ts";
import {
	isQuiet,
	MESSAGE_LIMITS,
	type MessageLimits,
	type Pair,
	QUIET,
	type SendTimes,
	stepPair,
	stepRate,
} from "../../packages/daemon/src/services/apps/limits.ts";
import { AppMessageLogs } from "../../packages/daemon/src/services/apps/messages.ts";
import type { AppMessageRecord, NewAppMessage } from "../../packages/daemon/src/services/apps/port.ts";
import { noticeLogs } from "../../packages/daemon/src/services/audit/notices.ts";
import { manualClock } from "../clock.ts";
import { atEffort } from "../effort.ts";
import { storeForTest } from "../store.ts";
import { appPrincipal as as, OWNER, rejectsWith } from "./parts.ts";

function rig(limits: Partial<MessageLimits> = {}) {
	const store = storeForTest();
	const clock = manualClock(1_000_000);
	const known = new Set(["a", "b", "c"]);
	const messages = new AppMessageLogs({
		...store,
		apps: { has: (id) => known.has(id) },
		notices: noticeLogs(store),
		clock,
		limits,
	});
	const send = (from: string, to: string, more: Partial<NewAppMessage> = {}) =>
		messages.send(
			{ from: "", to, messageType: "hello", payload: Buffer.from("hi"), requireAck: false, ...more },
			as(from),
		);
	const read = async (app: string, after: number | "now" = 0): Promise<AppMessageRecord[]> => {
		const cursor = await messages.open(app, after === "now" ? undefined : after, OWNER);
		onTestFinished(() => cursor.close());
		return recordsOf(cursor);
	};
	return { messages, send, read, clock, known, store };
}

async function recordsOf(cursor: Cursor): Promise<AppMessageRecord[]> {
	const found: AppMessageRecord[] = [];
	for (let batch = await cursor.next(); batch; batch = await cursor.next())
		found.push(...batch.records.map((record) => JSON.parse(record) as AppMessageRecord));
	return found;
}

const busy = (reason: string) => ({ code: "busy", reason });

test("Z22: a message is in its recipient's log, and in no other; the reader keeps its place", async () => {
	const { send, read, messages } = rig();
	const { messageId } = await send("a", "b", { subjectUserId: "u", payload: Uint8Array.of(0, 255) });
	await send("a", "b");
	const [first, second] = await read("b");
	expect(first).toEqual({
		event: "received",
		messageId,
		from: "a",
		to: "b",
		subjectUserId: "u",
		messageType: "hello",
		payload: "AP8=",
		requireAck: false,
		sentAt: 1_000_000,
		at: 1_000_000,
	});
	expect(await read("b", 1)).toEqual([second]);
	expect(await read("a")).toEqual([]);
	expect(await read("b", "now")).toEqual([]);
	await rejectsWith(messages.open("b", 0, as("a")), "forbidden");
	expect(await recordsOf(await messages.open("", 0, as("b")))).toHaveLength(2);
});

test("Z25: an application writes in its own name only, and only to applications that exist", async () => {
	const { send, known } = rig();
	await rejectsWith(send("a", "b", { from: "c" }), "forbidden");
	await rejectsWith(send("a", "nobody"), "not_found");
	known.delete("b");
	await rejectsWith(send("a", "b"), "not_found");
	await send("a", "owner");
});

test("Z22: the sender hears once that a message was acknowledged or failed, and only its recipient can say so", async () => {
	const { send, read, messages } = rig();
	const acked = (messageId: string, by: string, failed = false, reason = "") =>
		messages.acknowledge({ app: "", messageId, failed, reason }, as(by));
	const one = (await send("a", "b", { requireAck: true })).messageId;
	const two = (await send("a", "b", { requireAck: true })).messageId;
	const silent = (await send("a", "b")).messageId;
	await rejectsWith(acked(one, "c"), "not_found");
	await rejectsWith(acked(one, "a"), "not_found");
	await rejectsWith(acked(silent, "b"), "not_found");
	await Promise.all([acked(one, "b"), acked(one, "b")]);
	await acked(one, "b", true);
	await acked(two, "b", true, "full");
	expect(
		(await read("a")).map(({ event, messageId, reason, payload }) => ({ event, messageId, reason, payload })),
	).toEqual([
		{ event: "acked", messageId: one, reason: undefined, payload: undefined },
		{ event: "failed", messageId: two, reason: "full", payload: undefined },
	]);
	expect(await read("b")).toHaveLength(3);
});

test("Z15: the same key is the same message; another text under it is refused", async () => {
	const { send, read } = rig();
	const first = await send("a", "b", { idempotencyKey: "k" });
	expect(await send("a", "b", { idempotencyKey: "k" })).toEqual(first);
	await expect(send("a", "b", { idempotencyKey: "k", payload: Buffer.from("ho") })).rejects.toMatchObject({
		reason: "IDEMPOTENCY_CONFLICT",
	});
	expect(await send("c", "b", { idempotencyKey: "k" })).not.toEqual(first);
	expect(await read("b")).toHaveLength(2);
});

test("Z22: a payload has 64 KB at most", async () => {
	const { send } = rig();
	await send("a", "b", { payload: Buffer.alloc(65_536) });
	await rejectsWith(send("a", "b", { payload: Buffer.alloc(65_537) }), "too_large", "APP_MESSAGE_PAYLOAD_TOO_LARGE");
	await rejectsWith(send("a", "b", { messageType: "" }), "invalid");
});

test("I11: a sender fills no disk: its payloads of a day have a limit", async () => {
	const { send, clock } = rig({ bytesPerDayMax: 10 });
	await send("a", "b", { payload: new Uint8Array(10) });
	await expect(send("a", "c")).rejects.toMatchObject(busy("QUOTA_EXCEEDED"));
	await send("b", "a", { payload: new Uint8Array(10) });
	clock.advance(24 * 60 * 60_000);
	await send("a", "c");
});

test("Z22: a sender has 100 messages a second, and others are not held up", async () => {
	const { send, clock } = rig();
	for (let n = 0; n < 100; n++) await send("a", n % 2 === 0 ? "b" : "c");
	await expect(send("a", "b")).rejects.toMatchObject(busy("APP_MESSAGE_RATE_LIMITED"));
	await send("c", "b");
	clock.advance(1000);
	await send("a", "b");
});

test("Z22: two that answer each other without end are kept apart for a minute", async () => {
	const { send, clock } = rig();
	for (let n = 0; n < 10; n++) {
		await send("a", "b");
		await send("b", "a");
	}
	await expect(send("a", "b")).rejects.toMatchObject(busy("APP_MESSAGE_LOOP_DETECTED"));
	await expect(send("b", "a")).rejects.toMatchObject(busy("APP_MESSAGE_LOOP_DETECTED"));
	await send("a", "c");
	clock.advance(59_999);
	await expect(send("b", "a")).rejects.toMatchObject(busy("APP_MESSAGE_LOOP_DETECTED"));
	clock.advance(1);
	await send("b", "a");
});

describe("the steps", () => {
	const gaps = fc.array(fc.nat({ max: 60 }), { minLength: 1, maxLength: 400 });
	const timesOf = (all: readonly number[]) => {
		let at = 0;
		return all.map((gap) => (at += gap));
	};

	test("Z22: in no second does a sender send more than its rate, and what fits is never refused", () => {
		fc.assert(
			fc.property(gaps, fc.integer({ min: 1, max: 30 }), (all, max) => {
				let state: SendTimes = [];
				const sent: number[] = [];
				for (const at of timesOf(all)) {
					const fits = sent.filter((time) => time > at - 1000).length < max;
					const step = stepRate(state, at, max);
					state = step.state;
					expect(step.allowed).toBe(fits);
					expect(state.length).toBeLessThanOrEqual(max);
					if (step.allowed) sent.push(at);
				}
			}),
			{ numRuns: atEffort(100) },
		);
	});

	test("Z22: the breaker opens exactly when more than the limit went both ways within a second, for its time", () => {
		const moves = fc.array(fc.tuple(fc.nat({ max: 120 }), fc.constantFrom("a", "b")), { maxLength: 300 });
		const limits = { ...MESSAGE_LIMITS, loopPerSecondMax: 5, loopOpenMs: 700 };
		fc.assert(
			fc.property(moves, (all) => {
				let state: Pair = QUIET;
				let sent: { from: string; at: number }[] = [];
				let openUntil = 0;
				let at = 0;
				for (const [gap, from] of all) {
					at += gap;
					const step = stepPair(state, from, at, limits);
					state = step.state;
					if (at < openUntil) {
						expect(step.allowed).toBe(false);
						continue;
					}
					const recent = [...sent.filter((one) => one.at > at - 1000), { from, at }];
					const trips = recent.length > 5 && new Set(recent.map((one) => one.from)).size === 2;
					expect(step.allowed).toBe(!trips);
					if (trips) openUntil = at + 700;
					sent = trips ? [] : recent;
				}
				expect(isQuiet(state, at + 1700)).toBe(true);
			}),
			{ numRuns: atEffort(100) },
		);
	});
});
