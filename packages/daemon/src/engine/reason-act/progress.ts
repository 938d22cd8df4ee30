/** The progress of a run apart from its calls: the phase, the threads and notes of its agents, who follows, and words that arrived. A checkpoint holds it. */

import type { Message } from "@earendil-works/pi-ai";
import type { EngineRequest } from "@nexus-stream/protocol/engine";
import {
	type AgentNote,
	type Checkpoint,
	leanCalls,
	missingResults,
	type PhaseChange,
	type Thread,
} from "./checkpoint.ts";
import type { LoopSetup } from "./setup.ts";
import type { RunState } from "./state.ts";

export class RunProgress {
	phase: string;
	transition: PhaseChange | undefined;
	/** Hand-over notes of the agents. */
	readonly notes: AgentNote[] = [];
	/** Words of people that arrived during the run. */
	readonly injected: Message[] = [];
	readonly #setup: LoopSetup;
	readonly #threads = new Map<string, Thread>();
	/** Model calls by agent. */
	readonly #calls = new Map<string, number>();
	/** The agents that follow; those in one group work in parallel. */
	readonly #line: string[][] = [];

	constructor(setup: LoopSetup, before: EngineRequest["phase"]) {
		this.#setup = setup;
		const isKnown = before !== undefined && Object.hasOwn(setup.phases, before.name);
		this.phase = isKnown ? before.name : setup.phase;
		if (isKnown && (before.from ?? before.because) !== undefined)
			this.transition = { from: before.from ?? before.name, because: before.because ?? "", at: before.since };
	}

	thread(agent: string): Thread {
		const thread = this.#threads.get(agent) ?? { messages: [], notesRead: 0, injectedRead: 0 };
		this.#threads.set(agent, thread);
		return thread;
	}

	/** Which call of the agent's model is next, from 0. */
	nextCall(agent: string): number {
		const index = this.#calls.get(agent) ?? 0;
		this.#calls.set(agent, index + 1);
		return index;
	}

	/** The agents that work next, if any. */
	nextGroup(): string[] | undefined {
		return this.#line.shift();
	}

	/** An agent that waits already does not wait twice. */
	enqueue(agents: readonly string[], parallel: boolean): void {
		const waiting = new Set(this.#line.flat());
		const next = [...new Set(agents)].filter((name) => !waiting.has(name));
		if (parallel && next.length > 0) this.#line.push(next);
		else this.#line.push(...next.map((name) => [name]));
	}

	/** False: it is the current one, or unknown. */
	enter(phase: string | undefined, because: string): phase is string {
		if (phase === undefined || phase === this.phase || !Object.hasOwn(this.#setup.phases, phase)) return false;
		this.transition = { from: this.phase, because, at: this.#setup.clock.now() };
		this.phase = phase;
		return true;
	}

	/** `lanes`: the active agents. */
	checkpoint(run: RunState, lanes: readonly RunState[]): Checkpoint {
		// Messages are never changed, only replaced: copies of the lists are enough.
		const threads = [...this.#threads].map(([agent, thread]) => [agent, { ...thread, messages: [...thread.messages] }]);
		const state = run.snapshot();
		return {
			version: 1,
			state: { ...state, calls: leanCalls(state.calls, this.#threads.values()) },
			phase: this.phase,
			transition: this.transition,
			lanes: lanes.map((lane) => lane.laneSnapshot()),
			line: this.#line.map((group) => [...group]),
			notes: [...this.notes],
			threads: Object.fromEntries(threads),
			injected: [...this.injected],
			calls: Object.fromEntries(this.#calls),
		};
	}

	/** Calls that were cut off get failed results, except the answered one. */
	restore(from: Checkpoint, answered: string | undefined): void {
		const { state, phase, transition, line, notes, threads, injected, calls } = from;
		this.phase = phase;
		this.transition = transition;
		this.notes.push(...notes);
		this.injected.push(...injected);
		this.#line.push(...line);
		for (const [agent, count] of Object.entries(calls)) this.#calls.set(agent, count);
		const now = this.#setup.clock.now();
		for (const [agent, thread] of Object.entries(threads)) {
			const messages = [...thread.messages, ...missingResults(thread.messages, state, now, answered)];
			this.#threads.set(agent, { ...thread, messages });
		}
	}
}
