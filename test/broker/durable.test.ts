/** The records of a run are durable with its frames, and a tool acts only after its start is durable (A4, A5). */

import { tmpdir } from "node:os";
import type { AgentTool } from "@earendil-works/pi-agent-core";
import { type FauxResponseStep, fauxAssistantMessage, fauxToolCall } from "@earendil-works/pi-ai";
import type { Engine, EngineEvent, EngineRequest, EngineYield } from "@nexus-stream/protocol/engine";
import { describe, expect, test } from "vitest";
import { type Broker, createBroker } from "../../packages/daemon/src/broker/broker.ts";
import { createBus, sqliteStorage } from "../../packages/daemon/src/bus/bus.ts";
import { codingEngine } from "../../packages/daemon/src/engine/pi-coding-agent/pi-coding-agent.ts";
import { sqliteLedger } from "../../packages/daemon/src/ledger/ledger.ts";
import { openSqlite } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import { manualClock } from "../clock.ts";
import { oneByOne } from "../engine/demo-play.ts";
import { fauxEngine, fauxModel, NO_RETRY, ask as piAsk, tool as piTool, said } from "../engine/pi-kit.ts";
import {
	asks,
	answer as modelAnswer,
	engineOf as reasonActOf,
	toolOf,
	text as words,
} from "../engine/reason-act/kit.ts";
import { quiet } from "../quiet.ts";
import { storeForTest } from "../store.ts";
import { ask, framesOf, gate, never, started, tempFile, text, ticks, until, yields, yieldsThenWaits } from "./rig.ts";

type Run = (request: EngineRequest, signal: AbortSignal) => AsyncIterable<EngineYield>;

const engineOf = (run: Run, fields: Partial<Engine> = {}): Engine => ({
	name: "played",
	continues: true,
	run: (request, { signal }) => run(request, signal),
	...fields,
});

const checkpoint = (data: unknown): EngineEvent => ({ type: "checkpoint", data });

/** A store whose commits wait while it is held. */
function heldStore(path: string) {
	const file = openSqlite(path, "process");
	const ledger = sqliteLedger(file);
	const storage = sqliteStorage(file);
	let held: PromiseWithResolvers<void> | undefined;
	const commit: typeof storage.commit = async (one) => {
		await held?.promise;
		return storage.commit(one);
	};
	const slow = new Proxy(storage, {
		get(target, name: keyof typeof storage) {
			const member = target[name];
			if (name === "commit") return commit;
			return typeof member === "function" ? (member as (...args: unknown[]) => unknown).bind(target) : member;
		},
	});
	const bus = createBus({ ...quiet, storage: slow });
	return {
		bus,
		ledger,
		hold() {
			held = Promise.withResolvers<void>();
		},
		release: () => held?.resolve(),
	};
}

describe("A4: a tool acts only after its start is durable", () => {
	const PI = [
		["pi", (responses: FauxResponseStep[], look: AgentTool) => fauxEngine(responses, { tools: [look] })],
		[
			"pi-coding-agent",
			async (responses: FauxResponseStep[], look: AgentTool) => {
				const { faux: _, ...parts } = fauxModel(responses);
				const config = { filesRoot: tmpdir() };
				return { engine: await codingEngine({ ...parts, config, limits: NO_RETRY, tools: [look as never] }) };
			},
		],
	] as const;
	const asksFor = (...ids: string[]) =>
		fauxAssistantMessage(
			ids.map((id) => fauxToolCall("look", {}, { id })),
			{ stopReason: "toolUse" },
		);

	test.each(PI)("%s: no tool acts while the commit of its start is held back", async (_, engineWith) => {
		const store = heldStore(":memory:");
		const begin = gate();
		const acted: string[] = [];
		const look = piTool("look", async (id) => {
			acted.push(id);
			return said("seen");
		});
		const first: FauxResponseStep = async () => {
			await begin.opened;
			return asksFor("a", "b");
		};
		const { engine } = await engineWith([first, fauxAssistantMessage("Done.")], look);
		const broker = createBroker({ ...quiet, ...store, engine });
		const { result } = await ask(broker, "main", "go", { owner: true });
		store.hold();
		begin.open();
		await until(() => (broker.liveRuns()[0]?.toolCalls.length ?? 0) > 0, "a start that waits for its commit");
		await ticks(20);
		expect(acted).toEqual([]);
		store.release();
		expect((await result).toolCalls.map(({ status }) => status)).toEqual(["completed", "completed"]);
		expect(acted).toEqual(["a", "b"]);
		await store.bus.close();
	});

	test.each(PI)("%s: one whose start was never taken does not act", async (_, engineWith) => {
		const acted: string[] = [];
		const look = piTool("look", async (id) => {
			acted.push(id);
			return said("seen");
		});
		const { engine } = await engineWith([asksFor("a"), fauxAssistantMessage("Done.")], look);
		const stop = new AbortController();
		const request = piAsk("go");
		for await (const event of oneByOne(engine.run(request, { signal: stop.signal })))
			if (event.type === "tool" && event.status === "started") stop.abort();
		expect(acted).toEqual([]);
	});

	test("ordinary words are not waited for", async () => {
		const store = heldStore(":memory:");
		const begin = gate();
		const said: number[] = [];
		const engine = engineOf(async function* () {
			await begin.opened;
			for (let n = 0; n < 5; n++) {
				yield text(`${n} `);
				said.push(n);
			}
		});
		const broker = createBroker({ ...quiet, ...store, engine });
		const { result } = await ask(broker, "main", "go");
		store.hold();
		begin.open();
		await until(() => said.length === 5, "five words without a commit");
		store.release();
		await result;
		await store.bus.close();
	});
});

/** Asks a reason-act engine for one tool, in a process that dies; the next one continues. */
async function cutOff(
	path: string,
	die: (store: ReturnType<typeof heldStore>, acted: readonly string[]) => Promise<void>,
) {
	const acted: string[] = [];
	const slow = toolOf("a", {
		execute() {
			acted.push("before");
			return never;
		},
	});
	const dead = heldStore(path);
	const { engine } = await reasonActOf([modelAnswer(words("Let me see. "), asks("a"))], { tools: [slow] });
	const broker = createBroker({ ...quiet, ...dead, engine });
	const { runId } = await ask(broker, "main", "go");
	await die(dead, acted);
	return { runId, acted };
}

async function continued(path: string, runId: string) {
	const acted: string[] = [];
	const store = storeForTest({ path, connection: "none" });
	const tool = toolOf("a", {
		async execute() {
			acted.push("after");
			return { content: [{ type: "text", text: "seen" }] };
		},
	});
	const answers = [modelAnswer(words("Rest.")), modelAnswer(words("End."))];
	const { engine, calls } = await reasonActOf(answers, { tools: [tool] });
	const broker = createBroker({ ...quiet, ...store, engine });
	await broker.recover();
	const continues = await broker.continuation(runId);
	const events = [{ eventId: "e", text: "go", attachments: [] }];
	const execution = broker.execute({ session: "main", runId: "run_next", events, continues });
	const turn = await execution.result;
	return { turn, calls, acted, continues, store };
}

const toldTo = (call: { messages: readonly { role: string; content: unknown }[] }) => JSON.stringify(call.messages);

describe("A4: what a crash says of a tool", () => {
	test("its start was not durable: it never ran, and the model is asked again", async () => {
		const path = tempFile();
		const { runId, acted } = await cutOff(path, async (store) => {
			store.hold();
			await ticks(30);
		});
		expect(acted).toEqual([]);
		const { calls, continues } = await continued(path, runId);
		expect(continues.checkpoint).toBeNull();
		expect(toldTo(calls[0]!)).not.toContain("outcome unknown");
	});

	test("it was under way: its outcome is unknown, and it is not run again by itself", async () => {
		const path = tempFile();
		const { runId, acted } = await cutOff(path, async (_store, acted) => {
			await until(() => acted.length > 0, "the tool acts");
		});
		expect(acted).toEqual(["before"]);
		const { calls, acted: again, turn } = await continued(path, runId);
		expect(toldTo(calls[0]!)).toContain("outcome unknown");
		expect(again).toEqual([]);
		expect(turn).toMatchObject({ status: "completed", continues: runId });
	});
});

function brokerOf(engine: Engine, options: Partial<Parameters<typeof createBroker>[0]> = {}) {
	const store = storeForTest({ connection: "none" });
	const broker: Broker = createBroker({ ...quiet, ...store, engine, ...options });
	return { ...store, broker };
}

describe("A5: checkpoints", () => {
	test("the start of a run is its first; each replaces the one before; completion removes it", async () => {
		const steps = [gate(), gate(), gate()];
		const engine = engineOf(
			async function* () {
				await steps[0]!.opened;
				yield [text("one "), checkpoint({ at: 1 })];
				await steps[1]!.opened;
				yield [text("two "), checkpoint({ at: 2 })];
				await steps[2]!.opened;
			},
			{ configHash: "h" },
		);
		const { broker, stored, bus } = brokerOf(engine);
		const { runId, result } = await ask(broker, "main", "go");
		const row = () => stored.checkpoints.get(runId);
		expect(row()).toMatchObject({ data: "null", root: runId, configHash: "h", engine: "played", lengths: {} });
		steps[0]!.open();
		await until(() => row()?.data === '{"at":1}', "the first checkpoint");
		// With its frames, in one commit.
		expect(JSON.stringify(await framesOf(bus, runId))).toContain("one ");
		expect(Object.values(row()!.lengths)).toEqual([4]);
		steps[1]!.open();
		await until(() => row()?.data === '{"at":2}', "the second checkpoint");
		steps[2]!.open();
		await result;
		expect(row()).toBeUndefined();
	});

	test("an engine that does not continue has none", async () => {
		const engine = engineOf(yieldsThenWaits(checkpoint({})));
		const { broker, stored } = brokerOf({ ...engine, continues: false });
		const { runId, abort, result } = await ask(broker, "main", "go");
		abort();
		await result;
		expect(stored.checkpoints.get(runId)).toBeUndefined();
		await expect(broker.continuation(runId)).rejects.toMatchObject({
			code: "conflict",
			message: expect.stringContaining("keeps no checkpoints"),
		});
	});

	test("one that is too large is dropped with a line in the log, and the one before with it", async () => {
		const lines: string[] = [];
		const engine = engineOf(async function* () {
			yield checkpoint({ at: 1 });
			yield checkpoint("x".repeat(200));
			throw new Error("cut off");
		});
		const log = { debug() {}, info() {}, error() {}, warn: (_: object, message: string) => void lines.push(message) };
		const { broker, stored } = brokerOf(engine, { limits: { checkpointBytesMax: 100 }, log });
		const { runId, result } = await ask(broker, "main", "go");
		await result;
		expect(lines).toEqual([expect.stringContaining("too large")]);
		expect(stored.checkpoints.get(runId)).toBeUndefined();
		await expect(broker.continuation(runId)).rejects.toThrow("no checkpoint");
	});
});

describe("a session's phase", () => {
	const phases = ["plan", "execute"];

	test("begins with the engine's first, is in the engine's request, changes with its event, and counts turns and completions", async () => {
		const clock = manualClock();
		const told: unknown[] = [];
		const engine = engineOf(
			async function* ({ phase }) {
				told.push(phase);
				yield { type: "phase", name: "execute", because: "the plan stands" };
				yield { type: "log", entry: { kind: "completion", text: "done" } };
			},
			{ phases },
		);
		const { broker, stored } = brokerOf(engine, { clock });
		await (await ask(broker, "main", "go")).result;
		expect(told).toEqual([{ name: "plan", since: clock.now() }]);
		expect(stored.phases.get("main")).toEqual({
			session: "main",
			name: "execute",
			from: "plan",
			because: "the plan stands",
			since: clock.now(),
			turns: 1,
			completions: 1,
		});
		await broker.phases.enter("main", "plan", "again");
		expect(await broker.phases.of("main")).toMatchObject({ phase: { name: "plan", from: "execute" }, known: phases });
	});

	test("the first one that a person sets is in the engine's request, with the phase it replaced and the reason", async () => {
		const clock = manualClock();
		const told: unknown[] = [];
		const engine = engineOf(
			async function* ({ phase }) {
				told.push(phase);
				yield text("done");
			},
			{ phases },
		);
		const { broker } = brokerOf(engine, { clock });
		await broker.phases.enter("main", "execute", "it is time");
		await (await ask(broker, "main", "go")).result;
		await broker.phases.enter("other", "plan", "think first");
		await (await ask(broker, "other", "go")).result;
		expect(told).toEqual([
			{ name: "execute", since: clock.now(), from: "plan", because: "it is time" },
			{ name: "plan", since: clock.now(), because: "think first" },
		]);
	});

	test("a name that the engine does not know is refused with those it knows", async () => {
		const engine = engineOf(yields({ type: "phase", name: "party", because: "why not" }), { phases });
		const { broker } = brokerOf(engine);
		const words = 'there is no phase "party"; the phases are plan, execute';
		await expect(broker.phases.enter("main", "party", "")).rejects.toThrow(words);
		const turn = await (await ask(broker, "main", "go")).result;
		expect(turn).toMatchObject({ status: "failed", error: { message: words } });
	});
});

describe("the execution log", () => {
	const call = { type: "tool" as const, callId: "c", name: "look" };

	const played = (clock = manualClock()) => ({
		clock,
		engine: engineOf(async function* () {
			yield { ...call, status: "started", args: { key: "secret" }, summary: "looks" };
			clock.advance(70);
			yield { ...call, status: "completed", result: "secret answer", summary: "found it", agent: "writer" };
			yield {
				type: "log",
				entry: { kind: "routing", agent: "lead", text: "to writer", data: { to: "writer", prompt: "p" } },
			};
		}),
	});

	test("R2-91: has tools with their true times, and what the engine notes; arguments only if asked", async () => {
		for (const withArguments of [false, true]) {
			const { clock, engine } = played();
			const at = clock.now();
			const { broker, stored } = brokerOf(engine, { clock, execution: { arguments: withArguments } });
			const { runId, result } = await ask(broker, "main", "go");
			await result;
			const entries = stored.execution.list({ session: "main", limit: 10 }).toReversed();
			expect(entries.map(({ kind, at, text, data }) => [kind, at, text, data?.status, data?.ms])).toEqual([
				["tool", at, "looks", "started", undefined],
				["tool", at + 70, "found it", "completed", 70],
				["routing", at + 70, "to writer", undefined, undefined],
			]);
			expect(entries.every((entry) => entry.runId === runId)).toBe(true);
			expect(JSON.stringify(entries).includes("secret")).toBe(withArguments);
			expect(entries.at(-1)).toMatchObject({ agent: "lead", data: withArguments ? { prompt: "p" } : { to: "writer" } });
		}
	});

	test("a tool that its run left open has its end there, also when recovery settles it", async () => {
		const path = tempFile();
		const dead = heldStore(path);
		const engine = engineOf(yieldsThenWaits(started("a")));
		const { runId } = await ask(createBroker({ ...quiet, ...dead, engine }), "main", "go");
		const entries = async () => (await dead.ledger.execution.list({ session: "main", limit: 10 })).length;
		await until(async () => (await entries()) === 1, "the tool's start");
		const { bus, ledger, stored } = storeForTest({ path, connection: "none" });
		await createBroker({ ...quiet, bus, ledger, engine }).recover();
		const [end, start] = stored.execution.list({ session: "main", runId, limit: 10 });
		expect(start).toMatchObject({ data: { call_id: "a", status: "started" } });
		expect(end).toMatchObject({ kind: "tool", text: "the process ended", data: { call_id: "a", status: "failed" } });
	});

	test("A4: after a stop a tool's outcome and its checkpoint are still taken", async () => {
		const engine: Engine = {
			...engineOf(async function* () {}),
			async *run(_request, { signal }) {
				yield [started("a"), checkpoint("started")];
				await new Promise((resolve) => signal.addEventListener("abort", resolve));
				yield [{ type: "tool", callId: "a", name: "look", status: "failed", result: "stopped" }, checkpoint("ended")];
			},
		};
		const { broker, stored } = brokerOf(engine);
		const { runId, abort, result } = await ask(broker, "main", "go");
		await until(() => stored.checkpoints.get(runId)?.data === '"started"', "the checkpoint of its start");
		abort();
		await result;
		expect(stored.checkpoints.get(runId)?.data).toBe('"ended"');
	});

	test("I11: a run adds so many entries and no more, each of so many characters", async () => {
		const engine = engineOf(async function* () {
			for (let n = 0; n < 50; n++) yield { type: "log", entry: { kind: "note", text: `${n} ${"x".repeat(500)}` } };
		});
		const limits = { executionEntriesMax: 3, executionCharsMax: 100 };
		const { broker, stored } = brokerOf(engine, { limits });
		await (await ask(broker, "main", "go")).result;
		const texts = stored.execution.list({ session: "main", limit: 100 }).map((entry) => entry.text);
		expect(texts).toHaveLength(4);
		expect(texts[0]).toContain("more than 3 entries");
		expect(Math.max(...texts.map((one) => one.length))).toBeLessThan(200);
	});
});
