/** Runs one pi agent as an engine's answer: its events in order, a prompt end on abort, and failure as an exception. */

import { NexusError, toNexusError } from "@nexus-stream/protocol";
import type { EngineContext, EngineMessage, EngineYield } from "@nexus-stream/protocol/engine";
import { type CallTeller, EventQueue, type FailureContext, modelFailure } from "../kit/kit.ts";
import { accountOf } from "./signature.ts";
import { type PiEvent, Translator } from "./translate.ts";

/** What the drive needs of an agent; both pi packages fit. */
export interface PiAgent {
	subscribe(listener: (event: PiEvent) => void): () => void;
	/** Settles when the agent will do nothing more. Model failures are not rejections: the last message tells. */
	start(): Promise<void>;
	/** Asks the agent to stop. Nobody waits for its promise. */
	stop(): void | Promise<void>;
	/** Called once, when nobody reads it any more. */
	dispose?(): void;
}

/** What came for the run since the last look. Never rejects: a run that cannot be told fails. */
export type TakeJoining = () => Promise<readonly EngineMessage[]>;

/** What the agent and its tools may use of the run. */
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

/** Opens the agent when somebody reads, and yields all that it has reported since the last time. */
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
	#timer: NodeJS.Timeout | undefined;
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

	/** How the agent's tools tell what becomes of their calls. */
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
		this.#timer = setTimeout(() => this.#end(), this.#options.abortSettleMs);
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

	/** What an agent that settled in peace failed with. */
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
		clearTimeout(this.#timer);
		this.#options.signal.removeEventListener("abort", this.#onAbort);
		// Whatever the agent says to that, its answer has ended, and one that cannot be taken down must not take the daemon with it.
		quietly(() => this.#unsubscribe?.());
		quietly(() => this.#stop());
		quietly(() => this.#agent?.dispose?.());
	}
}

function quietly(work: () => void): void {
	try {
		work();
	} catch {
		// Its answer is over: nobody waits for this.
	}
}
