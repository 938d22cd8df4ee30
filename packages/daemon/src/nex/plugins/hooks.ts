/** Calls the plugins one after another. A plugin that throws, hangs or returns an invalid result changes nothing; log, trace and counters show it. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { HookCall } from "../../ledger/turns/port.ts";
import type { HookAnswer, HookContext, HookName, HookRequest, NamedPlugin } from "./port.ts";

export interface HookLimits {
	/** Time limit of one call. */
	pluginMs: number;
	/** Characters that plugins may attach to one message, and of `hooks.context` as JSON. */
	hookCharsMax: number;
}

export const HOOK_LIMITS: HookLimits = { pluginMs: 5000, hookCharsMax: 64 * 1024 };

export interface PluginStats {
	name: string;
	calls: number;
	failures: number;
	timeouts: number;
	rejections: number;
}

/** The combined result of all plugins. */
export interface HookResult {
	/** The text after the last plugin. */
	text: string;
	context: HookContext;
	attached: string[];
	calls: HookCall[];
	reject?: string;
}

export interface Hooks {
	has(hook: HookName): boolean;
	/** Every plugin sees the changes of those before it; the first rejection ends the calls. Never rejects. */
	call(hook: HookName, request: HookRequest): Promise<HookResult>;
	stats(): PluginStats[];
}

export interface HooksOptions {
	plugins: readonly NamedPlugin[];
	limits: HookLimits;
	clock: Clock;
	log: Log;
}

export function createHooks({ plugins, limits, clock, log }: HooksOptions): Hooks {
	const stats = new Map(plugins.map(({ name }) => [name, { calls: 0, failures: 0, timeouts: 0, rejections: 0 }]));

	async function once(plugin: NamedPlugin, hook: HookName, request: HookRequest): Promise<HookOutcome> {
		const draft = structuredClone(request);
		const answer = await within(clock, limits.pluginMs, (signal) => plugin[hook]?.(draft, { signal }));
		if (hook === "onComplete") return { answer: {}, context: request.hooks.context };
		const wanted = checked(answer);
		return { answer: wanted, context: fitting({ ...draft.hooks.context, ...wanted.context }, limits.hookCharsMax) };
	}

	async function call(plugin: NamedPlugin, hook: HookName, request: HookRequest): Promise<[HookCall, HookOutcome?]> {
		const count = stats.get(plugin.name)!;
		const at = clock.now();
		count.calls++;
		const entry = (outcome: HookCall["outcome"], detail?: string): HookCall => ({
			plugin: plugin.name,
			hook,
			ms: clock.now() - at,
			outcome,
			detail,
		});
		try {
			const outcome = await once(plugin, hook, request);
			if (outcome.answer.reject === undefined) return [entry(changes(outcome, request) ? "changed" : "ok"), outcome];
			count.rejections++;
			return [entry("rejected", outcome.answer.reject), outcome];
		} catch (cause) {
			const late = cause instanceof TooLate;
			count[late ? "timeouts" : "failures"]++;
			const { eventId } = request.event;
			log.error({ plugin: plugin.name, hook, eventId, runId: request.runId, err: cause }, "a plugin failed");
			return [entry(late ? "timeout" : "failed", cause instanceof Error ? cause.message : String(cause))];
		}
	}

	return {
		has: (hook) => plugins.some((plugin) => plugin[hook]),
		async call(hook, request) {
			const result: HookResult = { text: request.event.text, context: request.hooks.context, attached: [], calls: [] };
			for (const plugin of plugins) {
				if (!plugin[hook]) continue;
				const event = { ...request.event, text: result.text };
				const [entry, outcome] = await call(plugin, hook, { ...request, event, hooks: { context: result.context } });
				result.calls.push(entry);
				if (!outcome) continue;
				const { reject, text, attach } = outcome.answer;
				if (reject !== undefined) return { ...result, reject };
				if (text !== undefined) result.text = text;
				if (attach !== undefined) result.attached.push(attach.slice(0, limits.hookCharsMax));
				result.context = outcome.context;
			}
			return result;
		},
		stats: () => [...stats].map(([name, counts]) => ({ name, ...counts })),
	};
}

interface HookOutcome {
	answer: HookAnswer;
	/** The context after the plugin's changes. */
	context: HookContext;
}

const changes = ({ answer, context }: HookOutcome, request: HookRequest): boolean =>
	Object.keys(answer).length > 0 || JSON.stringify(context) !== JSON.stringify(request.hooks.context);

class TooLate extends Error {}

/** Ends the wait at the time limit. A plugin that blocks the event loop cannot be stopped. */
function within(clock: Clock, ms: number, work: (signal: AbortSignal) => unknown): Promise<unknown> {
	const controller = new AbortController();
	return new Promise((resolve, reject) => {
		const cancel = clock.after(ms, () => {
			const late = new TooLate(`took longer than ${ms} ms`);
			controller.abort(late);
			reject(late);
		});
		const run = async () => work(controller.signal);
		run().then(resolve, reject).finally(cancel);
	});
}

const ANSWER_KEYS: Record<keyof HookAnswer, "string" | "object"> = {
	reject: "string",
	text: "string",
	attach: "string",
	context: "object",
};

function checked(answer: unknown): HookAnswer {
	if (answer === undefined || answer === null) return {};
	if (typeof answer !== "object") throw new TypeError(`returned a ${typeof answer}; allowed: ${ALLOWED}`);
	for (const [key, value] of Object.entries(answer)) {
		if (!Object.hasOwn(ANSWER_KEYS, key)) throw new TypeError(`returned \`${key}\`; allowed: ${ALLOWED}`);
		if (value !== undefined && (typeof value !== ANSWER_KEYS[key as keyof HookAnswer] || value === null))
			throw new TypeError(`returned a \`${key}\` that is not ${ANSWER_KEYS[key as keyof HookAnswer]}`);
	}
	return answer;
}

const ALLOWED = "nothing, or { reject?, text?, attach?, context? }";

/** The context is recorded with the message, so it must be JSON and small. */
function fitting(context: HookContext, charsMax: number): HookContext {
	const text = JSON.stringify(context);
	if (text.length > charsMax) throw new RangeError(`hooks.context has more than ${charsMax} characters`);
	return JSON.parse(text) as HookContext;
}
