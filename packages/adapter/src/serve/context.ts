/** What the verbs that write share: one session, its gate, its caller, and how its texts are measured. */

import { type Clock, steady } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import type { Log } from "@nexus-stream/protocol/log";
import { statusLine, type ToolCall } from "../draft/tool-line.ts";
import { createGate, type GateJob, type RateGate } from "../gate/gate.ts";
import type { GateLimits, Rank } from "../gate/gate-step.ts";
import type { Pace, Platform, PlatformError, Session } from "../platform/platform.ts";
import type { Activity, SendStatus, StreamStatus, Target, TypingLine } from "../port.ts";
import { createCaller, type PlatformCaller } from "./call.ts";

export interface AdapterLimits {
	callTimeoutMs: number;
	/** How long the daemon may take to make an intent durable. */
	ackLimitMs: number;
	/** How long platforms with idempotent creation are trusted to recognise a nonce. */
	nonceWindowMs: number;
	/** How long a creation is tried again whose outcome is never told, and the wait between two tries, which doubles. */
	doubtMs: number;
	doubtWaitMs: number;
	doubtWaitMaxMs: number;
	gate: Partial<GateLimits>;
}

export const ADAPTER_LIMITS: AdapterLimits = {
	callTimeoutMs: 30_000,
	ackLimitMs: 60_000,
	nonceWindowMs: 60_000,
	doubtMs: 120_000,
	doubtWaitMs: 500,
	doubtWaitMaxMs: 30_000,
	gate: {},
};

/** How long to wait after the n-th creation in a row whose outcome is not known, counted from 1. */
export const doubtWait = ({ doubtWaitMs, doubtWaitMaxMs }: AdapterLimits, nth: number): number =>
	Math.min(doubtWaitMs * 2 ** Math.min(nth - 1, 20), doubtWaitMaxMs);

export interface AdapterContextOptions {
	platform: Platform;
	session: Session;
	account: string;
	clock: Clock;
	random(): number;
	log: Log;
	say(status: StreamStatus | SendStatus): void;
	/** Resolves when what is said is being read. */
	ready(): Promise<void>;
	limits?: Partial<AdapterLimits>;
}

export interface AdapterContext extends Omit<AdapterContextOptions, "limits"> {
	limits: AdapterLimits;
	gate: RateGate;
	call: PlatformCaller;
	pace(target: Target): Pace;
	/** Waits for a turn, calls, and tries again what passes by itself. */
	gated<T>(target: Target, rank: Rank, work: () => Promise<T>): Promise<T>;
}

export function createAdapterContext(options: AdapterContextOptions): AdapterContext {
	const { platform, session, account } = options;
	// Set back, the clock must not keep an account silent for the time that was taken away.
	const clock = steady(options.clock);
	const limits = withDefaults(ADAPTER_LIMITS, options.limits);
	const gate = createGate({
		clock,
		random: options.random,
		ready: options.ready,
		limits: limits.gate,
		onRateLimited: (retryAfterMs) => options.say({ type: "rate_limited", retryAfterMs, account }),
	});
	const pace = (target: Target) => session.pace?.(target) ?? platform.pace(target);
	const call = createCaller({ clock, callTimeoutMs: limits.callTimeoutMs, say: options.say });
	const gated: AdapterContext["gated"] = (target, rank, work) =>
		new Promise((resolve, reject) => {
			let settle = () => {};
			const job: GateJob = {
				lane: laneOf(target),
				rank,
				paced: true,
				pace: () => pace(target),
				async run() {
					const result = await work();
					settle = () => resolve(result);
				},
				settled: (error: PlatformError | undefined) => (error ? reject(error) : settle()),
			};
			gate.request(job);
		});
	return { ...options, clock, limits, gate, call, pace, gated };
}

/** A chat's calls go one after another. */
export const laneOf = (target: Target): string => JSON.stringify([target.to, target.thread_id ?? null]);

/** Shows or hides typing; nothing depends on it. */
export function createTyping({ session, gate, call, pace, log }: AdapterContext): (line: TypingLine) => void {
	const waiting = new Map<string, { on: boolean; doing: Activity }>();
	return ({ target, on, text, tool }) => {
		if (!session.typing) return;
		const lane = `typing ${laneOf(target)}`;
		const known = waiting.has(lane);
		const wanted = { on, doing: doingOf(text, tool) };
		waiting.set(lane, wanted);
		if (known) return;
		let taken = false;
		gate.request({
			lane,
			rank: "typing",
			paced: false,
			pace: () => ({ targetIntervalMs: 0, accountIntervalMs: pace(target).accountIntervalMs ?? 0 }),
			async run() {
				const now = waiting.get(lane) ?? wanted;
				waiting.delete(lane);
				taken = true;
				await call("typing", {}, async () => session.typing?.(target, now.on, now.doing));
			},
			settled(error) {
				// What came since then is the next one's.
				if (!taken) waiting.delete(lane);
				if (error) log.debug({ to: target.to, error: error.message }, "typing was not shown");
			},
		});
	};
}

/** Words of a tool are a model's words: one line, and not a long one. */
function doingOf(text: unknown, tool: unknown): Activity {
	const line = (given: unknown) =>
		typeof given === "string" ? given.replace(/\s+/g, " ").trim().slice(0, DOING_CHARS_MAX).toWellFormed() : "";
	const [said, named] = [line(text), line(tool)];
	return { text: said || undefined, tool: named || undefined };
}

const DOING_CHARS_MAX = 100;

export type ShowToolStatus = (tools: readonly ToolCall[]) => void;

/** Shows beside a delivery's messages which tool runs, where the platform has a place for it; nothing depends on it. */
export function createStatus(context: AdapterContext, target: Target): ShowToolStatus {
	const { session, gate, call, pace, log } = context;
	let known: readonly ToolCall[] = [];
	let wanted = "";
	let shown = "";
	let waiting = false;
	return (tools) => {
		if (tools === known || !session.status) return;
		known = tools;
		wanted = statusLine(tools);
		if (waiting || wanted === shown) return;
		waiting = true;
		gate.request({
			lane: `status ${laneOf(target)}`,
			rank: "typing",
			paced: false,
			pace: () => ({ targetIntervalMs: 0, accountIntervalMs: pace(target).accountIntervalMs ?? 0 }),
			async run() {
				waiting = false;
				shown = wanted;
				await call("status", {}, async () => session.status?.(target, shown));
			},
			settled(error) {
				waiting = false;
				if (error) log.debug({ to: target.to, error: error.message }, "what is being done was not shown");
			},
		});
	};
}

/** Rendering is the dear part of a draft: the same text is often measured and then sent. */
export function createRenderer(platform: Platform): {
	render(markdown: string): string;
	fits(markdown: string): boolean;
	/** How much of a message a text takes. */
	share(markdown: string): number;
} {
	const KEPT = 4;
	const known = new Map<string, string>();
	const render = (markdown: string): string => {
		const before = known.get(markdown);
		if (before !== undefined) return before;
		const rendered = platform.render(markdown);
		if (known.size >= KEPT) known.delete(known.keys().next().value ?? "");
		known.set(markdown, rendered);
		return rendered;
	};
	const { textMax } = platform.info.limits;
	const length = (markdown: string) => platform.measure(render(markdown));
	return { render, fits: (markdown) => length(markdown) <= textMax, share: (markdown) => length(markdown) / textMax };
}
