/** A send is tried, looked up and given up by what its adapter answers, and by the clock. */

import { describe, expect, it } from "vitest";
import type { AdapterInfo } from "../../../packages/adapter/src/port.ts";
import { createRatePause } from "../../../packages/daemon/src/nex/accounts/platform-health.ts";
import type { OnPiece, SendAnswer, SendRequest } from "../../../packages/daemon/src/nex/accounts/send-port.ts";
import { deliverBySend } from "../../../packages/daemon/src/nex/delivery/blocks/send-delivery.ts";
import type { DeliveryContext } from "../../../packages/daemon/src/nex/delivery/delivery-context.ts";
import { OUTBOUND_LIMITS } from "../../../packages/daemon/src/nex/limits.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { manualClock } from "../../clock.ts";
import { openPlainStore } from "../../store.ts";
import { trackDelivery } from "./live-delivery-rig.ts";
import { finishedRun } from "./rig.ts";

const BEGIN = 1_000_000;
const lost: SendAnswer = { type: "lost", error: "killed" };
const sent: SendAnswer = { type: "sent", messageId: "m1" };
const refused = (code: "unavailable" | "denied" | "rate_limited", retryAfterMs?: number): SendAnswer => ({
	type: "refused",
	error: "no",
	code,
	retryAfterMs,
});
const found = (known: boolean, messageId?: string): SendAnswer => ({ type: "found", known, messageId });

interface Plan {
	answer(type: SendRequest["type"], nth: number, piece: OnPiece): SendAnswer;
	reconcile?: AdapterInfo["reconcile"];
	limits?: Partial<typeof OUTBOUND_LIMITS>;
	pauseMs?: number;
	text?: string;
}

/** Delivers a text, and lets time pass until it is over. */
async function live({ answer, reconcile = "history", limits = {}, pauseMs = 0, text = "hello" }: Plan) {
	const store = openPlainStore(":memory:");
	const { bus } = store;
	const clock = manualClock(BEGIN);
	const runId = await finishedRun(bus, [text]);
	const { live: tracked } = await trackDelivery({ store, clock, runId });
	tracked.setMode("blocks");
	const asked: { type: string; at: number }[] = [];
	const request = async ({ type }: SendRequest, _signal: AbortSignal, piece: OnPiece) => {
		asked.push({ type, at: clock.now() - BEGIN });
		return answer(type, asked.filter((each) => each.type === type).length, piece);
	};
	let thrown = 0;
	const random = () => {
		thrown++;
		return 0.5;
	};
	const gate = createRatePause(clock);
	if (pauseMs > 0) gate.pause(pauseMs);
	const info = { supports: ["send"], fields: ["runId", "pieces"], limits: { textMax: 100, unit: "utf16" }, reconcile };
	const context = {
		live: tracked,
		info,
		bus,
		clock,
		log: silentLog,
		random,
		limits: { ...OUTBOUND_LIMITS, ...limits },
		target: { to: "c" },
		signal: new AbortController().signal,
		options: {},
		reasoning: false,
		parts: true,
		files: new Map(),
		account: { config: {}, streaming: {}, rate: gate, send: () => ({ request, typing() {} }) },
	} as unknown as DeliveryContext;
	let over = false;
	const done = deliverBySend(context).finally(() => {
		over = true;
	});
	while (!over) {
		await new Promise((resolve) => setImmediate(resolve));
		clock.advance(100);
	}
	const outcome = await done;
	await tracked.recorded();
	await store.close();
	const times = (type: string) => asked.flatMap((each) => (each.type === type ? [each.at] : []));
	const states = tracked.row.messages.map(({ state }) => state);
	return { outcome, sends: times("send"), finds: times("find"), states, thrown };
}

it("a person would need a moment, of random length, from the second block on", async () => {
	const answer = () => sent;
	const one = await live({ answer });
	expect([one.sends.length, one.thrown]).toEqual([1, 0]);
	const two = await live({ answer, text: "word ".repeat(30) });
	expect([two.sends.length, two.thrown]).toEqual([2, 1]);
	expect(two.sends[1]! - two.sends[0]!).toBeGreaterThanOrEqual(1650);
});

describe("a send", () => {
	it("that is refused for now is tried again ever later, and given up in the end: nothing of it is in doubt", async () => {
		const limits = { giveUpMs: 60_000 };
		const { outcome, sends, states } = await live({ answer: () => refused("unavailable"), limits });
		expect(outcome).toMatchObject({ state: "failed", error: expect.stringContaining("Given up") });
		expect(sends.at(-1)).toBeGreaterThan(10_000);
		expect(sends.length).toBeGreaterThan(4);
		expect(sends.length).toBeLessThan(20);
		expect(states).toEqual([]);
	});

	it("of which a piece went out is not given up for the time that it took", async () => {
		const answer: Plan["answer"] = (_type, nth, piece) => {
			if (nth === 16) return sent;
			if (nth % 4 === 0) piece({ type: "message_sent", messageId: `p${nth}`, final: false, to: nth / 4 });
			return refused("unavailable");
		};
		const { outcome, sends, states } = await live({ answer, limits: { giveUpMs: 10_000 } });
		expect(outcome).toEqual({ state: "complete" });
		expect(sends.at(-1)).toBeGreaterThan(10_000);
		expect(states).toEqual(["sent", "sent", "sent", "sent"]);
	});

	it("waits as long as the platform asks, and while the account is paused", async () => {
		const answer = (_type: string, nth: number) => (nth === 1 ? refused("rate_limited", 30_000) : sent);
		const { outcome, sends } = await live({ answer, pauseMs: 5000 });
		expect(outcome).toEqual({ state: "complete" });
		expect(sends).toHaveLength(2);
		expect(sends[0]).toBeGreaterThanOrEqual(5000);
		expect(sends[1]! - sends[0]!).toBeGreaterThanOrEqual(30_000);
	});

	it("I7: without an answer is looked up, again if need be, and said again only when it is certainly not there", async () => {
		const there = await live({
			answer: (type, nth) => (type === "send" || nth < 3 ? lost : found(true, "m1")),
		});
		expect([there.outcome.state, there.sends.length, there.finds.length, there.states]).toEqual([
			...["complete", 1, 3],
			["sent"],
		]);
		const absent = await live({
			answer: (type, nth) => (type === "find" ? found(true) : nth === 1 ? lost : sent),
		});
		expect([absent.outcome.state, absent.sends.length, absent.finds.length]).toEqual(["complete", 2, 1]);
	});

	it("I7: that cannot be looked up in the end is in doubt, and not said again", async () => {
		const { outcome, sends, finds, states } = await live({ answer: () => lost, limits: { giveUpMs: 20_000 } });
		expect(outcome).toMatchObject({ state: "unknown", error: expect.stringContaining("could not be looked up") });
		expect([sends.length, finds.length > 2, states]).toEqual([1, true, ["unknown"]]);
	});

	it("I7: where the platform cannot tell is in doubt at once", async () => {
		const { outcome, sends, finds, states } = await live({ answer: () => lost, reconcile: "none" });
		expect(outcome).toMatchObject({ state: "unknown" });
		expect([sends.length, finds.length, states]).toEqual([1, 0, ["unknown"]]);
	});

	it("I7: is said again by its nonce while the platform knows it, and no longer", async () => {
		const answer = (type: string, nth: number) => (type === "find" ? found(false) : nth === 1 ? lost : sent);
		const fresh = await live({ answer, reconcile: "nonce" });
		expect([fresh.outcome.state, fresh.sends.length]).toEqual(["complete", 2]);
		const late = await live({ answer, reconcile: "nonce", limits: { nonceWindowMs: 0 } });
		expect([late.outcome.state, late.sends.length, late.states]).toEqual(["unknown", 1, ["unknown"]]);
		const history = await live({ answer, reconcile: "history" });
		expect([history.outcome.state, history.sends.length]).toEqual(["unknown", 1]);
	});
});
