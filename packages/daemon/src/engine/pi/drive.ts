/** Runs one pi agent as an engine's answer: its events in order, a prompt end on abort, and failure as an exception. */

import { NexusError, toNexusError } from "@nexus-stream/protocol";
import { systemClock } from "@nexus-stream/protocol/clock";
import type { EngineContext, EngineMessage, EngineYield } from "@nexus-stream/protocol/engine";
import { type CallTeller, EventQueue, type FailureContext, modelFailure } from "../kit/kit.ts";
import { accountOf } from "./signature.ts";
import { type PiEvent, Translator } from "./translate.ts";

/** The part of an agent that the drive uses; both pi packages fit. */
export interface PiAgent {
	subscribe(listener: (event: PiEvent) => void): () => void;
	/** Settles when the agent will do nothing more. Model failures are not rejections: the last message tells. */
	start(): Promise<void>;
	/** Asks the agent to stop. Its promise is not awaited. */
	stop(): void | Promise<void>;
	/** Called once, when the run has ended. */
	dispose?(): void;
}

/** The messages that joined the run since the last call. Never rejects: if they cannot be read, the run fails. */
export type TakeJoining = () => Promise<readonly EngineMessage[]>;

/** The part of the run that the agent and its tools may use. */
export interface AgentHost {
	take: TakeJoining;
	teller: CallTeller;
}

export interface DriveOptions {
	signal: AbortSignal;
	inbox?: EngineContext["inbox"];
	failure: FailureContext;
	/** After an abort, how long the agent may still report its own ends before they are written for it. */
	abortSettleMs: number;
	/** Calls of these tools say themselves when they start. */
	startsItself?: (tool: string) => boolean;
	/** Said instead of success when the agent ended for a reason of ours. */
	limitReached?: () => string | undefined;
}

/** Opens the agent on the first read, and yields everything reported since the last read. */
export function drive(open: (host: AgentHost) => Promise<PiAgent>, options: DriveOptions): AsyncIterable<EngineYield> {
	return { [Symbol.asyncIterator]: () => new Drive(open, options) };
}

/** One iterator by hand: a generator, and one within another still more, costs several promises for each token. */
class Drive implements AsyncIterator<EngineYield, undefined> {
	readonly #options: DriveOptions;
	readonly #translate: Translator;
	readonly #events = new EventQueue();
	readonly #onAbort = () => this.#abort();
	#agent: PiAgent | undefined;
	#unsubscribe: (() => void) | undefined;
	#disarm: (() => void) | undefined;
	/** The agent has been started and has not settled. */
	#working = false;
	#released = false;

	constructor(open: (host: AgentHost) => Promise<PiAgent>, options: DriveOptions) {
		this.#options = options;
		this.#translate = new Translator(accountOf(options.failure.apiKey), options.startsItself);
		if (options.signal.aborted) {
			void this.return();
			return;
		}
		options.signal.addEventListener("abort", this.#onAbort, { once: true });
		this.#work(open).then(
			() => this.#end(),
			(cause: unknown) => this.#end({ cause: toNexusError(cause, "engine_failed") }),
		);
	}

	next(): Promise<IteratorResult<EngineYield, undefined>> {
		return this.#events.next();
	}

	async return(): Promise<IteratorReturnResult<undefined>> {
		this.#events.close();
		this.#release();
		return { done: true, value: undefined };
	}

	async #work(open: (host: AgentHost) => Promise<PiAgent>): Promise<void> {
		const agent = await open({ take: () => this.#takeJoining(), teller: this.#teller() });
		if (this.#released) {
			quietly(() => agent.dispose?.());
			return;
		}
		this.#agent = agent;
		if (this.#options.signal.aborted) return;
		this.#unsubscribe = agent.subscribe((event) => this.#hear(event));
		this.#working = true;
		await agent.start().finally(() => {
			this.#working = false;
		});
	}

	/** Behind everything that the agent has said so far: that is their place in the log. */
	async #takeJoining(): Promise<readonly EngineMessage[]> {
		const { inbox, signal } = this.#options;
		if (!inbox) return [];
		await this.#events.idle();
		if (this.#released || signal.aborted) return [];
		try {
			return await inbox.take();
		} catch (cause) {
			this.#end({ cause });
			return [];
		}
	}

	/** How the agent's tools report their calls. */
	#teller(): CallTeller {
		const taken = (events: EngineYield) => new Promise<void>((resolve) => this.#events.push(events, resolve));
		return {
			asked: async (id, name, args, needed) => {
				const { handle, events } = this.#translate.ask(id, name, args, needed);
				await taken(events);
				return handle;
			},
			answered: (id, answer) => taken(this.#translate.answer(id, answer)),
			started: (id, name, args) => taken(this.#translate.start(id, name, args)),
		};
	}

	/** A listener that throws would kill pi's run and leave a message without its end. */
	#hear(event: PiEvent): void {
		try {
			this.#events.push(this.#translate.event(event));
		} catch (cause) {
			this.#end({ cause });
		}
	}

	/** The answer ends when the agent settles, or soon after an abort whatever the agent does. */
	#abort(): void {
		this.#stop();
		this.#disarm = systemClock.after(this.#options.abortSettleMs, () => this.#end(), "due");
	}

	#stop(): void {
		if (!this.#working) return;
		const stopped = async () => this.#agent?.stop();
		stopped().catch((cause: unknown) => this.#end({ cause }));
	}

	#end(thrown?: { cause: unknown }): void {
		if (this.#released) return;
		const { aborted } = this.#options.signal;
		try {
			this.#events.push(
				this.#translate.finish(aborted ? "stopped before it finished" : "the run ended before it finished"),
			);
			// Only our own signal tells a stop from a failure: pi may report either as the other.
			const failed = aborted ? undefined : (thrown ?? this.#failure());
			if (failed) this.#events.fail(failed.cause);
			else this.#events.close();
		} catch (cause) {
			this.#events.fail(cause);
		} finally {
			this.#release();
		}
	}

	/** The failure of an agent that settled without throwing. */
	#failure(): { cause: unknown } | undefined {
		const { failure, limitReached } = this.#options;
		const last = this.#translate.last;
		if (last?.stopReason === "error" || last?.stopReason === "aborted") {
			return { cause: modelFailure(last.errorMessage, failure) };
		}
		const limit = limitReached?.();
		return limit === undefined ? undefined : { cause: new NexusError("engine_failed", limit) };
	}

	#release(): void {
		if (this.#released) return;
		this.#released = true;
		this.#disarm?.();
		this.#options.signal.removeEventListener("abort", this.#onAbort);
		// The answer has ended whatever the agent does now; an agent that fails to close must not crash the daemon.
		quietly(() => this.#unsubscribe?.());
		quietly(() => this.#stop());
		quietly(() => this.#agent?.dispose?.());
	}
}

function quietly(work: () => void): void {
	try {
		work();
	} catch {
		// The answer is over: this is not awaited.
	}
}
