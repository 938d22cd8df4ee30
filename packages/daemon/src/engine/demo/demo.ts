/** The demo engine: deterministic, offline, and labelled as such in everything it says. */

import { NexusError } from "@nexus-stream/protocol";
import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import type { Engine, EngineEvent, EngineRequest } from "@nexus-stream/protocol/engine";
import { sleep } from "@nexus-stream/protocol/retry";
import { answerSteps } from "./answer.ts";
import { directiveHelp, madeUpSteps, parseDirective } from "./directive.ts";
import { type DemoStep, say, usageStep } from "./script.ts";

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

/** The whole answer, decided before the first token, and its tokens per second; 0 = without pausing. Pure. */
export function scriptOf(request: EngineRequest): { rate: number; steps: Iterable<DemoStep> } {
	const parsed = parseDirective(request.messages.at(-1)?.text ?? "");
	switch (parsed.kind) {
		case "none":
			return { rate: RATE, steps: answerSteps(request) };
		case "directive":
			return { rate: parsed.directive.rate, steps: madeUpSteps(parsed.directive, request) };
		case "help": {
			const text = say(directiveHelp(parsed.problems));
			return { rate: HELP_RATE, steps: [...text, usageStep(request, text.length)] };
		}
	}
}

/** Yields the script at its pace. Nothing is awaited while tokens are due, so a flood costs only the yields. */
async function* play(request: EngineRequest, clock: Clock, signal: AbortSignal): AsyncGenerator<EngineEvent, void> {
	const { rate, steps } = scriptOf(request);
	/** When the first token was due, and how many came since. */
	let pace = { startMs: clock.now(), tokens: 0 };
	for (const step of steps) {
		if (signal.aborted) return;
		switch (step.type) {
			case "text":
			case "reasoning": {
				const ms = rate === 0 ? 0 : pace.startMs + (pace.tokens * 1000) / rate - clock.now();
				// Timers drop the fraction of a millisecond: rounded up, a token is never early.
				if (ms > 0) await sleep(clock, Math.ceil(ms), signal);
				if (signal.aborted) return;
				pace.tokens++;
				yield step;
				break;
			}
			case "wait":
				await sleep(clock, Math.ceil(step.ms), signal);
				pace = { startMs: clock.now(), tokens: 0 };
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
