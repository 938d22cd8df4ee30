/** The demo engine: deterministic, offline, and labelled as such in everything it says. */

import { NexusError } from "@nexus-stream/protocol";
import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import type { Engine, EngineEvent, EngineRequest } from "@nexus-stream/protocol/engine";
import { sleep } from "@nexus-stream/protocol/retry";
import { answerSteps } from "./answer.ts";
import { directiveHelp, parseDirective } from "./directive.ts";
import { inputTokens, madeUpSteps } from "./made-up.ts";
import type { DemoScript } from "./step.ts";
import { tokensOf } from "./words.ts";

const RATE = 50;
const HELP_RATE = 200;

/**
 * Pace follows a clock that never jumps: a corrected wall clock must not make an answer pause or burst. Its timers keep
 * the process alive, because an answer under way is work.
 */
const steadyClock: Clock = {
	now: () => performance.now(),
	after: (ms, callback) => systemClock.after(ms, callback, "due"),
};

export function createDemo(clock: Clock): Engine {
	return { name: "demo", scripted: true, run: (request, { signal }) => play(request, clock, signal) };
}

export const demoEngine: Engine = createDemo(steadyClock);

/** The whole answer, decided before the first token. Pure. */
export function scriptOf(request: EngineRequest): DemoScript {
	const parsed = parseDirective(request.messages.at(-1)?.text ?? "");
	switch (parsed.kind) {
		case "none":
			return { rate: RATE, steps: answerSteps(request) };
		case "directive":
			return { rate: parsed.directive.rate, steps: madeUpSteps(parsed.directive, request) };
		case "help": {
			const deltas = tokensOf(directiveHelp(parsed.problems));
			const text = deltas.map((delta): EngineEvent => ({ type: "text", delta }));
			return {
				rate: HELP_RATE,
				steps: [...text, { type: "usage", input: inputTokens(request), output: deltas.length }],
			};
		}
	}
}

/** Yields the script at its pace. Nothing is awaited while tokens are due, so a flood costs only the yields. */
async function* play(request: EngineRequest, clock: Clock, signal: AbortSignal): AsyncGenerator<EngineEvent, void> {
	const { rate, steps } = scriptOf(request);
	let pace = paceFrom(clock.now());
	for (const step of steps) {
		if (signal.aborted) return;
		switch (step.type) {
			case "text":
			case "reasoning": {
				const ms = rate === 0 ? 0 : waitMs(pace, rate, clock.now());
				// Timers drop the fraction of a millisecond: rounded up, a token is never early.
				if (ms > 0) await sleep(clock, Math.ceil(ms), signal);
				if (signal.aborted) return;
				pace.tokens++;
				yield step;
				break;
			}
			case "wait":
				await sleep(clock, Math.ceil(step.ms), signal);
				if (signal.aborted) return;
				pace = paceFrom(clock.now());
				break;
			case "stall":
				await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
				return;
			case "fail":
				throw new NexusError("engine_failed", `Demo engine: ${step.message}.`);
			default:
				yield step;
		}
	}
}

export interface TokenPace {
	/** When the first token was due. */
	startMs: number;
	/** Tokens let through since then. */
	tokens: number;
}

export const paceFrom = (now: number): TokenPace => ({ startMs: now, tokens: 0 });

/** How long to wait before the next token; 0 when it is due or late. A rate of 0 never waits. */
export function waitMs(pace: TokenPace, rate: number, now: number): number {
	if (rate === 0) return 0;
	return Math.max(0, pace.startMs + (pace.tokens * 1000) / rate - now);
}
