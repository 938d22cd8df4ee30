import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
	createTyping,
	intervalOf,
	QUIET,
	stepTyping,
	type TypingInput,
	type TypingRules,
	typingInputOf,
	typingRulesOf,
} from "../../../packages/daemon/src/nex/delivery/stream/typing.ts";
import { platform as discord } from "../../../packages/platforms/src/discord/discord.ts";
import { platform as imessage } from "../../../packages/platforms/src/imessage/imessage.ts";
import { platform as telegram } from "../../../packages/platforms/src/telegram/telegram.ts";
import { manualClock } from "../../clock.ts";

const rulesArbitrary: fc.Arbitrary<TypingRules> = fc.record({
	intervalMs: fc.integer({ min: 1, max: 9000 }),
	expiryMs: fc.integer({ min: 1, max: 9000 }),
	ttlMs: fc.integer({ min: 1, max: 60_000 }),
	showsTools: fc.boolean(),
});

const TRIGGERS = ["run_start", "message_start", "text", "tool_start", "reasoning", "tool_progress"] as const;
const input = fc.constantFrom<TypingInput["type"]>(...TRIGGERS, "tool_end", "message_out", "message_grown");
const story = fc.array(fc.tuple(fc.integer({ min: 0, max: 20_000 }), input), { maxLength: 40 });

const TOOL = { id: "tc1", tool: "read", text: "📖 Reading notes.md" };

function inputOf(type: TypingInput["type"]): TypingInput {
	if (type === "tool_start") return { type, ...TOOL };
	return type === "tool_end" ? { type, id: TOOL.id } : { type };
}

/** Plays a story against a clock; every show and hide with its time. */
function play(rules: TypingRules, events: [number, TypingInput["type"]][]) {
	const clock = manualClock();
	const shown: { on: boolean; at: number }[] = [];
	const typing = createTyping(rules, clock, (on) => shown.push({ on, at: clock.now() }));
	for (const [wait, type] of events) {
		clock.advance(wait);
		typing.take(inputOf(type));
	}
	return { clock, typing, shown };
}

describe("typing", () => {
	it("each of the five triggers shows it at once", () => {
		for (const type of TRIGGERS.slice(0, 5)) {
			expect(play({ intervalMs: 3000, expiryMs: 5000, ttlMs: 60_000, showsTools: false }, [[0, type]]).shown).toEqual([
				{ on: true, at: 0 },
			]);
		}
	});

	it("the channels' intervals", () => {
		expect(telegram.info.typing?.intervalMs).toBe(3000);
		expect(discord.info.typing?.intervalMs).toBe(5000);
		expect(imessage.info.typing).toBeUndefined();
	});

	it("never sticks: without a trigger it is off after its time to live, whatever happened before", () => {
		fc.assert(
			fc.property(rulesArbitrary, story, (rules, events) => {
				const { clock, shown } = play(rules, events);
				clock.advance(rules.ttlMs);
				const settled = shown.length;
				expect(shown.at(-1)?.on ?? false).toBe(false);
				clock.advance(600_000);
				expect(shown.length).toBe(settled);
			}),
		);
	});

	it("never sticks: it is off when the run ends, and nothing shows it again", () => {
		fc.assert(
			fc.property(rulesArbitrary, story, story, (rules, before, after) => {
				const { clock, typing, shown } = play(rules, before);
				typing.take({ type: "run_end" });
				expect(shown.at(-1)?.on ?? false).toBe(false);
				const settled = shown.length;
				for (const [wait, type] of after) {
					clock.advance(wait);
					typing.take(inputOf(type));
				}
				clock.advance(600_000);
				expect(shown.length).toBe(settled);
			}),
		);
	});

	it("expiry: while it is on it is renewed in time, and not more often than the interval", () => {
		fc.assert(
			fc.property(rulesArbitrary, story, (given, events) => {
				const rules = { ...given, showsTools: false };
				const { clock, shown } = play(
					rules,
					events.filter(([, type]) => type !== "message_out"),
				);
				clock.advance(rules.ttlMs);
				// Compared all at once: a story may have a million of them.
				const wrong = shown.filter(({ on, at }, n) => {
					const next = shown[n + 1];
					if (!on || !next) return false;
					const after = next.at - at;
					return after > rules.expiryMs || (next.on && after < intervalOf(rules));
				});
				expect(wrong).toEqual([]);
			}),
		);
	});

	it("stays while tools run, although a message is out; ends with the message otherwise", () => {
		const rules = { intervalMs: 100, expiryMs: 200, ttlMs: 10_000, showsTools: false };
		const { clock, typing, shown } = play(rules, [
			[0, "run_start"],
			[10, "tool_start"],
			[10, "message_out"],
		]);
		expect(shown.at(-1)).toEqual({ on: true, at: 20 });
		clock.advance(1000);
		expect(shown.filter(({ on }) => on).length).toBeGreaterThan(9);
		typing.take({ type: "message_grown" });
		expect(shown.at(-1)!.on).toBe(true);
		typing.take(inputOf("tool_end"));
		typing.take({ type: "message_out" });
		expect(shown.at(-1)!.on).toBe(false);
	});

	it("never sticks: tools that were silent for the whole time to live are forgotten", () => {
		const { clock, typing, shown } = play({ intervalMs: 100, expiryMs: 200, ttlMs: 1000, showsTools: false }, [
			[0, "tool_start"],
		]);
		clock.advance(1000);
		expect(shown.at(-1)).toEqual({ on: false, at: 1000 });
		typing.take({ type: "text" });
		typing.take({ type: "message_out" });
		expect(shown.at(-1)!.on).toBe(false);
	});

	it("the config is stronger than the channel's interval, and can switch it off", () => {
		const info = { supports: ["typing"], typing: { intervalMs: 3000, expiryMs: 5000 } };
		const rules = (about: object, typing?: object) =>
			typingRulesOf({
				info: { ...info, ...about },
				account: { config: { typing }, streaming: {} },
				limits: { typingTtlMs: 7 },
			} as unknown as Parameters<typeof typingRulesOf>[0]);
		expect(rules({})).toEqual({ intervalMs: 3000, expiryMs: 5000, ttlMs: 7, showsTools: false });
		expect(rules({}, { intervalMs: 1000 })).toEqual({ intervalMs: 1000, expiryMs: 5000, ttlMs: 7, showsTools: false });
		expect(rules({}, { enabled: false })).toBeUndefined();
		expect([rules({ supports: ["send"] }), rules({ typing: undefined })]).toEqual([undefined, undefined]);
	});

	it("fires while text grows where the platform shows both, no faster than the interval", () => {
		const rules = { intervalMs: 100, expiryMs: 200, ttlMs: 10_000, showsTools: false, besideText: true };
		const growing: [number, TypingInput["type"]][] = Array.from({ length: 40 }, () => [10, "text"]);
		const { shown } = play(
			rules,
			growing.flatMap((token): [number, TypingInput["type"]][] => [token, [0, "message_grown"]]),
		);
		expect(shown.map(({ on, at }) => [on, at])).toEqual([10, 110, 210, 310].map((at) => [true, at]));
		expect([telegram, discord].map(({ info }) => info.typing?.beside)).toEqual([true, true]);
	});

	it("what a run says triggers it; text that can be seen growing does not", () => {
		const tool = (status: "started" | "progress" | "completed" | "failed") =>
			({ type: "tool_status", toolName: "t", toolCallId: "1", status }) as const;
		const start = { type: "stream_start", runId: "r", sessionLabel: "s", target: null } as const;
		const end = (final: boolean) => ({ type: "stream_end", runId: "r", final }) as const;
		const types = (visible: boolean) =>
			[
				start,
				{ type: "token", text: "x" } as const,
				{ type: "reasoning", text: "x" } as const,
				end(false),
				end(true),
			].map((event) => typingInputOf(event, visible)?.type);
		expect(types(false)).toEqual(["run_start", "text", "reasoning", "message_start", undefined]);
		expect(types(true)).toEqual(["run_start", undefined, "reasoning", "message_start", undefined]);
		const tools = (["started", "progress", "completed", "failed"] as const).map(
			(status) => typingInputOf(tool(status), false)?.type,
		);
		expect(tools).toEqual(["tool_start", "tool_progress", "tool_end", "tool_end"]);
	});

	it("the running tool is shown immediately where the platform shows it, the newest first, and only while it runs", () => {
		const rules = { intervalMs: 100, expiryMs: 200, ttlMs: 10_000, showsTools: true };
		const clock = manualClock();
		const shown: unknown[] = [];
		const typing = createTyping(rules, clock, (on, doing) => shown.push([clock.now(), on, doing]));
		const { id: _id, ...doing } = TOOL;
		const other = { tool: "bash", text: "🖥️ make" };
		typing.take({ type: "run_start" });
		clock.advance(10);
		typing.take({ type: "tool_start", ...TOOL });
		typing.take({ type: "tool_progress" });
		clock.advance(10);
		typing.take({ type: "tool_start", id: "tc2", ...other });
		typing.take({ type: "tool_end", id: "tc2" });
		clock.advance(100);
		typing.take({ type: "tool_end", id: "tc1" });
		expect(shown).toEqual([
			[0, true, {}],
			[10, true, doing],
			[20, true, other],
			[20, true, doing],
			[120, true, doing],
			[120, true, {}],
		]);
	});

	it("a tool's description is what typing says; its name stands for one without", () => {
		const event = { type: "tool_status", toolName: "read", toolCallId: "1", status: "started" } as const;
		const told = { type: "tool_start", id: "1", tool: "read" };
		expect(typingInputOf({ ...event, summary: "📖 Reading notes.md" }, true)).toEqual({
			...told,
			text: "📖 Reading notes.md",
		});
		expect(typingInputOf(event, true)).toEqual({ ...told, text: "read" });
	});

	it("nothing is shown where the platform has no typing", () => {
		const clock = manualClock();
		const shown: boolean[] = [];
		createTyping(undefined, clock, (on) => shown.push(on)).take({ type: "run_start" });
		clock.advance(10_000);
		expect(shown).toEqual([]);
		expect(
			stepTyping(QUIET, { type: "tick" }, 0, { intervalMs: 1, expiryMs: 1, ttlMs: 1, showsTools: false }).effects,
		).toEqual([]);
	});
});
