import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { responseOf } from "../../../packages/daemon/src/nex/inbox/response.ts";
import { createHooks, HOOK_LIMITS, loadPlugins, pluginFrom } from "../../../packages/daemon/src/nex/plugins/hooks.ts";
import type { HookRequest, Plugin } from "../../../packages/daemon/src/nex/plugins/port.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { never } from "../../broker/rig.ts";
import { manualClock } from "../../clock.ts";
import { turnOf } from "../../ledger/rig.ts";

const requestOf = (text = "hello"): HookRequest => ({
	event: { eventId: "evt_1", text, attachments: [], receivedAt: 0 },
	channel: "telegram",
	account: "bot",
	session: "s",
	agent: "main",
	sender: { id: "ann", owner: false },
	chat: { id: "c", type: "direct" },
	hooks: { context: {} },
});

function hooksOf(...plugins: Plugin[]) {
	const clock = manualClock();
	const logged: object[] = [];
	const log = { ...silentLog, error: (facts: object) => void logged.push(facts) };
	const named = plugins.map((plugin, n) => pluginFrom(plugin, `p${n}`));
	return { clock, logged, hooks: createHooks({ plugins: named, limits: HOOK_LIMITS, clock, log }) };
}

describe("plugins", () => {
	test("change what the next one sees, by answering or by writing into hooks.context", async () => {
		const seen: unknown[] = [];
		const { hooks } = hooksOf(
			{ onReceive: ({ event }) => ({ text: `${event.text}!`, attach: "note" }) },
			{
				onReceive(request) {
					request.hooks.context.disable_streaming = true;
				},
			},
			{
				onReceive: ({ event, hooks: { context } }) => {
					seen.push(event.text, context);
					return { context: { mood: "good" } };
				},
			},
		);
		const result = await hooks.call("onReceive", requestOf());
		expect(seen).toEqual(["hello!", { disable_streaming: true }]);
		expect(result).toMatchObject({
			text: "hello!",
			attached: ["note"],
			context: { disable_streaming: true, mood: "good" },
		});
		expect(result.calls.map(({ outcome }) => outcome)).toEqual(["changed", "changed", "changed"]);
	});

	test("see a copy: only hooks.context is taken over", async () => {
		const { hooks } = hooksOf({
			onReceive(request) {
				request.event.text = "smuggled";
				request.session = "stolen";
			},
		});
		const request = requestOf();
		const result = await hooks.call("onReceive", request);
		expect(result.text).toBe("hello");
		expect(request).toEqual(requestOf());
	});

	test("attach no more than the limit", async () => {
		const { hooks } = hooksOf({ onPrepare: () => ({ attach: "x".repeat(HOOK_LIMITS.hookCharsMax + 1) }) });
		const { attached } = await hooks.call("onPrepare", requestOf());
		expect(attached).toEqual(["x".repeat(HOOK_LIMITS.hookCharsMax)]);
	});

	test("the first rejection is the last call", async () => {
		const { hooks } = hooksOf({ onReceive: () => ({ reject: "no" }) }, { onReceive: () => ({ text: "never" }) });
		const result = await hooks.call("onReceive", requestOf());
		expect(result).toMatchObject({ reject: "no", text: "hello" });
		expect(result.calls).toEqual([{ plugin: "p0", hook: "onReceive", ms: 0, outcome: "rejected", detail: "no" }]);
	});

	test.each<[string, Plugin["onReceive"], string]>([
		["throws", () => Promise.reject(new Error("odd")), "odd"],
		[
			"throws at once",
			() => {
				throw new Error("odd");
			},
			"odd",
		],
		[
			"answers with no object",
			(() => 7) as never,
			"returned a number; allowed: nothing, or { reject?, text?, attach?, context? }",
		],
		["answers with a misspelling", (() => ({ txt: "x" })) as never, "returned `txt`"],
		["answers with a wrong type", (() => ({ text: 7 })) as never, "returned a `text` that is not string"],
		["fills the context", () => ({ context: { big: "x".repeat(70_000) } }), "more than 65536 characters"],
	])("one that %s changes nothing, and is seen", async (_, onReceive, detail) => {
		const { hooks, logged } = hooksOf({ name: "bad", onReceive: onReceive! }, { onReceive: () => ({ text: "good" }) });
		const result = await hooks.call("onReceive", requestOf());
		expect(result).toMatchObject({ text: "good", context: {}, attached: [] });
		expect(result.calls[0]).toMatchObject({
			plugin: "bad",
			outcome: "failed",
			detail: expect.stringContaining(detail),
		});
		expect(logged).toMatchObject([{ plugin: "bad", hook: "onReceive", eventId: "evt_1" }]);
		expect(hooks.stats()[0]).toEqual({ name: "bad", calls: 1, failures: 1, timeouts: 0, rejections: 0 });
	});

	test("a plugin that hangs is abandoned at its time limit, and its signal aborts", async () => {
		let signal: AbortSignal | undefined;
		const hang: Plugin = {
			name: "slow",
			onPrepare: (_, tools) => {
				signal = tools.signal;
				return never;
			},
		};
		const { hooks, clock } = hooksOf(hang);
		const called = hooks.call("onPrepare", requestOf());
		clock.advance(HOOK_LIMITS.pluginMs);
		const result = await called;
		expect(result.calls).toEqual([
			{ plugin: "slow", hook: "onPrepare", ms: 5000, outcome: "timeout", detail: "took longer than 5000 ms" },
		]);
		expect(signal?.aborted).toBe(true);
		expect(hooks.stats()[0]).toMatchObject({ timeouts: 1 });
	});
});

describe("loading", () => {
	function moduleOf(source: string): { base: string; module: string } {
		const base = mkdtempSync(join(tmpdir(), "nexus-plugin-"));
		onTestFinished(() => rmSync(base, { recursive: true }));
		writeFileSync(join(base, "mine.mjs"), source);
		return { base, module: "./mine.mjs" };
	}

	test("a plugin is called by its file's name unless it has one", async () => {
		const { base, module } = moduleOf("export default { onReceive() {} }");
		expect(await loadPlugins([module], base)).toMatchObject([{ name: "mine" }]);
	});

	test.each([
		["nothing exported", "", "has no default export"],
		["a function", "export default () => {}", "its default export is a function"],
		["a list", "export default []", "its default export is a list"],
		["no hook", "export default { name: 'x' }", "it has none of onReceive, onPrepare, onComplete"],
		["a hook that is not a function", "export default { onReceive: 1 }", "its `onReceive` is a number"],
		["a misspelt hook", "export default { onRecieve() {} }", "it has `onRecieve`, which is never called"],
		["an invalid name", "export default { name: 1, onReceive() {} }", "its `name` is not a text"],
	])("%s is refused with a plugin to copy", async (_, source, found) => {
		const { base, module } = moduleOf(source);
		await expect(loadPlugins([module], base)).rejects.toMatchObject({
			code: "config",
			message: expect.stringMatching(
				new RegExp(`^plugin ./mine.mjs: .*${found.replaceAll(/[`.]/g, ".")}[\\s\\S]*export default \\{`),
			),
		});
	});

	test("one that cannot be loaded is refused with the reason alone", async () => {
		const { base, module } = moduleOf("throw new Error('broken')");
		await expect(loadPlugins([module], base)).rejects.toMatchObject({
			code: "config",
			message: `plugin ./mine.mjs: cannot be loaded: broken\nPaths are relative to the folder of the config, ${base}`,
		});
	});

	test("examples/plugin.mjs is one", async () => {
		const [plugin] = await loadPlugins(["./plugin.mjs"], join(import.meta.dirname, "../../../examples"));
		const { hooks } = hooksOf(plugin!);
		expect(await hooks.call("onReceive", requestOf("  my password "))).toMatchObject({ reject: expect.any(String) });
		expect(await hooks.call("onReceive", requestOf("  hi "))).toMatchObject({ text: "hi" });
		expect(await hooks.call("onPrepare", requestOf("report it"))).toMatchObject({
			context: { disable_streaming: true },
		});
	});
});

it("P3.10: plugins see the answer without hidden words", () => {
	const turn = turnOf("run_1", {
		messages: [
			{ role: "user", text: "hi" },
			{ role: "assistant", text: "secret", agent: "lead", visible: false },
			{ role: "assistant", text: "Hello", agent: "writer" },
		],
	});
	expect(responseOf({ turn, deliveries: [], chunks: 2 }).text).toBe("Hello");
});
