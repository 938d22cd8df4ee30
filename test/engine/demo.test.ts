import { getEventListeners } from "node:events";
import type { EngineEvent, EngineMessage } from "@nexus-stream/protocol/engine";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createDemo, demoEngine, scriptOf } from "../../packages/daemon/src/engine/demo/demo.ts";
import { tokensOf } from "../../packages/daemon/src/engine/demo/script.ts";
import { character } from "../character.ts";
import { manualClock } from "../clock.ts";
import { atEffort } from "../effort.ts";
import { countOf, oneByOne, playOut, requestOf, settle, start, textOf } from "./demo-play.ts";

const never = new AbortController().signal;

/** An answer under way, by a clock that the test moves. */
function begun(text: string, { signal = never, rest = {}, earlier = [] as EngineMessage[] } = {}) {
	const clock = manualClock();
	return { clock, played: start(createDemo(clock), requestOf(text, rest, earlier), signal, clock.now) };
}

/** The whole answer, with a clock that is moved as fast as the answer needs. */
async function answerTo(text: string, rest = {}, earlier: EngineMessage[] = []) {
	const { played, clock } = begun(text, { rest, earlier });
	return await playOut(played, clock);
}

const partsOf = (events: readonly EngineEvent[], modality: string) =>
	events.flatMap((event) => (event.type === "part" && event.modality === modality ? [event] : []));

describe("the answer to an ordinary message", () => {
	test("is labelled in its first line and says how to get a real model", async () => {
		const { events } = await answerTo("hello");
		const [firstLine] = textOf(events).split("\n");
		expect(firstLine).toContain("Demo engine: no model is configured");
		expect(firstLine).toContain("OPENAI_API_KEY");
	});

	test("is the same for the same request, and other products for another text", async () => {
		const [one, again, other] = [await answerTo("hello"), await answerTo("hello"), await answerTo("something else")];
		expect(again.events).toEqual(one.events);
		expect(partsOf(other.events, "card")).not.toEqual(partsOf(one.events, "card"));
	});

	test("shows one of everything", async () => {
		const { events, error } = await answerTo("hello");
		expect(error).toBeUndefined();
		const text = textOf(events);
		for (const markdown of [/^## /m, /^```ts$/m, /^\| .* \|$/m, /^1\. /m, /^> hello$/m]) expect(text).toMatch(markdown);
		expect(countOf(events, "reasoning")).toBeGreaterThan(10);
		const tools = events.filter((event) => event.type === "tool");
		expect(tools.map((tool) => tool.status)).toEqual([
			"started",
			"progress",
			"completed",
			"started",
			"progress",
			"completed",
		]);
		expect(new Set(tools.map((tool) => tool.callId)).size).toBe(2);
		const card = JSON.parse(partsOf(events, "card")[0]!.payload);
		expect(card).toEqual({
			title: expect.any(String),
			price: expect.any(String),
			image: expect.stringMatching(/^data:image\/svg\+xml;base64,/),
			description: expect.any(String),
		});
		const carousel = JSON.parse(partsOf(events, "carousel")[0]!.payload);
		expect(carousel.items.length).toBeGreaterThan(2);
		expect(Object.keys(carousel.items[0])).toEqual(Object.keys(card));
		const image = partsOf(events, "image")[0]!;
		expect(image.contentType).toBe("image/svg+xml");
		expect(Buffer.from(image.payload, "base64").toString()).toMatch(/^<svg .*<\/svg>$/);
		expect(events.at(-1)).toMatchObject({ type: "usage" });
	});

	test("its tones are whole WAV files, spread through the text", async () => {
		const { events } = await answerTo("hello");
		const tones = partsOf(events, "audio");
		expect(tones.length).toBeGreaterThan(2);
		for (const { payload, contentType } of tones) {
			const wav = Buffer.from(payload, "base64");
			expect([contentType, wav.toString("latin1", 0, 4), wav.toString("latin1", 8, 12)]).toEqual([
				"audio/wav",
				"RIFF",
				"WAVE",
			]);
			expect(wav.readUInt32LE(4)).toBe(wav.length - 8);
			expect(wav.readUInt32LE(40)).toBe(wav.length - 44);
		}
		const places = tones.map((tone) => textOf(events.slice(0, events.indexOf(tone))).length);
		expect(new Set(places).size).toBe(tones.length);
	});

	test("tells how many messages came before, what was attached, and how the last answer was interrupted", async () => {
		const earlier = (interrupted?: "aborted" | "failed"): EngineMessage[] => [
			{ role: "user", text: "one" },
			{ role: "assistant", text: "tw", interrupted },
		];
		const plain = textOf((await answerTo("go on", {}, earlier())).events);
		expect(plain).toContain("Earlier messages of this session: 2.");
		expect(plain).not.toContain("interrupted");
		expect(textOf((await answerTo("go on", {}, earlier("aborted"))).events)).toContain("interrupted: you stopped it");
		expect(textOf((await answerTo("go on", {}, earlier("failed"))).events)).toContain("interrupted: it failed");
		const attachments = [{ name: "a.png", contentType: "image/png", data: "" }];
		expect(textOf((await answerTo("look", { attachments })).events)).toContain("`a.png` (image/png)");
	});

	test("answers any text, also none", async () => {
		await fc.assert(
			fc.asyncProperty(fc.string({ unit: character, maxLength: 600 }), async (text) => {
				const { steps } = scriptOf(requestOf(text));
				const said = [...steps].flatMap((step) => (step.type === "text" ? [step.delta] : []));
				expect(said.join("")).toContain("Demo engine:");
				expect(said).not.toContain("");
			}),
			{ numRuns: atEffort(200, 50) },
		);
	});
});

describe("directives", () => {
	test("tokens are exact, whatever stands between them", async () => {
		const cases = fc.record({
			tokens: fc.integer({ min: 3, max: 700 }),
			reasoning: fc.integer({ min: 0, max: 3 }),
			tools: fc.integer({ min: 0, max: 5 }),
			cards: fc.integer({ min: 0, max: 9 }),
			messages: fc.integer({ min: 1, max: 3 }),
			seed: fc.nat(),
		});
		await fc.assert(
			fc.asyncProperty(cases, async (asked) => {
				const words = Object.entries(asked).map(([key, value]) => `${key}=${value}`);
				const { events } = await answerTo(`/demo rate=0 ${words.join(" ")}`);
				expect(countOf(events, "text")).toBe(asked.tokens);
				expect(events.every((event) => event.type !== "text" || event.delta !== "")).toBe(true);
				expect(countOf(events, "tool")).toBe(3 * asked.tools);
				expect(partsOf(events, "card")).toHaveLength(asked.cards);
				expect(countOf(events, "message")).toBe(asked.messages - 1);
				expect(events.at(-1)).toMatchObject({ type: "usage", output: asked.tokens });
			}),
			{ numRuns: atEffort(240, 60) },
		);
	});

	test("every assistant message gets its share of the tokens", async () => {
		const { events } = await answerTo("/demo tokens=7 messages=3 rate=0");
		const shares = [0];
		for (const event of events) {
			if (event.type === "message") shares.push(0);
			else if (event.type === "text") shares[shares.length - 1]!++;
		}
		expect(shares).toEqual([2, 2, 3]);
	});

	test("no tokens at all is an answer too", async () => {
		const { events, error } = await answerTo("/demo tokens=0");
		expect([events.map((event) => event.type), error]).toEqual([["usage"], undefined]);
	});

	test("the text depends on the seed only", async () => {
		const text = async (directive: string) => textOf((await answerTo(directive)).events);
		expect(await text("/demo tokens=300 seed=1 rate=0")).toBe(await text("/demo rate=70 seed=1 tools=1 tokens=300"));
		expect(await text("/demo tokens=300 seed=1")).not.toBe(await text("/demo tokens=300 seed=2"));
	});

	test("made-up text says that it is", async () => {
		expect(textOf((await answerTo("/demo tokens=20")).events)).toMatch(/^Demo engine: /);
	});

	test.each([0, 1, 50])("fail_after=%i throws after so many tokens", async (n) => {
		const { events, error } = await answerTo(`/demo tokens=50 rate=0 fail_after=${n}`);
		expect(countOf(events, "text")).toBe(n);
		expect(error).toMatchObject({ code: "engine_failed", message: expect.stringContaining(`after ${n} tokens`) });
	});

	test.each([0, 1, 50])("stall_after=%i goes silent until it is stopped", async (n) => {
		const control = new AbortController();
		const { played, clock } = begun(`/demo tokens=50 rate=0 stall_after=${n}`, { signal: control.signal });
		await playOut(played, clock, 60_000, 5);
		expect([countOf(played.events, "text"), played.done]).toEqual([n, false]);
		control.abort();
		await settle();
		expect([countOf(played.events, "text"), played.done, played.error]).toEqual([n, true, undefined]);
	});

	test("tool_ms is how long each tool takes", async () => {
		const { played, clock } = begun("/demo tokens=1 tools=2 tool_ms=300");
		await playOut(played, clock, 10);
		const times = played.events.flatMap((event, i) => (event.type === "tool" ? [[event.status, played.at[i]]] : []));
		expect(times).toEqual([
			["started", 0],
			["progress", 150],
			["completed", 300],
			["started", 300],
			["progress", 450],
			["completed", 600],
		]);
	});

	test("a tool that may not take as long as it would fails when its time is up", async () => {
		const { played, clock } = begun("/demo tokens=1 tools=1 tool_ms=5000", { rest: { toolTimeoutMs: 200 } });
		await playOut(played, clock, 10);
		const tools = played.events.flatMap((event, i) => (event.type === "tool" ? [{ ...event, at: played.at[i] }] : []));
		expect(tools).toMatchObject([
			{ status: "started", at: 0 },
			{ status: "failed", at: 200 },
		]);
		expect(played.events.at(-1)).toMatchObject({ type: "usage" });
	});

	test("what is not understood is answered with the list of directives", async () => {
		const { events, error } = await answerTo("/demo speed=5");
		expect(error).toBeUndefined();
		expect(textOf(events)).toContain("`speed=5`: there is no such key");
		expect(textOf(events)).toContain("| `stall_after` |");
	});
});

describe("pace", () => {
	test("tokens come evenly at the rate", async () => {
		const { played, clock } = begun("/demo tokens=6 rate=50");
		await playOut(played, clock, 1, 200);
		expect(played.at.slice(0, 6)).toEqual([0, 20, 40, 60, 80, 100]);
	});

	test("a rate that is not a whole number of milliseconds holds on average", async () => {
		const { played, clock } = begun("/demo tokens=301 rate=300");
		await playOut(played, clock, 1, 2_000);
		expect(played.at[300]).toBe(1_000);
		expect(Math.max(...played.at.map((at, i) => at - (i * 1000) / 300).slice(0, 301))).toBeLessThan(1);
	});

	test("a late token is followed by those that became due meanwhile", async () => {
		const { played, clock } = begun("/demo tokens=100 rate=50");
		await settle();
		clock.advance(1_000);
		await settle();
		expect(played.events).toHaveLength(51);
		clock.advance(19);
		await settle();
		expect(played.events).toHaveLength(51);
		clock.advance(1);
		await settle();
		expect(played.events).toHaveLength(52);
	});

	test("the time a tool takes is not made up for by a burst", async () => {
		const { played, clock } = begun("/demo tokens=4 rate=50 tools=2 tool_ms=500");
		await playOut(played, clock, 1, 5_000);
		const tokens = played.at.filter((_, i) => played.events[i]!.type === "text");
		expect(tokens).toEqual([500, 520, 1020, 1040]);
	});

	test("rate=0 awaits no timer: a flood ends without the clock moving", async () => {
		const { played, clock } = begun("/demo tokens=50000 rate=0 reasoning=1 tools=2");
		await settle();
		expect([countOf(played.events, "text"), played.done, clock.now()]).toEqual([50_000, true, 0]);
	});
});

describe("abort", () => {
	test("I12: at any point it ends the run at once, and leaves no timer", async () => {
		const directive = fc.constantFrom(
			"hello",
			"/demo",
			"/demo tokens=60 rate=50 reasoning=1 tools=2 tool_ms=300",
			"/demo tokens=20 rate=0 stall_after=10",
		);
		await fc.assert(
			fc.asyncProperty(directive, fc.nat(3_000), async (text, atMs) => {
				const clock = countingClock();
				const control = new AbortController();
				const played = start(createDemo(clock), requestOf(text), control.signal, clock.now);
				for (let passed = 0; passed < atMs; passed += 100) {
					await settle();
					clock.advance(100);
				}
				await settle();
				const before = played.events.length;
				control.abort();
				await settle();
				expect([played.done, played.events.length, clock.pending()]).toEqual([true, before, 0]);
			}),
			{ numRuns: atEffort(240, 60) },
		);
	});

	test("before the start nothing is said", async () => {
		const played = start(demoEngine, requestOf("hello"), AbortSignal.abort(), performance.now);
		await settle();
		expect([played.done, played.events]).toEqual([true, []]);
	});

	test("during a flood it ends with the token it came at", async () => {
		const control = new AbortController();
		let tokens = 0;
		const run = demoEngine.run(requestOf("/demo tokens=100000 rate=0"), { signal: control.signal });
		for await (const event of oneByOne(run)) if (event.type === "text" && ++tokens === 1_000) control.abort();
		expect(tokens).toBe(1_000);
	});

	test("nothing stays on the signal, however the run ends", async () => {
		const { signal } = new AbortController();
		const listeners = () => getEventListeners(signal, "abort").length;
		const seen: number[] = [];
		for (const text of ["/demo tokens=9 rate=0", "/demo tokens=9 rate=0 fail_after=3"]) {
			const played = start(demoEngine, requestOf(text), signal, performance.now);
			await settle();
			seen.push(listeners(), Number(played.done));
		}
		for await (const _ of demoEngine.run(requestOf("hello"), { signal })) break;
		expect([...seen, listeners()]).toEqual([0, 1, 0, 1, 0]);
	});
});

describe("tokens", () => {
	test("join back to exactly the text, none of them empty", () => {
		fc.assert(
			fc.property(fc.string({ unit: character }), (text) => {
				const tokens = tokensOf(text);
				expect(tokens.join("")).toBe(text);
				expect(tokens).not.toContain("");
			}),
		);
	});
});

/** A manual clock that knows how many timers are waiting. */
function countingClock() {
	const clock = manualClock();
	let pending = 0;
	return {
		now: clock.now,
		advance: clock.advance,
		pending: () => pending,
		after(ms: number, callback: () => void) {
			let open = true;
			const close = () => {
				if (open) pending--;
				open = false;
			};
			pending++;
			const cancel = clock.after(ms, () => {
				close();
				callback();
			});
			return () => {
				close();
				cancel();
			};
		},
	};
}
