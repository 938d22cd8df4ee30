/** Many deliveries at once through one gate, on a platform that refuses, fails, hangs and loses answers. */

import { describe, expect, it } from "vitest";
import { PlatformError } from "../../../packages/adapter/src/platform/platform-error.ts";
import type { DraftStyle, Session } from "../../../packages/adapter/src/platform/session.ts";
import type { StreamLine, StreamStatus } from "../../../packages/adapter/src/port.ts";
import { createDeliveries } from "../../../packages/adapter/src/serve/deliver.ts";
import { seeded } from "../../../packages/lab/src/fake.ts";
import { type ManualClock, manualClock } from "../../clock.ts";
import { sessionOf } from "../session.ts";
import { kitContext } from "./context.ts";
import { Daemon } from "./world.ts";

const TEXT_MAX = 120;
const REFUSAL_MS = 1_000;
const STEP_MS = 50;

interface Shown {
	to: string;
	nonce: string;
	text: string;
}

class Memory {
	readonly messages: Shown[] = [];
	readonly writes: { to: string; at: number; name: string }[] = [];
	refusals = 0;
	/** Calls begun although the platform had asked the account to wait. */
	disobedient = 0;
	private blockedUntil = 0;
	private readonly clock: ManualClock;
	private readonly random: () => number;
	private readonly faults: number;

	constructor(clock: ManualClock, random: () => number, faults: number) {
		this.clock = clock;
		this.random = random;
		this.faults = faults;
	}

	/** A call that takes a while and may go wrong before or after it has happened. */
	private async act<T>(name: string, to: string, once: boolean, work: () => T): Promise<T> {
		// Time moves in steps: a call that begins in the step of the refusal could not know of it.
		const heard = this.blockedUntil - REFUSAL_MS + STEP_MS;
		if (this.clock.now() > heard && this.clock.now() < this.blockedUntil) this.disobedient++;
		await new Promise<void>((resolve) => this.clock.after(5 + this.random() * 40, resolve));
		const roll = this.random();
		if (roll < this.faults * 0.2) {
			this.refusals++;
			this.blockedUntil = this.clock.now() + REFUSAL_MS;
			throw new PlatformError("rate_limited", "slow down", { retryAfterMs: REFUSAL_MS });
		}
		if (roll < this.faults * 0.5) throw new PlatformError("unavailable", "503");
		if (roll < this.faults * 0.6) return await new Promise<never>(() => {});
		const result = work();
		this.writes.push({ to, at: this.clock.now(), name });
		if (once && roll < this.faults * 0.9) throw new PlatformError("unknown_outcome", "reset after it was taken");
		return result;
	}

	private at(id: string): Shown {
		const message = this.messages[Number(id)];
		if (!message) throw new PlatformError("gone", "no such message");
		return message;
	}

	session(style: DraftStyle): Session {
		return sessionOf({
			style: () => style,
			create: (target, text, { nonce }) =>
				this.act("create", target.to, true, () => {
					if (text.length > TEXT_MAX) throw new PlatformError("invalid", "too long");
					return { messageId: String(this.messages.push({ to: target.to, nonce, text }) - 1) };
				}),
			edit: (target, id, text) =>
				this.act("edit", target.to, false, () => {
					if (text.length > TEXT_MAX) throw new PlatformError("invalid", "too long");
					this.at(id).text = text;
				}),
			start: (target, text, { nonce }) =>
				this.act("start", target.to, true, () => ({
					messageId: String(this.messages.push({ to: target.to, nonce, text }) - 1),
				})),
			append: (target, id, text) =>
				this.act("append", target.to, true, () => {
					this.at(id).text += text;
				}),
			stop: (target) => this.act("stop", target.to, false, () => {}),
			preview: (target) => this.act("preview", target.to, false, () => {}),
			find: (target, nonce) =>
				this.act("find", target.to, false, () => {
					const found = this.messages.findIndex((message) => message.nonce === nonce);
					return found < 0 ? undefined : { messageId: String(found) };
				}),
		});
	}
}

/** Everything that can happen without time passing. */
const settle = async () => {
	for (let turn = 0; turn < 20; turn++) await Promise.resolve();
	await new Promise((resolve) => setImmediate(resolve));
};

async function deliver(count: number, words: number, style: DraftStyle, faults: number) {
	const clock = manualClock(1);
	const random = seeded(count + words + style.length);
	const memory = new Memory(clock, random, faults);
	const daemons = new Map<string, Daemon>();
	const rateLimits: StreamStatus[] = [];
	const say = (status: object) => {
		const line = status as StreamStatus;
		if (line.type === "rate_limited") rateLimits.push(line);
		else if (line.type !== "call") {
			const nonce = daemons.get(line.delivery ?? "")?.hear(line);
			const names = { delivery: line.delivery ?? "", runId: "r" };
			if (nonce !== undefined) queueMicrotask(() => deliveries.accept({ type: "ack", nonce, ...names }));
		}
	};
	const session = memory.session(style);
	const info = {
		fields: ["runId", "offset", "intent"] as const,
		limits: { textMax: TEXT_MAX, unit: "utf16" as const },
	};
	const pace = { targetIntervalMs: 300, accountIntervalMs: 1 };
	const context = kitContext({ session, clock, info, pace, random, say });
	const deliveries = createDeliveries(context);
	const each = (line: (name: string) => object) => {
		for (const name of daemons.keys())
			deliveries.accept({ ...line(name), delivery: name, runId: "r" } as unknown as StreamLine);
	};
	for (let index = 0; index < count; index++) daemons.set(`d${index}`, new Daemon());
	each((name) => ({ type: "stream_start", sessionLabel: "s", target: { to: name } }));
	for (let word = 0; word < words; word++) {
		each((name) => ({ type: "token", text: `${name}.${word} ` }));
		clock.advance(20);
		await settle();
	}
	each(() => ({ type: "stream_end", final: true }));
	const unfinished = () => [...daemons.values()].filter(({ over }) => over === undefined).length;
	for (let turn = 0; turn < 20_000 && unfinished() > 0; turn++) {
		clock.advance(STEP_MS);
		await settle();
	}
	return { memory, daemons, rateLimits, clock };
}

describe("deliveries", () => {
	it.each<DraftStyle>(["edit", "append", "preview", "whole"])(
		"I7: 60 at once, style %s, with every kind of fault",
		{ timeout: 120_000 },
		async (style) => {
			const { memory, daemons, rateLimits } = await deliver(60, 40, style, 0.2);
			for (const [name, daemon] of daemons) {
				expect(daemon.error, name).toBeUndefined();
				expect(daemon.over, name).toBe("complete");
				const visible = memory.messages.filter(({ to }) => to === name).map(({ text }) => text.trim());
				expect(visible.join(" ")).toBe(Array.from({ length: 40 }, (_, word) => `${name}.${word}`).join(" "));
			}
			expect(memory.refusals).toBeGreaterThan(0);
			expect(rateLimits.length).toBe(memory.refusals);
			expect(memory.disobedient).toBe(0);
		},
	);

	it("200 at once: all are finished, each within its pace", { timeout: 120_000 }, async () => {
		const { memory, daemons } = await deliver(200, 30, "edit", 0);
		expect([...daemons.values()].filter(({ over }) => over === "complete")).toHaveLength(200);
		for (const name of daemons.keys()) {
			const edits = memory.writes.filter(({ to, name: call }) => to === name && call === "edit").length;
			// 600 ms of text at one write per 300 ms, and one final for each of the messages.
			const messages = memory.messages.filter(({ to }) => to === name).length;
			expect(edits).toBeLessThanOrEqual(6 + messages);
		}
	});
});
