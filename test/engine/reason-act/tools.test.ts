/** Tools without a loop: what people and models read of a call, and in which order calls run. */

import { validateToolArguments } from "@earendil-works/pi-ai";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
	type ReadyCall,
	runTools,
	type ScheduleOptions,
	type ToolOutcome,
	toolRoom,
} from "../../../packages/daemon/src/engine/reason-act/schedule.ts";
import { type Tool, textResult } from "../../../packages/daemon/src/engine/tool.ts";
import { describeCall, prepareCall, toolRegistry } from "../../../packages/daemon/src/engine/tools/tools.ts";
import { systemClock } from "../../../packages/protocol/src/clock.ts";
import { contentText } from "../../../packages/protocol/src/protocol.ts";
import { atEffort } from "../../effort.ts";
import "../../seed.ts";
import { settle } from "../demo-play.ts";
import { toolOf } from "./kit.ts";

describe("descriptions", () => {
	test.each<[string, string, object, string]>([
		["R2-26", "read", { file_path: "a.md", path: "b.md" }, "📖 Reading a.md"],
		["R2-26", "read", { path: "b.md" }, "📖 Reading b.md"],
		["R2-26", "read", {}, "📖 Reading file"],
		["R2-27", "edit", { path: "b.md" }, "✏️ Editing b.md"],
		["R2-28", "bash", { command: "git status" }, "🔧 Running git command: git status"],
		["R2-28", "bash", { command: "gitk --all" }, "🖥️ Running command: gitk --all"],
		["R2-29", "bash", { command: "x".repeat(51) }, `🖥️ Running command: ${"x".repeat(50)}...`],
		["R2-29", "bash", { command: "x".repeat(50) }, `🖥️ Running command: ${"x".repeat(50)}`],
		["R2-30", "mcp__docs__search_all_pages", {}, "🔌 Using docs to search all pages"],
		["R2-30", "mcp__", {}, "🔌 Using mcp to action"],
		["R2-31", "weather", {}, "🛠️ Using weather"],
		["R2-31", "", {}, "🛠️ Using tool"],
		["R2-31", "constructor", {}, "🛠️ Using constructor"],
	])("%s: %s %j", (_item, name, args, text) => expect(describeCall(name, args)).toBe(text));

	test("R2-32: a tool describes itself", () => {
		const own = ({ city }: { city?: unknown }) => `☀️ Asking about ${String(city)}`;
		expect(describeCall("weather", { city: "Rome\nand more" }, own)).toBe("☀️ Asking about Rome and more");
	});

	test("one that fails to describe itself is described as any other", () => {
		const fails = () => {
			throw new Error("no");
		};
		expect(describeCall("weather", {}, fails)).toBe("🛠️ Using weather");
		expect(describeCall("read", { path: "a" }, () => 5 as never)).toBe("📖 Reading a");
	});

	test("a character is never cut, and nothing that a model passes throws", () => {
		expect(describeCall("bash", { command: "😀".repeat(60) })).toBe(`🖥️ Running command: ${"😀".repeat(50)}...`);
		fc.assert(
			fc.property(fc.constantFrom("read", "edit", "bash", "mcp__a", "x"), fc.anything(), (name, args) => {
				expect(describeCall(name, args)).toMatch(/^\S+ \S/);
			}),
			{ numRuns: atEffort(1000, 100) },
		);
	});
});

describe("the registry", () => {
	const parameters = {
		type: "object",
		properties: { city: { type: "string" }, days: { type: "integer" } },
		required: ["city"],
		additionalProperties: false,
	};
	const registry = toolRegistry([
		toolOf("weather", { parameters }),
		toolOf("mcp__docs__read"),
		toolOf("mcp__web__read"),
	]);
	const prepare = (name: string, args: unknown) => prepareCall(registry, validateToolArguments as never, name, args);

	test("arguments that fit pass, and what can be read as the right type is converted", () => {
		expect(prepare("weather", { city: "Rome", days: "3" })).toMatchObject({ args: { city: "Rome", days: 3 } });
	});

	test("the model reads what is wrong with others", () => {
		expect(prepare("weather", { days: 3 })).toMatchObject({ problem: expect.stringMatching(/weather[\s\S]*city/) });
		// Where there is room for one line only, it says what.
		expect(prepare("weather", { days: 3 })).toMatchObject({
			problem: expect.stringMatching(/^wrong arguments: .*city/),
		});
		expect(prepare("weather", { city: "Rome", x: 1 })).toMatchObject({ problem: expect.stringContaining("weather") });
		expect(prepare("weather", "Rome")).toEqual({
			problem: "the arguments of weather must be a JSON object, not Rome",
		});
		expect(prepare("wether", {})).toEqual({
			problem: 'there is no tool "wether"; the tools are: weather, mcp__docs__read, mcp__web__read',
		});
	});

	test("garbage is a problem in words, never an exception (I11: of a bounded length)", () => {
		fc.assert(
			fc.property(fc.anything(), (args) => {
				const prepared = prepare("weather", args);
				if ("problem" in prepared) expect(prepared.problem).toMatch(/^[\s\S]{1,2000}$/);
				else expect(prepared.args).toHaveProperty("city");
			}),
			{ numRuns: atEffort(2000, 200) },
		);
	});

	test("two tools of one name, and names that providers refuse, are a mistake of the configuration", () => {
		expect(() => toolRegistry([toolOf("a"), toolOf("a")])).toThrow('two tools "a"');
		expect(() => toolRegistry([toolOf("a b")])).toThrow("64 letters");
	});
});

/** Calls with notes of what happened, in order. */
function bench(tools: Tool[], options: Partial<ScheduleOptions> = {}) {
	const notes: string[] = [];
	const stop = new AbortController();
	const calls = tools.map((tool, n): ReadyCall => ({ callId: `c${n}`, tool, args: {} }));
	const outcomes = runTools(calls, {
		signal: stop.signal,
		clock: systemClock,
		room: toolRoom(8),
		timeoutMsOf: ({ tool }) => tool.timeoutMs ?? 600_000,
		toolSettleMs: 600_000,
		permit: () => ({ allowed: true }),
		started: async ({ tool }) => void notes.push(`${tool.name} started`),
		ended: ({ tool }, { status }) => void notes.push(`${tool.name} ${status}`),
		contextOf: ({ callId }, signal) => ({
			callId,
			signal,
			agent: "a",
			state: undefined as never,
			request: undefined as never,
			progress: () => {},
		}),
		...options,
	});
	return { notes, stop, outcomes };
}

const words = (outcomes: readonly ToolOutcome[]) => outcomes.map(({ content }) => contentText(content));

/** A tool that ends when the test says so. */
function held(name: string, fields: Partial<Tool> = {}) {
	const { promise, resolve } = Promise.withResolvers<void>();
	const tool = toolOf(name, {
		async execute() {
			await promise;
			return textResult(`${name} done`);
		},
		...fields,
	});
	return { tool, release: resolve };
}

/** Lives until it is aborted, and takes a turn of the loop to die. */
const endless = (name: string, dead: string[] = []) =>
	toolOf(name, {
		execute: (_args, { signal }) =>
			new Promise((_resolve, reject) =>
				signal.addEventListener("abort", () =>
					setImmediate(() => {
						dead.push(name);
						reject(new Error("killed"));
					}),
				),
			),
	});

describe("the schedule", () => {
	test("A21: results stand in the order of the calls, whichever ends first", async () => {
		const slow = held("slow");
		const { outcomes, notes } = bench([slow.tool, toolOf("quick")]);
		await settle();
		slow.release();
		expect(words(await outcomes)).toEqual(["slow done", "quick done"]);
		expect(notes).toEqual(["slow started", "quick started", "quick completed", "slow completed"]);
	});

	test("R2-123, A21: higher priority starts first, within the slots", async () => {
		const tools = [toolOf("low"), toolOf("high", { priority: 5 }), toolOf("middle", { priority: 1 })];
		const { outcomes, notes } = bench(tools, { room: toolRoom(1) });
		await outcomes;
		expect(notes.filter((note) => note.endsWith("started"))).toEqual(["high started", "middle started", "low started"]);
	});

	test("A21: at most toolsParallelMax run at once", async () => {
		let running = 0;
		let most = 0;
		const counting = Array.from({ length: 50 }, (_, n) =>
			toolOf(`t${n}`, {
				priority: n % 3,
				async execute() {
					most = Math.max(most, ++running);
					await settle();
					running -= 1;
					return textResult("");
				},
			}),
		);
		await bench(counting).outcomes;
		expect(most).toBe(8);
	});

	test("A21: an exclusive tool runs alone, and what is behind it waits", async () => {
		const first = held("first");
		const alone = held("alone", { exclusive: true });
		const { outcomes, notes } = bench([first.tool, alone.tool, toolOf("last")]);
		await settle();
		expect(notes).toEqual(["first started"]);
		first.release();
		await settle();
		expect(notes).toEqual(["first started", "first completed", "alone started"]);
		alone.release();
		await outcomes;
		expect(notes.slice(3)).toEqual(["alone completed", "last started", "last completed"]);
	});

	test("A4: a tool acts only once its start was taken, and never when that fails", async () => {
		const taken = Promise.withResolvers<void>();
		let acted = 0;
		const acting = toolOf("act", {
			async execute() {
				acted += 1;
				return textResult("");
			},
		});
		const { outcomes } = bench([acting], { started: () => taken.promise });
		await settle();
		expect(acted).toBe(0);
		taken.reject(new Error("the run is over"));
		expect(words(await outcomes)).toEqual(["the run is over"]);
		expect(acted).toBe(0);
	});

	test("R2-103, R2-105, R2-115: a tool that throws, answers nonsense or takes too long fails alone", async () => {
		const tools = [
			toolOf("throws", { execute: () => Promise.reject(new Error("no such file")) }),
			toolOf("nonsense", { execute: async () => undefined as never }),
			toolOf("slow", { ...endless("slow"), timeoutMs: 1 }),
			toolOf("good"),
		];
		const outcomes = await bench(tools).outcomes;
		expect(outcomes.map(({ status }) => status)).toEqual(["failed", "failed", "failed", "completed"]);
		expect(words(outcomes)).toEqual([
			...["no such file", "nonsense answered nothing that can be read"],
			...["slow did not finish within 1 ms", "good done"],
		]);
	});

	test("R2-68, X7, A21: a terminal tool aborts its siblings; they are dead, or never ran, before it is over", async () => {
		const dead: string[] = [];
		const tools = [endless("sibling", dead), toolOf("complete", { terminal: true }), toolOf("behind")];
		const { outcomes } = bench(tools, { room: toolRoom(2) });
		const [sibling, complete, behind] = await outcomes;
		expect(dead).toEqual(["sibling"]);
		expect(complete).toMatchObject({ status: "completed" });
		expect(sibling).toMatchObject({ status: "failed" });
		expect(sibling).not.toHaveProperty("neverRan");
		expect(behind).toMatchObject({ status: "failed", neverRan: true });
		expect(words([sibling!, behind!])).toEqual(Array(2).fill("the run has completed: complete ended the work"));
	});

	test("a terminal tool that fails stops nothing", async () => {
		const tools = [toolOf("complete", { terminal: true, execute: () => Promise.reject(new Error("no")) }), toolOf("b")];
		expect((await bench(tools, { room: toolRoom(1) }).outcomes)[1]).toMatchObject({ status: "completed" });
	});

	test("a stop ends what runs, what waits for a slot and what waits for approval", async () => {
		const { outcomes, stop, notes } = bench([endless("runs"), toolOf("waits"), toolOf("asks")], {
			room: toolRoom(1),
			permit: ({ tool }) => (tool.name === "asks" ? new Promise(() => {}) : { allowed: true }),
		});
		await settle();
		stop.abort();
		expect((await outcomes).map(({ status, neverRan = false }) => [status, neverRan])).toEqual([
			["failed", false],
			["failed", true],
			["failed", true],
		]);
		expect(notes.filter((note) => note.endsWith("started"))).toEqual(["runs started"]);
	});

	test("I12: whatever tools do, each call gets one outcome and each start one end", async () => {
		const kind = fc.constantFrom("good", "throws", "nonsense", "slow", "terminal", "endless", "denied");
		const calls = fc.array(fc.record({ kind, priority: fc.integer({ min: 0, max: 2 }), exclusive: fc.boolean() }), {
			maxLength: 12,
		});
		const behaviours: Record<string, Partial<Tool>> = {
			throws: { execute: () => Promise.reject(new Error("x")) },
			nonsense: { execute: async () => 5 as never },
			slow: {
				async execute() {
					await settle();
					return textResult("slow");
				},
			},
			terminal: { terminal: true },
			endless: { execute: endless("e").execute, timeoutMs: 1 },
		};
		await fc.assert(
			fc.asyncProperty(calls, fc.integer({ min: 1, max: 4 }), async (specs, toolsParallelMax) => {
				const tools = specs.map(({ kind, priority, exclusive }, n) =>
					toolOf(`${kind}${n}`, { ...behaviours[kind], priority, exclusive }),
				);
				const { outcomes, notes } = bench(tools, {
					room: toolRoom(toolsParallelMax),
					permit: ({ tool }) => (tool.name.startsWith("denied") ? { allowed: false, reason: "no" } : { allowed: true }),
				});
				expect(Object.keys(await outcomes)).toHaveLength(specs.length);
				for (const { name } of tools) {
					const mine = notes.filter((note) => note.startsWith(`${name} `)).join(", ");
					expect(mine).toMatch(/^(?:\w+ started, )?\w+ (?:completed|failed)$/);
				}
			}),
			{ numRuns: atEffort(300, 30) },
		);
	});
});
