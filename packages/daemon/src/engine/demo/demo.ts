/** The demo engine: deterministic, offline, and labelled as such in everything it says. */

import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Engine, EngineEvent, EngineRequest } from "@nexus-stream/protocol/engine";
import { answerSteps } from "./answer.ts";
import { directiveHelp, parseDirective } from "./directive.ts";
import { inputTokens, madeUpSteps } from "./made-up.ts";
import { paceFrom, waitMs } from "./pace.ts";
import { createSleeper } from "./sleeper.ts";
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
	after(ms, callback) {
		const timer = setTimeout(callback, ms);
		return () => clearTimeout(timer);
	},
};

export function createDemo(clock: Clock = steadyClock): Engine {
	return { name: "demo", scripted: true, run: (request, { signal }) => play(request, clock, signal) };
}

export const demoEngine: Engine = createDemo();

/** What will be said, decided before the first token: pure. */
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
	const sleeper = createSleeper(clock, signal);
	let pace = paceFrom(clock.now());
	try {
		for (const step of steps) {
			if (signal.aborted) return;
			switch (step.type) {
				case "text":
				case "reasoning": {
					const ms = rate === 0 ? 0 : waitMs(pace, rate, clock.now());
					if (ms > 0 && (await sleeper.sleep(ms)) === "aborted") return;
					pace.tokens++;
					yield step;
					break;
				}
				case "wait":
					if ((await sleeper.sleep(step.ms)) === "aborted") return;
					pace = paceFrom(clock.now());
					break;
				case "stall":
					await sleeper.sleep(Number.POSITIVE_INFINITY);
					return;
				case "fail":
					throw new NexusError("engine_failed", `Demo engine: ${step.message}.`);
				default:
					yield step;
			}
		}
	} finally {
		sleeper.close();
	}
}
