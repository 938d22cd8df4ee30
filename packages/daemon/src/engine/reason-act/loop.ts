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
import { EventQueue } from "../kit/kit.ts";
import { toPiContext } from "../pi/pi.ts";
import { ContextWords } from "../policy.ts";
import { Acting } from "./act.ts";
import { AGENT } from "./agents.ts";
import type { PhaseChange } from "./checkpoint.ts";
import { type AgentNote, type Checkpoint, interrupted, leanCalls, missingResults, type Thread } from "./checkpoint.ts";
import { AgentLane, type LaneRun } from "./lane.ts";
import type { ModelReply } from "./model/listen.ts";
import { usageByAgent } from "./model/model.ts";
import { mayUse, type Offer, offerFor } from "./offer.ts";
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
	readonly notes: AgentNote[] = [];
	phase: string;
	transition: PhaseChange | undefined;
	offer!: Offer;
	readonly #context: EngineContext;
	readonly #words: ContextWords;
	readonly #stop = new AbortController();
	readonly #events = new EventQueue();
	readonly #state: RunState;
	readonly #usage = usageByAgent();
	readonly #calls = new Map<string, number>();
	readonly #threads = new Map<string, Thread>();
	readonly #injected: Message[] = [];
	/** The active agents. */
	readonly #lanes = new Set<AgentLane>();
	/** The agents that follow; those in one group work in parallel. */
	readonly #line: string[][] = [];
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
		const before = request.phase;
		const isKnown = before !== undefined && Object.hasOwn(setup.phases, before.name);
		this.phase = isKnown ? before.name : setup.phase;
		if (isKnown && (before.from ?? before.because) !== undefined)
			this.transition = { from: before.from ?? before.name, because: before.because ?? "", at: before.since };
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
		else this.#line.push([this.#entry()]);
		for (let group = this.#line.shift(); group !== undefined && !this.signal.aborted; group = this.#line.shift()) {
			const lanes = group.map((name) => this.#lane(name));
			await this.#together(lanes, false);
		}
	}

	#entry(): string {
		const { agents, entry } = this.setup;
		const { agent = entry } = this.request;
		// A single agent answers to every name in access rules; so does the first of several to the default name.
		const name = this.#isSeveral && (agents.has(agent) || agent !== AGENT) ? agent : entry;
		if (!agents.has(name)) throw new NexusError("engine_failed", `there is no agent "${name}"`);
		if (this.#isSeveral && !mayUse(this.request, name))
			throw new NexusError("engine_failed", `the sender may not use the agent "${name}"`);
		return name;
	}

	#lane(name: string, from?: Checkpoint["lanes"][number]): AgentLane {
		const agent = this.setup.agents.get(name);
		if (agent === undefined) throw new NexusError("engine_failed", `there is no agent "${name}"`);
		const thread = this.#threads.get(name) ?? { messages: [], notesRead: 0, injectedRead: 0 };
		this.#threads.set(name, thread);
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

	#restored({ state, phase, transition, lanes, line, notes, threads, injected, calls }: Checkpoint): AgentLane[] {
		this.phase = phase;
		this.transition = transition;
		this.notes.push(...notes);
		this.#injected.push(...injected);
		this.#line.push(...line);
		for (const [agent, count] of Object.entries(calls)) this.#calls.set(agent, count);
		const { answer } = this.request.continues ?? {};
		const answered = this.#state
			.openCalls()
			.find(({ callId, status }) => callId === answer?.callId && status === "announced");
		const now = this.setup.clock.now();
		for (const [agent, thread] of Object.entries(threads)) {
			const messages = [...thread.messages, ...missingResults(thread.messages, state, now, answered?.callId)];
			this.#threads.set(agent, { ...thread, messages });
		}
		// Open calls got their failed results above. End them before the lanes adopt what is open.
		for (const call of this.#state.openCalls()) if (call !== answered) this.#state.end(call, "failed", "cut off");
		const going = lanes.map((lane) => this.#lane(lane.activation.agent, lane));
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
		// Messages are never changed, only replaced: copies of the lists are enough.
		const threads = [...this.#threads].map(([agent, thread]) => [agent, { ...thread, messages: [...thread.messages] }]);
		const state = this.#state.snapshot();
		return {
			version: 1,
			state: { ...state, calls: leanCalls(state.calls, this.#threads.values()) },
			phase: this.phase,
			transition: this.transition,
			lanes: [...this.#lanes].map(({ state }) => state.laneSnapshot()),
			line: this.#line.map((group) => [...group]),
			notes: [...this.notes],
			threads: Object.fromEntries(threads),
			injected: [...this.#injected],
			calls: Object.fromEntries(this.#calls),
		};
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
			this.notes.push({ agent: agent.name, text: summary });
			this.log({ kind: "completion", agent: agent.name, text: summary, data: { by } });
		}
		// Chat platforms show the next agent's message once this one is whole and has its usage.
		if (this.#isSeveral) say([...this.#usage.take(agent.name), { type: "message_end" }]);
		if (verdict.type === "route") this.#route(lane, verdict.decision);
	}

	#route({ agent, say }: AgentLane, { agents, phase, reason, parallel = false }: RoutingDecision): void {
		if (agent.orchestrator) {
			this.#state.countRoute();
			this.notes.push({ agent: agent.name, text: reason || "It is your turn." });
			const text = `${agents.join(parallel ? " and " : ", then ")}: ${reason}`;
			this.log({
				kind: "routing",
				agent: agent.name,
				text,
				data: { agents, reason, parallel, ...(phase && { phase }) },
			});
		}
		if (phase !== undefined && phase !== this.phase && Object.hasOwn(this.setup.phases, phase)) {
			const [from, at] = [this.phase, this.setup.clock.now()];
			this.transition = { from, because: reason, at };
			this.phase = phase;
			say({ type: "phase", name: phase, because: reason });
		}
		const waiting = new Set(this.#line.flat());
		const next = [...new Set(agents)].filter((name) => !waiting.has(name));
		if (parallel && next.length > 0) this.#line.push(next);
		else this.#line.push(...next.map((name) => [name]));
		// A run that is interrupted now continues with the next agents.
		if (this.#isSeveral) say(this.#boundary());
	}

	async injected(read: (injected: readonly Message[]) => void): Promise<readonly Message[]> {
		const { inbox } = this.#context;
		if (!inbox) return this.#injected;
		// After everything yielded so far: that is their place in the log.
		await this.#events.idle();
		if (this.signal.aborted) return this.#injected;
		let isMarked = false;
		const arrived = await inbox.take((messages) => {
			isMarked = true;
			this.#inject(messages);
			read(this.#injected);
			return this.#checkpoint();
		});
		if (!isMarked) this.#inject(arrived);
		// A checkpoint of another lane may be under way without these messages, and would be newer.
		if (arrived.length > 0 && this.#lanes.size > 1) this.#events.push(this.#boundary());
		return this.#injected;
	}

	#inject(messages: readonly EngineMessage[]): void {
		for (const message of messages) {
			const asked = { ...this.request, messages: [message], attachments: [] };
			this.#injected.push(toPiContext(asked, this.setup.clock.now()).prompt);
		}
	}

	nextCall(agent: string): number {
		const index = this.#calls.get(agent) ?? 0;
		this.#calls.set(agent, index + 1);
		return index;
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
		if (used) this.#state.countUsage(used.tokens, used.costUsd);
		const how = failed ? (this.signal.aborted ? "was stopped" : "failed") : "answered";
		const text = `${provider}/${model} ${how} after ${Math.round(ms)} ms`;
		this.log({ kind: "model", agent, text, data: { ms, failed, ...(used && { tokens: used.tokens }) } });
	}

	log(entry: ExecutionEntry): void {
		this.#events.push({ type: "log", entry });
	}

	#voiceOf(agent: string): AgentLane["say"] {
		if (!this.#isSeveral) return (said, taken) => this.#events.push(said, taken);
		return (said, taken) => this.#events.push(signed(said, agent), taken);
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
			this.#events.push([...this.#unpaired(because), ...this.#usage.rest(this.#isSeveral)]);
			if (failed && !aborted) this.#events.fail(toNexusError(failed.cause, "engine_failed"));
			else this.#events.close();
		} catch (cause) {
			this.#events.fail(cause);
		} finally {
			this.#release();
		}
	}

	#unpaired(because: string): EngineEvent[] {
		return this.#state.openCalls().map(({ callId, name, args, status, agent }) => ({
			type: "tool",
			callId,
			name,
			status: "failed",
			summary: because,
			result: because,
			args: status === "announced" ? args : undefined,
			agent: this.#isSeveral ? agent : undefined,
		}));
	}

	#release(): void {
		if (this.#over) return;
		this.#over = true;
		this.#disarm?.();
		this.#context.signal.removeEventListener("abort", this.#onAbort);
		this.#stop.abort();
	}
}

const isList = (said: EngineYield): said is readonly EngineEvent[] => Array.isArray(said);

const signed = (said: EngineYield, agent: string): EngineYield =>
	isList(said) ? said.map((event) => signedOne(event, agent)) : signedOne(said, agent);

function signedOne(event: EngineEvent, agent: string): EngineEvent {
	switch (event.type) {
		case "compaction":
		case "checkpoint":
		case "log":
			return event;
		default:
			return { ...event, agent };
	}
}
