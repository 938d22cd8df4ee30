/** Loads the plugins of the config and calls them one after another. A plugin that throws, hangs or returns an invalid result changes nothing; log, trace and counters show it. */

import { basename, extname, resolve } from "node:path";
import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { HookCall } from "../../ledger/turns/port.ts";
import { importWithin } from "../../std/import-within.ts";
import {
	HOOK_NAMES,
	type HookAnswer,
	type HookContext,
	type HookName,
	type HookRequest,
	type NamedPlugin,
	type Plugin,
} from "./port.ts";

export const HOOK_LIMITS = {
	/** Time limit of one call. */
	pluginMs: 5000,
	/** Characters that plugins may attach to one message, and of `hooks.context` as JSON. */
	hookCharsMax: 64 * 1024,
};

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

export type Hooks = ReturnType<typeof createHooks>;

export interface HooksOptions {
	plugins: readonly NamedPlugin[];
	limits: typeof HOOK_LIMITS;
	clock: Clock;
	log: Log;
}

export function createHooks({ plugins, limits, clock, log }: HooksOptions) {
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
		has: (hook: HookName) => plugins.some((plugin) => plugin[hook]),
		/** Every plugin sees the changes of those before it; the first rejection ends the calls. Never rejects. */
		async call(hook: HookName, request: HookRequest): Promise<HookResult> {
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
		stats: (): PluginStats[] => [...stats].map(([name, counts]) => ({ name, ...counts })),
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

/** Paths are relative to `base`, the config's folder. Rejects with a `config` error that says what to change. */
export function loadPlugins(modules: readonly string[], base: string): Promise<NamedPlugin[]> {
	return Promise.all(modules.map((module) => loadPlugin(module, base)));
}

async function loadPlugin(module: string, base: string): Promise<NamedPlugin> {
	const path = resolve(base, module);
	const exports = await importWithin(path).catch((cause: unknown) => {
		const reason = cause instanceof Error ? cause.message : String(cause);
		const found = `cannot be loaded: ${reason}\nPaths are relative to the folder of the config, ${base}`;
		throw new NexusError("config", `plugin ${module}: ${found}`, { cause });
	});
	return pluginFrom(exports.default, module);
}

/** Checks a plugin wherever it came from; `from` names it in the refusal. */
export function pluginFrom(found: unknown, from: string): NamedPlugin {
	if (found === undefined) throw refusal(from, "has no default export");
	if (typeof found !== "object" || found === null || Array.isArray(found))
		throw refusal(
			from,
			`its default export is ${found === null ? "null" : Array.isArray(found) ? "a list" : `a ${typeof found}`}`,
		);
	const members = found as Record<string, unknown>;
	const name = members.name ?? basename(from, extname(from));
	if (typeof name !== "string" || name === "") throw refusal(from, "its `name` is not a text");
	const wrong = HOOK_NAMES.find((hook) => members[hook] !== undefined && typeof members[hook] !== "function");
	if (wrong) throw refusal(from, `its \`${wrong}\` is a ${typeof members[wrong]}, not a function`);
	// A misspelt hook would silently never be called.
	const unknown = Object.keys(members).find((key) => /^on[A-Z]/.test(key) && !HOOK_NAMES.some((hook) => hook === key));
	if (unknown) throw refusal(from, `it has \`${unknown}\`, which is never called`);
	if (!HOOK_NAMES.some((hook) => members[hook])) throw refusal(from, `it has none of ${HOOK_NAMES.join(", ")}`);
	const plugin = found as Plugin;
	return {
		name,
		onReceive: plugin.onReceive?.bind(plugin),
		onPrepare: plugin.onPrepare?.bind(plugin),
		onComplete: plugin.onComplete?.bind(plugin),
	};
}

const refusal = (module: string, found: string) => new NexusError("config", `plugin ${module}: ${found}${SHAPE}`);

const SHAPE = `

A plugin is a module like this; each function may be left out:

  export default {
    name: "my-plugin",
    onReceive(request) {
      if (request.event.text.includes("spam")) return { reject: "no spam" };
      return { text: request.event.text.trim() };
    },
    onPrepare(request) {
      return { attach: "Today is " + new Date().toDateString(), context: { disable_streaming: true } };
    },
    onComplete(request) {
      console.log(request.response.status);
    },
  };
`;
