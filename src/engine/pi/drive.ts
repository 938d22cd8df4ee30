/** Runs one pi agent as an engine generator: its events in order, a prompt end on abort, and failure as an exception. */

import { NexusError, toNexusError } from "../../protocol/protocol.ts";
import { eventQueue, type FailureContext, modelFailure } from "../kit/kit.ts";
import type { EngineEvent } from "../port.ts";
import { accountOf } from "./signature.ts";
import { type PiEvent, type Translator, translator } from "./translate.ts";

/** What the drive needs of an agent; both pi packages fit. */
export interface PiAgent {
	subscribe(listener: (event: PiEvent) => void): () => void;
	/** Settles when the agent will do nothing more. Model failures are not rejections: the last message tells. */
	start(): Promise<void>;
	/** Asks the agent to stop. Nobody waits for its promise. */
	stop(): void | Promise<void>;
}

export interface DriveOptions {
	signal: AbortSignal;
	failure: FailureContext;
	/** After an abort, how long the agent may still report its own ends before they are written for it. */
	abortSettleMs: number;
	/** Said instead of success when the agent ended for a reason of ours. */
	limitReached?: () => string | undefined;
}

export async function* drive(agent: PiAgent, options: DriveOptions): AsyncGenerator<EngineEvent> {
	const { signal } = options;
	if (signal.aborted) return;
	const translate = translator(accountOf(options.failure.apiKey));
	const watched = watchAgent(agent, translate, options);
	try {
		let thrown: { cause: unknown } | undefined;
		try {
			yield* watched.events;
		} catch (cause) {
			thrown = { cause };
		}
		yield* translate.finish(signal.aborted ? "stopped before it finished" : "the run ended before it finished");
		// Only our own signal tells a stop from a failure: pi may report either as the other.
		if (signal.aborted) return;
		if (thrown !== undefined) throw thrown.cause;
		const last = translate.last();
		if (last?.stopReason === "error" || last?.stopReason === "aborted") {
			throw modelFailure(last.errorMessage, options.failure);
		}
		const limit = options.limitReached?.();
		if (limit !== undefined) throw new NexusError("engine_failed", limit);
	} finally {
		watched.release();
	}
}

/** Starts the agent; its events end when it settles, or soon after an abort whatever it does. */
function watchAgent(agent: PiAgent, translate: Translator, { signal, abortSettleMs }: DriveOptions) {
	const events = eventQueue();
	let settled = false;
	let timer: NodeJS.Timeout | undefined;

	// A listener that throws would kill pi's run and leave a message without its end.
	const unsubscribe = agent.subscribe((event) => {
		try {
			events.push(translate.event(event));
		} catch (cause) {
			events.fail(cause);
		}
	});
	const stop = () => {
		Promise.resolve(agent.stop()).catch((cause: unknown) => events.fail(cause));
	};
	const onAbort = () => {
		stop();
		timer = setTimeout(() => events.close(), abortSettleMs);
	};
	signal.addEventListener("abort", onAbort, { once: true });
	agent
		.start()
		.finally(() => {
			settled = true;
		})
		.then(
			() => events.close(),
			(cause: unknown) => events.fail(toNexusError(cause, "engine_failed")),
		);

	const release = () => {
		clearTimeout(timer);
		signal.removeEventListener("abort", onAbort);
		unsubscribe();
		if (!settled) stop();
	};
	return { events, release };
}
