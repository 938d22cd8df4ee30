/** Shared by the verbs that write: the session, its gate, its calls, and the measuring of its texts. */

import { type Clock, steady } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import type { Log } from "@nexus-stream/protocol/log";
import { backoffMs } from "@nexus-stream/protocol/retry";
import { statusLine, type ToolCall } from "../draft/tool-line.ts";
import { createGate, type GateJob, type RateGate } from "../gate/gate.ts";
import type { GateLimits, Rank } from "../gate/gate-step.ts";
import type { SentLog } from "../memory/sent.ts";
import type { Platform } from "../platform/platform.ts";
import type { PlatformError } from "../platform/platform-error.ts";
import type { CreatedMessage, Pace, SendOptions, Session } from "../platform/session.ts";
import type { Activity, SendStatus, StreamStatus, Target, TypingLine } from "../port.ts";
import { createCaller, type PlatformCaller } from "./call.ts";

export interface AdapterLimits {
	callTimeoutMs: number;
	/** How long the daemon may take to make an intent durable. */
	ackLimitMs: number;
	/** How long platforms with idempotent creation are trusted to recognise a nonce. */
	nonceWindowMs: number;
	/** How long a creation with an unknown outcome is retried, and the back-off between two tries. */
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

/** The wait after the n-th creation in a row with an unknown outcome, counted from 1. */
export const doubtWait = ({ doubtWaitMs, doubtWaitMaxMs }: AdapterLimits, nth: number): number =>
	backoffMs({ firstMs: doubtWaitMs, maxMs: doubtWaitMaxMs }, nth - 1);

export interface AdapterContextOptions {
	platform: Platform;
	session: Session;
	sent: SentLog;
	account: string;
	clock: Clock;
	random(): number;
	log: Log;
	say(status: StreamStatus | SendStatus): void;
	/** Resolves when the daemon reads the output. */
	ready(): Promise<void>;
	limits?: Partial<AdapterLimits>;
}

export interface AdapterContext extends Omit<AdapterContextOptions, "limits"> {
	limits: AdapterLimits;
	gate: RateGate;
	call: PlatformCaller;
	pace(target: Target): Pace;
	/** Waits for a turn, calls, and retries transient failures. */
	gated<T>(target: Target, rank: Rank, work: () => Promise<T>): Promise<T>;
	/** Runs a call that creates a message and records its outcome. */
	create(options: SendOptions, work: (options: SendOptions) => Promise<CreatedMessage>): Promise<CreatedMessage>;
	/** The recorded outcome of a creation, or the platform's answer. Undefined: this platform cannot look. */
	find?(target: Target, nonce: string, text: string, signal: AbortSignal): Promise<CreatedMessage | undefined>;
}

export function createAdapterContext(options: AdapterContextOptions): AdapterContext {
	const { platform, session, account, sent } = options;
	// When the system clock is set back, the account must not stay silent for the difference.
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
	const context: AdapterContext = {
		...options,
		clock,
		limits,
		gate,
		call,
		pace,
		gated,
		// The record serves look-ups only.
		create: (given, work) =>
			session.find ? sent.create(given.nonce, (inDoubt) => work({ ...given, inDoubt })) : work(given),
	};
	const { find } = session;
	if (find) {
		context.find = (target, nonce, text, signal) =>
			sent.find(nonce, () => find.call(session, target, nonce, text, signal));
	}
	return context;
}

/** A chat's calls go one after another. */
export const laneOf = (target: Target): string => JSON.stringify([target.to, target.thread_id ?? null]);

/** Shows or hides typing. A failure is only logged. */
export function createTyping({ session, gate, call, pace, log }: AdapterContext): (line: TypingLine) => void {
	const waiting = new Map<string, { on: boolean; doing: Activity }>();
	return ({ target, on, text, tool }) => {
		if (!session.typing) return;
		const lane = `typing ${laneOf(target)}`;
		const isRequested = waiting.has(lane);
		const wanted = { on, doing: doingOf(text, tool) };
		waiting.set(lane, wanted);
		if (isRequested) return;
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
				// A line that came after the call has its own request.
				if (!taken) waiting.delete(lane);
				if (error) log.debug({ to: target.to, error: error.message }, "typing was not shown");
			},
		});
	};
}

/** A model writes these texts: keep one short line. */
function doingOf(text: unknown, tool: unknown): Activity {
	const line = (given: unknown) =>
		typeof given === "string" ? given.replace(/\s+/g, " ").trim().slice(0, DOING_CHARS_MAX).toWellFormed() : "";
	return { text: line(text) || undefined, tool: line(tool) || undefined };
}

const DOING_CHARS_MAX = 100;

export type ShowToolStatus = (tools: readonly ToolCall[]) => void;

/** Shows the running tool outside a delivery's messages, where the platform can. A failure is only logged. */
export function createStatus(context: AdapterContext, target: Target): ShowToolStatus {
	const { session, gate, call, pace, log } = context;
	const { streaming } = session;
	let known: readonly ToolCall[] = [];
	let wanted = "";
	let shown = "";
	let waiting = false;
	return (tools) => {
		if (tools === known || !streaming?.status) return;
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
				await call("status", {}, async () => streaming.status?.(target, shown));
			},
			settled(error) {
				waiting = false;
				if (error) log.debug({ to: target.to, error: error.message }, "the tool status was not shown");
			},
		});
	};
}

/** Keeps the last renderings: rendering is the expensive part of a draft, and a text is often measured and then sent. */
export function createRenderer(platform: Platform): {
	render(markdown: string): string;
	fits(markdown: string): boolean;
	/** The part of a full message that a text takes; above 1 it does not fit. */
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
