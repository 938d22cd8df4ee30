/** Shared by the verbs that write: the session, its gate, its calls, and the measuring of its texts. */

import { wordsOf } from "@nexus-stream/protocol";
import { type Clock, steady } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import type { Log } from "@nexus-stream/protocol/log";
import { backoffMs } from "@nexus-stream/protocol/retry";
import { statusLine, type ToolCall } from "../draft/tool-line.ts";
import { type GateJob, type GateTicket, RateGate } from "../gate/gate.ts";
import type { GateLimits, Rank } from "../gate/gate-step.ts";
import type { FitRules } from "../markdown/fit.ts";
import type { SentLog } from "../memory/sent.ts";
import type { Platform } from "../platform/platform.ts";
import { PlatformError } from "../platform/platform-error.ts";
import type { CreatedMessage, SendOptions, Session } from "../platform/session.ts";
import type { Activity, DeliveryFields, SendStatus, StreamStatus, Target, TypingLine } from "../port.ts";

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

/** One platform call: limited and measured in time, every failure as one of the six platform faults. */
export type PlatformCaller = <T>(
	name: string,
	fields: DeliveryFields,
	work: (signal: AbortSignal) => Promise<T>,
) => Promise<T>;

export interface AdapterContext extends Omit<AdapterContextOptions, "limits"> {
	limits: AdapterLimits;
	gate: RateGate;
	call: PlatformCaller;
	/** A turn in the target's lane, at its pace. */
	request(target: Target, job: Pick<GateJob, "rank" | "paced" | "run" | "settled">): GateTicket;
	/** A turn outside the order of the messages, soon or never: a failure is only logged. */
	requestAside(name: string, target: Target, run: () => Promise<void>): void;
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
	const gate = new RateGate({
		clock,
		random: options.random,
		ready: options.ready,
		limits: limits.gate,
		onRateLimited: (retryAfterMs) => options.say({ type: "rate_limited", retryAfterMs, account }),
	});
	const pace = (target: Target) => session.pace?.(target) ?? platform.pace(target);
	const request: AdapterContext["request"] = (target, job) =>
		gate.request({ ...pace(target), lane: laneOf(target), ...job });
	const context: AdapterContext = {
		...options,
		clock,
		limits,
		gate,
		call: createCaller(clock, limits.callTimeoutMs, options.say),
		request,
		requestAside: (name, target, run) => {
			const settled = (error?: PlatformError) => {
				if (error) options.log.debug({ to: target.to, error: error.message }, `${name} was not shown`);
			};
			const lane = `${name} ${laneOf(target)}`;
			gate.request({ ...pace(target), targetIntervalMs: 0, lane, rank: "typing", paced: false, run, settled });
		},
		gated: (target, rank, work) =>
			new Promise((resolve, reject) => {
				let settle = () => {};
				const run = async () => {
					const result = await work();
					settle = () => resolve(result);
				};
				request(target, { rank, paced: true, run, settled: (error) => (error ? reject(error) : settle()) });
			}),
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

/** Calls that must not happen twice: without an answer their outcome is unknown. */
const ONCE: ReadonlySet<string> = new Set(["create", "start", "append", "attach"]);

export function createCaller(clock: Clock, callTimeoutMs: number, say: (status: StreamStatus) => void): PlatformCaller {
	return async (name, fields, work) => {
		const begun = clock.now();
		const abort = new AbortController();
		const late = Promise.withResolvers<never>();
		const cancel = clock.after(callTimeoutMs, () => {
			const error = new PlatformError("unknown_outcome", `${name}: no answer within ${callTimeoutMs} ms`);
			late.reject(error);
			abort.abort(error);
		});
		const report = (ok: boolean, detail?: string) =>
			say({ type: "call", call: name, ms: clock.now() - begun, ok, detail, ...fields });
		try {
			const result = await Promise.race([work(abort.signal), late.promise]);
			report(true);
			return result;
		} catch (cause) {
			const error = asPlatformError(name, cause);
			report(false, `${error.fault}: ${error.message}`);
			throw error;
		} finally {
			cancel();
		}
	};
}

function asPlatformError(name: string, cause: unknown): PlatformError {
	const once = ONCE.has(name);
	if (!(cause instanceof PlatformError))
		return new PlatformError(once ? "unknown_outcome" : "unavailable", `${name}: ${wordsOf(cause)}`, { cause });
	if (cause.fault !== "unknown_outcome" || once) return cause;
	// Repeating it does no harm, so an unknown outcome is a plain failure.
	return new PlatformError("unavailable", cause.message, { cause });
}

/** Shows or hides typing; of several lines that wait, the newest counts. */
export function createTyping({ session, requestAside, call }: AdapterContext): (line: TypingLine) => void {
	const waiting = new Map<string, TypingLine>();
	return (line) => {
		if (!session.typing) return;
		const { target } = line;
		const lane = laneOf(target);
		const isRequested = waiting.has(lane);
		waiting.set(lane, line);
		if (isRequested) return;
		requestAside("typing", target, async () => {
			const { on, text, tool } = waiting.get(lane) ?? line;
			waiting.delete(lane);
			await call("typing", {}, async () => session.typing?.(target, on, doingOf(text, tool)));
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

/** Shows the running tool outside a delivery's messages, where the platform can. */
export function createStatus({ session, requestAside, call }: AdapterContext, target: Target): ShowToolStatus {
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
		requestAside("tool status", target, async () => {
			waiting = false;
			shown = wanted;
			await call("status", {}, async () => streaming.status?.(target, shown));
		});
	};
}

/** Keeps the last renderings: rendering is the expensive part of a draft, and a text is often measured and then sent. */
export function createRenderer(platform: Platform): FitRules & { render(markdown: string): string } {
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
	const share = (markdown: string) => length(markdown) / textMax;
	return { render, fits: (markdown) => length(markdown) <= textMax, share, guess: textMax };
}
