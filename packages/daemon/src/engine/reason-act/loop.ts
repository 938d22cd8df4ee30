/** The loop: agents reason, their tools act, and termination decides what comes next, until the run is over. One iterator over all of it. */

import type { Message } from "@earendil-works/pi-ai";
import { NexusError, toNexusError } from "@nexus-stream/protocol";
import type {
	EngineContext,
	EngineEvent,
	EngineMessage,
	EngineRequest,
	EngineYield,
	ExecutionEntry,
} from "@nexus-stream/protocol/engine";
import { EventQueue, mapEvents } from "../kit/kit.ts";
import { toPiContext } from "../pi/pi.ts";
import { ContextWords } from "../policy.ts";
import { Acting } from "./act.ts";
import { type Checkpoint, interrupted } from "./checkpoint.ts";
import { AgentLane, type LaneRun } from "./lane.ts";
import type { ModelReply } from "./model/listen.ts";
import { usageByAgent } from "./model/model.ts";
import { entryAgent, mayUse, type Offer, offerFor } from "./offer.ts";
import { RunProgress } from "./progress.ts";
import type { LoopSetup } from "./setup.ts";
import { RunState } from "./state.ts";
import type { RoutingDecision, TerminationDecision } from "./termination.ts";

/** Grace beyond a tool's time to stop, before the loop writes its end. */
const ABORT_SLACK_MS = 100;

/** `from`: continues an interrupted run of the same session. */
export function reasonAct(
	setup: LoopSetup,
	request: EngineRequest,
	context: EngineContext,
	from?: Checkpoint,
): AsyncIterable<EngineYield> {
	return { [Symbol.asyncIterator]: () => new LoopRun(setup, request, context, from) };
}

/** An iterator by hand: a generator costs several promises for each token, and nested ones more. */
class LoopRun implements AsyncIterator<EngineYield, undefined>, LaneRun {
	readonly setup: LoopSetup;
	readonly request: EngineRequest;
	readonly acting: Acting;
	readonly orchestrator: string | undefined;
	readonly progress: RunProgress;
	offer!: Offer;
	readonly #context: EngineContext;
	readonly #words: ContextWords;
	readonly #stop = new AbortController();
	readonly #events = new EventQueue();
	readonly #state: RunState;
	readonly #usage = usageByAgent();
	/** The active agents. */
	readonly #lanes = new Set<AgentLane>();
	/** Only then do events name their agent. */
	readonly #isSeveral: boolean;
	readonly #onAbort = () => this.#halt();
	/** Messages about interrupted text, for the agent that continues it. */
	#cutOff: Message[] = [];
	#failed: { cause: unknown } | undefined;
	#disarm: (() => void) | undefined;
	#over = false;

	constructor(setup: LoopSetup, request: EngineRequest, context: EngineContext, from?: Checkpoint) {
		this.setup = setup;
		this.request = request;
		this.#context = context;
		this.#isSeveral = setup.agents.size > 1;
		const { orchestrator } = setup;
		this.orchestrator = orchestrator !== undefined && mayUse(request, orchestrator) ? orchestrator : undefined;
		this.progress = new RunProgress(setup, request.phase);
		this.#state = new RunState(setup.limits, from?.state);
		const { answer } = context;
		this.#words = new ContextWords(request);
		for (const { name, status } of from?.state.calls ?? []) if (status !== "announced") this.#words.took(name);
		const parts = { setup, request, words: this.#words, signal: this.signal, answer };
		this.acting = new Acting({ ...parts, boundary: () => this.#boundary() });
		if (context.signal.aborted) {
			void this.return();
			return;
		}
		context.signal.addEventListener("abort", this.#onAbort, { once: true });
		this.#work(from).then(
			() => this.#end(this.#failed),
			(cause: unknown) => this.#end({ cause }),
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

	get signal(): AbortSignal {
		return this.#stop.signal;
	}

	async #work(from: Checkpoint | undefined): Promise<void> {
		this.#cutOff = interrupted(this.request, this.setup.clock.now());
		this.offer = await offerFor(this.setup, this.#words.request, (entry) => this.log(entry));
		if (from) await this.#together(this.#restored(from), true);
		else this.progress.enqueue([entryAgent(this.setup, this.request)], false);
		for (;;) {
			const group = this.progress.nextGroup();
			if (group === undefined || this.signal.aborted) return;
			await this.#together(
				group.map((name) => this.#lane(name)),
				false,
			);
		}
	}

	#lane(name: string, from?: Checkpoint["lanes"][number]): AgentLane {
		const agent = this.setup.agents.get(name);
		if (agent === undefined) throw new NexusError("engine_failed", `there is no agent "${name}"`);
		const thread = this.progress.thread(name);
		return new AgentLane({ run: this, agent, thread, state: this.#state.lane(from), say: this.#voiceOf(name) });
	}

	/** A failing agent does not stop the others; the end of the run stops all. */
	async #together(lanes: readonly AgentLane[], resumed: boolean): Promise<void> {
		for (const lane of lanes) this.#lanes.add(lane);
		// People have seen which agent wrote the interrupted text; of several parallel agents the first visible one continues it.
		const speaker = lanes.find(({ agent }) => agent.visible) ?? lanes[0];
		if (speaker && this.#cutOff.length > 0)
			speaker.cutOff = { shown: this.request.continues?.shown ?? "", messages: this.#cutOff.splice(0) };
		await Promise.all(
			lanes.map(async (lane) => {
				try {
					const verdict = await lane.work(resumed);
					this.#lanes.delete(lane);
					if (!this.signal.aborted) this.#follow(lane, verdict);
				} catch (cause) {
					this.#halt({ cause });
				}
			}),
		);
	}

	#restored(from: Checkpoint): AgentLane[] {
		const { answer } = this.request.continues ?? {};
		const answered = this.#state
			.openCalls()
			.find(({ callId, status }) => callId === answer?.callId && status === "announced");
		this.progress.restore(from, answered?.callId);
		// Open calls got their failed results above. End them before the lanes adopt what is open.
		for (const call of this.#state.openCalls()) if (call !== answered) this.#state.end(call, "failed", "cut off");
		const going = from.lanes.map((lane) => this.#lane(lane.activation.agent, lane));
		const asker = going.find(({ agent }) => agent.name === answered?.agent);
		if (asker && answered && answer) asker.missing = { call: answered, answer };
		return going;
	}

	/** The checkpoint event, yielded in one burst with a tool's event so that log and checkpoint agree. */
	#boundary(): readonly EngineEvent[] {
		const event = this.setup.checkpoint?.(this.#checkpoint());
		return event === undefined ? [] : [event];
	}

	#checkpoint(): Checkpoint {
		return this.progress.checkpoint(
			this.#state,
			[...this.#lanes].map(({ state }) => state),
		);
	}

	/** Applies a termination decision to the waiting agents. */
	#follow(lane: AgentLane, verdict: TerminationDecision): void {
		const { agent, say } = lane;
		if (verdict.type === "fail") throw lane.failure ?? new NexusError("engine_failed", verdict.message);
		if (verdict.type === "retry") throw new NexusError("internal", "the lane handles retries itself");
		if (verdict.text !== undefined && !lane.state.hasSpoken)
			say([{ type: "message" }, { type: "text", delta: verdict.text }]);
		if (verdict.completion) {
			const { summary, by } = verdict.completion;
			this.progress.notes.push({ agent: agent.name, text: summary });
			this.log({ kind: "completion", agent: agent.name, text: summary, data: { by } });
		}
		// Chat platforms show the next agent's message once this one is whole and has its usage.
		if (this.#isSeveral) say([...this.#usage.take(agent.name), { type: "message_end" }]);
		if (verdict.type === "route") this.#route(lane, verdict.decision);
	}

	#route({ agent, say }: AgentLane, { agents, phase, reason, parallel = false }: RoutingDecision): void {
		if (agent.orchestrator) {
			this.#state.used.routes += 1;
			this.progress.notes.push({ agent: agent.name, text: reason || "It is your turn." });
			const text = `${agents.join(parallel ? " and " : ", then ")}: ${reason}`;
			this.log({
				kind: "routing",
				agent: agent.name,
				text,
				data: { agents, reason, parallel, ...(phase && { phase }) },
			});
		}
		if (this.progress.enter(phase, reason)) say({ type: "phase", name: phase, because: reason });
		this.progress.enqueue(agents, parallel);
		// A run that is interrupted now continues with the next agents.
		if (this.#isSeveral) say(this.#boundary());
	}

	async injected(read: (injected: readonly Message[]) => void): Promise<readonly Message[]> {
		const { inbox } = this.#context;
		const { injected } = this.progress;
		if (!inbox) return injected;
		// After everything yielded so far: that is their place in the log.
		await this.#events.idle();
		if (this.signal.aborted) return injected;
		let isMarked = false;
		const arrived = await inbox.take((messages) => {
			isMarked = true;
			this.#inject(messages);
			read(injected);
			return this.#checkpoint();
		});
		if (!isMarked) this.#inject(arrived);
		// A checkpoint of another lane may be under way without these messages, and would be newer.
		if (arrived.length > 0 && this.#lanes.size > 1) this.#events.push(this.#boundary());
		return injected;
	}

	#inject(messages: readonly EngineMessage[]): void {
		for (const message of messages) {
			const asked = { ...this.request, messages: [message], attachments: [] };
			this.progress.injected.push(toPiContext(asked, this.setup.clock.now()).prompt);
		}
	}

	count(agent: string, heard: ModelReply, ms: number): void {
		const { failed, shown, reasoning } = heard;
		const { provider, model } = this.setup.agents.get(agent)!.model.failure;
		this.setup.counters?.add("model_calls", { agent, outcome: failed ? "failed" : "answered" });
		this.setup.counters?.add("model_ms", { agent }, ms);
		if (reasoning !== "" && this.#state.isNewThinking(reasoning))
			this.log({ kind: "reasoning", agent, text: reasoning });
		// A refused call has used nothing.
		const used = failed && !shown ? undefined : this.#usage.add({ agent, model }, heard.message.usage);
		this.#state.used.tokens += used?.tokens ?? 0;
		this.#state.used.costUsd += used?.costUsd ?? 0;
		const how = failed ? (this.signal.aborted ? "was stopped" : "failed") : "answered";
		const text = `${provider}/${model} ${how} after ${Math.round(ms)} ms`;
		this.log({ kind: "model", agent, text, data: { ms, failed, ...(used && { tokens: used.tokens }) } });
	}

	log(entry: ExecutionEntry): void {
		this.#events.push({ type: "log", entry });
	}

	#voiceOf(agent: string): AgentLane["say"] {
		if (!this.#isSeveral) return (said, taken) => this.#events.push(said, taken);
		return (said, taken) =>
			this.#events.push(
				mapEvents(said, (event) => signedBy(event, agent)),
				taken,
			);
	}

	/** The answer ends when its tools have stopped, or after a grace time. */
	#halt(failed?: { cause: unknown }): void {
		this.#failed ??= failed;
		if (this.signal.aborted) return;
		this.#stop.abort();
		const { clock, toolSettleMs } = this.setup;
		const waitMs = this.acting.isBusy ? toolSettleMs + ABORT_SLACK_MS : ABORT_SLACK_MS;
		this.#disarm = clock.after(waitMs, () => this.#end(this.#failed), "due");
	}

	#end(failed?: { cause: unknown }): void {
		if (this.#over) return;
		const { aborted } = this.#context.signal;
		try {
			const because = aborted ? "stopped before it finished" : "the run ended before it finished";
			this.#events.push([...this.#state.unpaired(because, this.#isSeveral), ...this.#usage.rest(this.#isSeveral)]);
			if (failed && !aborted) this.#events.fail(toNexusError(failed.cause, "engine_failed"));
			else this.#events.close();
		} catch (cause) {
			this.#events.fail(cause);
		} finally {
			this.#release();
		}
	}

	#release(): void {
		if (this.#over) return;
		this.#over = true;
		this.#disarm?.();
		this.#context.signal.removeEventListener("abort", this.#onAbort);
		this.#stop.abort();
	}
}

/** These concern the run as a whole. */
const signedBy = (event: EngineEvent, agent: string): EngineEvent =>
	event.type === "compaction" || event.type === "checkpoint" || event.type === "log" ? event : { ...event, agent };
