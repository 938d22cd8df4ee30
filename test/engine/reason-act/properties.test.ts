/** Properties: for any model and tools, a run ends within its limits, its tools are paired and its log is well-framed. */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Broker, createBroker } from "../../../packages/daemon/src/broker/broker.ts";
import type { Checkpoint } from "../../../packages/daemon/src/engine/reason-act/checkpoint.ts";
import { reasonAct } from "../../../packages/daemon/src/engine/reason-act/loop.ts";
import type { LlmEvent } from "../../../packages/daemon/src/engine/reason-act/model/model.ts";
import { type Tool, textResult } from "../../../packages/daemon/src/engine/tool.ts";
import type { EngineEvent } from "../../../packages/protocol/src/engine.ts";
import { rig, verified } from "../../broker/rig.ts";
import { atEffort } from "../../effort.ts";
import "../../seed.ts";
import { quiet } from "../../quiet.ts";
import { requestOf } from "../demo-play.ts";
import { run } from "../pi-kit.ts";
import { type Answers, engineOf, messageOf, type modelOf, teamOf, toolOf } from "./kit.ts";

const name = fc.constantFrom("look", "throws", "nonsense", "complete", "unknown", "", "__proto__");
const id = fc.constantFrom("", "a", "b", "a_2");
const words = fc.oneof(fc.string({ maxLength: 8 }), fc.constantFrom("<think>", "</think>", "<thi", " \n", "\ud83d"));
const args = fc.oneof(fc.constant({}), fc.anything({ withBigInt: true, withDate: true, maxDepth: 2 }));

const part = fc.oneof(
	fc.record({ type: fc.constant("text"), text: words }),
	fc.record({ type: fc.constant("toolCall"), id, name, arguments: args }),
	fc.record({ type: fc.constant("thinking"), thinking: words, thinkingSignature: fc.string({ maxLength: 4 }) }),
	fc.anything({ maxDepth: 1 }),
);
const message = fc.oneof(
	fc
		.record({
			content: fc.array(part, { maxLength: 6 }),
			stopReason: fc.constantFrom("stop", "toolUse", "length", "error", "aborted", "odd"),
			errorMessage: fc.constantFrom(undefined, "429 slow", "prompt is too long", "broken"),
		})
		.map((fields) => messageOf([], fields as never)),
	fc.constant(undefined as never),
);
const event = fc.oneof(
	{ weight: 4, arbitrary: fc.record({ type: fc.constantFrom("text_delta", "thinking_delta"), delta: words }) },
	{
		weight: 1,
		arbitrary: fc.record({ type: fc.constantFrom("toolcall_start", "toolcall_delta", "toolcall_end", "start") }),
	},
	{ weight: 2, arbitrary: fc.record({ type: fc.constant("tool_start"), id, name, args }) },
	{
		weight: 2,
		arbitrary: fc.record({ type: fc.constant("tool_complete"), id, name, result: words, failed: fc.boolean() }),
	},
	{ weight: 3, arbitrary: fc.record({ type: fc.constant("done"), message }) },
	{ weight: 1, arbitrary: fc.record({ type: fc.constant("error"), error: message }) },
	{ weight: 1, arbitrary: fc.anything({ maxDepth: 1 }) },
) as unknown as fc.Arbitrary<LlmEvent>;

/** Each call of the model is one of these; the last one repeats. */
const answers = fc.array(fc.array(event, { maxLength: 8 }), { minLength: 1, maxLength: 5 });

const tools: Tool[] = [
	toolOf("look", { execute: async () => textResult("seen") }),
	toolOf("throws", { execute: () => Promise.reject(new Error("no")) }),
	toolOf("nonsense", { execute: async () => ({ content: 1 }) as never, exclusive: true }),
];

const LIMITS = { modelCallsMax: 6, toolCallsMax: 10, retryDelayMsMax: 1 };
const config = fc.record({
	phase: fc.constantFrom("chat", "plan"),
	attemptsMax: fc.integer({ min: 1, max: 3 }),
	termination: fc.constantFrom("enforcing" as const, "lenient" as const),
});

describe("a model that misbehaves", () => {
	test("I12, A18, R2-107: ends within its limits, with every tool paired", async () => {
		await fc.assert(
			fc.asyncProperty(answers, config, async (answers, config) => {
				const { engine, calls } = await engineOf(answers, { config: { ...LIMITS, ...config }, tools });
				const { events, error } = await run(engine, requestOf("x"));
				expect(calls.length).toBeLessThanOrEqual(LIMITS.modelCallsMax);
				for (const { messages } of calls) expect(reminders(messages)).toBeLessThan(config.attemptsMax);
				if (error !== undefined) expect(error).toMatchObject({ code: "engine_failed" });
				expectPaired(events);
				expect(events.filter(({ type }) => type === "usage")).toHaveLength(1);
			}),
			{ numRuns: atEffort(10_000, 300) },
		);
	});

	test("A24: every result that the model is given answers a call of the message before it, once", async () => {
		await fc.assert(
			fc.asyncProperty(answers, config, async (answers, config) => {
				const { engine, calls } = await engineOf(answers, { config: { ...LIMITS, ...config }, tools });
				await run(engine, requestOf("x"));
				for (const { messages } of calls) expectAnswered(messages);
			}),
			{ numRuns: atEffort(2000, 100) },
		);
	});

	test("I12: a stop at any event ends it, paired", async () => {
		await fc.assert(
			fc.asyncProperty(answers, fc.nat({ max: 12 }), async (answers, at) => {
				const { engine } = await engineOf(answers, { config: LIMITS, tools });
				let seen = 0;
				const { events, error } = await run(engine, requestOf("x"), { abortOn: () => seen++ === at });
				// A checkpoint among the last events may belong to a run that has already failed.
				if (error !== undefined) expect(error).toMatchObject({ code: "engine_failed" });
				expectPaired(events);
			}),
			{ numRuns: atEffort(2000, 100) },
		);
	});

	test("I2, I3: its log is well-framed and sealed once, whatever was said", async () => {
		const { bus, ledger, frames } = rig(async function* () {});
		let n = 0;
		await fc.assert(
			fc.asyncProperty(answers, config, async (answers, config) => {
				const { engine } = await engineOf(answers, { config: { ...LIMITS, ...config }, tools });
				const broker: Broker = createBroker({ ...quiet, bus, ledger, engine });
				n += 1;
				const runId = `run_${n}`;
				const events = [{ eventId: `evt_${n}`, text: "question", attachments: [] }];
				const turn = await broker.execute({ session: `s${n}`, runId, events }).result;
				const log = await frames(runId);
				expect(verified(log)).toBeUndefined();
				expect(["completed", "failed"]).toContain(turn.status);
				if (turn.error) expect(turn.error).toMatchObject({ code: "engine_failed" });
				expect(turn.error?.message ?? "").not.toMatch(/not an EngineEvent|is not JSON/);
			}),
			{ numRuns: atEffort(2000, 60) },
		);
	});
});

/** Routing decisions, of which many are good. */
const routing = fc
	.record({
		agents: fc.array(fc.constantFrom("a", "a", "b", "b", "END", "lead", "nobody"), { maxLength: 3 }),
		reason: fc.constantFrom("go", "", undefined),
		phase: fc.constantFrom(undefined, "plan", "chat", "lunch"),
		parallel: fc.boolean(),
	})
	.map((args) => JSON.parse(JSON.stringify(args)) as unknown);
const deciding = fc.oneof(
	{
		weight: 4,
		arbitrary: routing.map((args) => [{ type: "toolCall", id: "r", name: "route", arguments: args }]),
	},
	{
		weight: 1,
		arbitrary: fc.constant([{ type: "toolCall", id: "e", name: "end_conversation", arguments: { response: "x" } }]),
	},
	{ weight: 1, arbitrary: fc.array(part, { maxLength: 3 }) },
);
const decision = deciding.map((content): LlmEvent[] => [
	{ type: "done", reason: "stop", message: messageOf([], { content: content as never, stopReason: "toolUse" }) },
]);
const team = fc.record({
	lead: fc.array(fc.oneof({ weight: 4, arbitrary: decision }, fc.array(event, { maxLength: 6 })), {
		minLength: 1,
		maxLength: 6,
	}),
	a: answers,
	b: answers,
}) as fc.Arbitrary<Record<"lead" | "a" | "b", Answers>>;

const TEAM_LIMITS = { ...LIMITS, modelCallsMax: 14, routesMax: 4 };
const policies = fc.record({
	lead: fc.record({ fallback: fc.constantFrom(undefined, "a", "END"), visible: fc.boolean() }),
	a: fc.record({ fallback: fc.constantFrom(undefined, "b"), attemptsMax: fc.constantFrom(undefined, 1, 3) }),
});

describe("agents that misbehave, in turn and side by side", () => {
	const played = async (
		answers: Record<string, Answers>,
		settings: { attemptsMax: number },
		agents: object,
		options: Parameters<typeof run>[2] = {},
	) => {
		const { engine, calls, setup } = await teamOf(answers, {
			config: { ...TEAM_LIMITS, ...settings },
			agents: agents as never,
			tools,
		});
		return { ...(await run(engine, requestOf("x"), options)), calls, setup, engine };
	};

	test("I12, A18, R2-107: the run ends within its limits, paired, at most attemptsMax executions each", async () => {
		await fc.assert(
			fc.asyncProperty(team, config, policies, async (answers, config, agents) => {
				const { events, error, calls, setup } = await played(answers, config, agents);
				const all = Object.values(calls).flat();
				expect(all.length).toBeLessThanOrEqual(TEAM_LIMITS.modelCallsMax);
				if (error !== undefined) expect(error).toMatchObject({ code: "engine_failed" });
				expectPaired(events);
				for (const { messages } of all) expectAnswered(messages);
				const log = events.flatMap((event) => (event.type === "log" ? [event.entry] : []));
				// One more is decided, and then refused its model call.
				expect(log.filter(({ kind }) => kind === "routing").length).toBeLessThanOrEqual(TEAM_LIMITS.routesMax + 1);
				for (const { kind, agent, data } of log)
					if (kind === "attempt")
						expect(data!.attempt).toBeLessThanOrEqual(setup.attemptsMaxOf(agent!, String(data!.phase)));
				const owned = events.filter(({ type }) => ["text", "reasoning", "message", "tool", "phase"].includes(type));
				expect(owned.every((event) => "agent" in event)).toBe(true);
			}),
			{ numRuns: atEffort(10_000, 300) },
		);
	});

	test("I12: a stop at any event ends all of them, paired", async () => {
		await fc.assert(
			fc.asyncProperty(team, config, policies, fc.nat({ max: 20 }), async (answers, config, agents, at) => {
				let seen = 0;
				const { events, error } = await played(answers, config, agents, { abortOn: () => seen++ === at });
				if (error !== undefined) expect(error).toMatchObject({ code: "engine_failed" });
				expectPaired(events);
			}),
			{ numRuns: atEffort(2000, 100) },
		);
	});

	test("I2, I3: the log is well-framed and sealed once", async () => {
		const { bus, ledger, frames } = rig(async function* () {});
		let n = 0;
		await fc.assert(
			fc.asyncProperty(team, config, policies, async (answers, config, agents) => {
				const options = { config: { ...TEAM_LIMITS, ...config }, agents: agents as never, tools };
				const { engine } = await teamOf(answers, options);
				const broker: Broker = createBroker({ ...quiet, bus, ledger, engine });
				n += 1;
				const runId = `run_team_${n}`;
				const events = [{ eventId: `evt_team_${n}`, text: "question", attachments: [] }];
				const turn = await broker.execute({ session: `t${n}`, runId, events }).result;
				expect(verified(await frames(runId))).toBeUndefined();
				expect(["completed", "failed"]).toContain(turn.status);
				if (turn.error) expect(turn.error).toMatchObject({ code: "engine_failed" });
				expect(turn.error?.message ?? "").not.toMatch(/not an EngineEvent|is not JSON/);
			}),
			{ numRuns: atEffort(2000, 60) },
		);
	});

	test("A5: from any checkpoint, no completed tool runs again", async () => {
		await fc.assert(
			fc.asyncProperty(team, config, fc.nat(), async (answers, config, pick) => {
				const checkpoints: Checkpoint[] = [];
				const recording = await teamOf(answers, {
					config: { ...TEAM_LIMITS, ...config },
					tools,
					setup: {
						checkpoint(one) {
							checkpoints.push(JSON.parse(JSON.stringify(one)));
							return undefined;
						},
					},
				});
				await run(recording.engine, requestOf("x"));
				if (checkpoints.length === 0) return;
				const from = checkpoints[pick % checkpoints.length]!;
				const { setup, calls } = await teamOf(answers, { config: { ...TEAM_LIMITS, ...config }, tools });
				const engine = {
					name: "again",
					run: (request: never, context: never) => reasonAct(setup, request, context, from),
				};
				const { events, error } = await run(engine, requestOf("x"));
				if (error !== undefined) expect(error).toMatchObject({ code: "engine_failed" });
				expectPaired(events);
				const before = new Set(from.state.calls.map(({ callId }) => callId));
				for (const event of events) if (event.type === "tool") expect(before).not.toContain(event.callId);
				for (const { messages } of Object.values(calls).flat()) expectAnswered(messages);
			}),
			{ numRuns: atEffort(2000, 100) },
		);
	});
});

/** Every result that a model is given answers a call of the message before it, once. */
function expectAnswered(messages: ReturnType<typeof modelOf>["calls"][number]["messages"]): void {
	let open: string[] = [];
	for (const message of messages) {
		if (message.role === "toolResult") {
			expect(open).toContain(message.toolCallId);
			open = open.filter((callId) => callId !== message.toolCallId);
			continue;
		}
		expect(open).toEqual([]);
		if (message.role !== "assistant") continue;
		open = message.content.flatMap((part) => (part.type === "toolCall" ? [part.id] : []));
	}
	expect(open).toEqual([]);
}

/** How many reminders a call was sent with: the executions before it in the only activation there is. */
const reminders = (messages: ReturnType<typeof modelOf>["calls"][number]["messages"]): number =>
	messages.filter(
		({ role, content }) => role === "user" && JSON.stringify(content).includes("MUST use the 'complete' tool"),
	).length;

/** A call that ran starts once and ends once; one that never ran only fails. */
function expectPaired(events: readonly EngineEvent[]): void {
	const calls = events.flatMap((event) => (event.type === "tool" ? [event] : []));
	for (const [callId, reports] of Map.groupBy(calls, (call) => call.callId))
		expect(reports.map(({ status }) => status).join(" "), callId).toMatch(
			/^(?:started(?: progress)* (?:completed|failed)|failed)$/,
		);
}
