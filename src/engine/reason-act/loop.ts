/** The loop: a model reasons, its tools act, and termination decides what comes next, until the run is over. One iterator over all of it. */

import type { AssistantMessage, Message, ToolCall, ToolResultMessage } from "@earendil-works/pi-ai";
import { NexusError, toNexusError } from "../../protocol/protocol.ts";
import { eventQueue, modelFailure, usageSum } from "../kit/kit.ts";
import { toPiContext } from "../pi/pi.ts";
import type { EngineEvent, EngineRequest, EngineYield } from "../port.ts";
import { asModelTool } from "../tools/tools.ts";
import { Acting } from "./act.ts";
import { type Checkpoint, interrupted, owedResults } from "./checkpoint.ts";
import { type Heard, jsonOf, listen } from "./listen.ts";
import type { ModelCall } from "./model.ts";
import { pause } from "./pause.ts";
import { systemPrompt, type Transition } from "./prompt.ts";
import type { AgentSpec, LoopSetup } from "./setup.ts";
import { RunState, type TrackedCall } from "./state.ts";
import { mustTerminate, type Phase, type Verdict } from "./termination.ts";
import { withoutThinking } from "./think.ts";
import { trimmed } from "./trim.ts";

/** After a provider has refused a context as too long, it gets this share of the window. */
const TIGHT_SHARE = 0.5;
const FIRST_RETRY_MS = 500;
/** Beyond what a tool may take to let go, before the end is written for it. */
const ABORT_SLACK_MS = 100;

/** `from`: goes on where an earlier run of the same session was cut off. */
export function reasonAct(
	setup: LoopSetup,
	request: EngineRequest,
	signal: AbortSignal,
	from?: Checkpoint,
): AsyncIterable<EngineYield> {
	return { [Symbol.asyncIterator]: () => new Loop(setup, request, signal, from) };
}

/** By hand: a generator, and one within another still more, costs several promises for each token. */
class Loop implements AsyncIterator<EngineYield, undefined> {
	readonly #setup: LoopSetup;
	readonly #request: EngineRequest;
	readonly #outer: AbortSignal;
	readonly #stop = new AbortController();
	readonly #events = eventQueue();
	readonly #usage = usageSum();
	readonly #state: RunState;
	readonly #acting: Acting;
	readonly #calls = new Map<string, number>();
	/** What agents of this run handed on: each later one reads it. */
	readonly #notes: string[] = [];
	readonly #onAbort = () => this.#abort();
	/** Agents whose turn comes next. */
	readonly #line: string[] = [];
	#history: Message[] = [];
	/** What the first agent reads of words that were cut off. */
	#opening: Message[] = [];
	/** Of the active agent, behind the session's own. */
	#messages: Message[] = [];
	#phase: string;
	#transition: Transition | undefined;
	/** Why the last attempt failed, with its code. */
	#failure: NexusError | undefined;
	#disarm: (() => void) | undefined;
	#over = false;

	constructor(setup: LoopSetup, request: EngineRequest, signal: AbortSignal, from?: Checkpoint) {
		this.#setup = setup;
		this.#request = request;
		this.#outer = signal;
		this.#phase = setup.phase;
		this.#state = new RunState(setup.limits, from?.state);
		this.#acting = new Acting({
			...{ setup, request, state: this.#state, signal: this.#stop.signal },
			say: (said, taken) => this.#events.push(said, taken),
			boundary: () => this.#boundary(),
		});
		if (signal.aborted) {
			void this.return();
			return;
		}
		signal.addEventListener("abort", this.#onAbort, { once: true });
		this.#work(from).then(
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

	async #work(from: Checkpoint | undefined): Promise<void> {
		const { entry, agents } = this.#setup;
		const { signer } = agents.get(entry)!.model;
		const { history, prompt } = toPiContext(this.#request, this.#setup.clock.now(), signer);
		this.#history = [...history, prompt];
		const line = this.#line;
		this.#opening = interrupted(this.#request, this.#setup.clock.now());
		if (from) await this.#restore(from);
		else line.push(entry);
		let resumed = from !== undefined;
		for (let name = line.shift(); name !== undefined && !this.#stop.signal.aborted; name = line.shift()) {
			const agent = agents.get(name);
			if (agent === undefined) throw new NexusError("engine_failed", `there is no agent "${name}"`);
			const verdict = await this.#activate(agent, resumed);
			resumed = false;
			if (!this.#stop.signal.aborted) this.#follow(agent, verdict, line);
		}
	}

	async #restore({ state, phase, transition, line, notes, messages, calls }: Checkpoint): Promise<void> {
		this.#phase = phase;
		this.#transition = transition;
		this.#notes.push(...notes);
		for (const [agent, count] of Object.entries(calls)) this.#calls.set(agent, count);
		const { answer } = this.#request.continues ?? {};
		const waited = ({ callId, status }: TrackedCall) => callId === answer?.callId && status === "announced";
		const answered = this.#state.openCalls().find(waited);
		this.#messages = [...messages, ...owedResults(messages, state, this.#setup.clock.now(), answered?.callId)];
		// What was open has its result by now: it is not this run's to pair.
		for (const call of this.#state.openCalls()) if (call !== answered) this.#state.end(call, "failed", "cut off");
		const { agent: name } = this.#state.activation;
		this.#line.push(name, ...line);
		const agent = this.#setup.agents.get(name);
		if (!answered || !answer || !agent) return;
		const how = { isCut: false, enforced: this.#isEnforced(agent) };
		this.#messages.push(...(await this.#acting.settle(agent, answered, answer, how)));
	}

	/** With a tool's event, in one burst: what stands in the log and where the run can go on belong together. */
	#boundary(): readonly EngineEvent[] {
		const { checkpoint } = this.#setup;
		if (!checkpoint) return [];
		const event = checkpoint({
			version: 1,
			state: this.#state.snapshot(),
			phase: this.#phase,
			...(this.#transition && { transition: this.#transition }),
			line: [...this.#line],
			notes: [...this.#notes],
			messages: structuredClone(this.#messages),
			calls: Object.fromEntries(this.#calls),
		});
		return event === undefined ? [] : [event];
	}

	/** What a verdict means for those who wait in line. */
	#follow(agent: AgentSpec, verdict: Verdict, line: string[]): void {
		switch (verdict.type) {
			case "fail":
				throw this.#failure ?? new NexusError("engine_failed", verdict.message);
			case "retry":
				throw new NexusError("internal", "a retry is the activation's own matter");
			case "end":
			case "route":
				if (verdict.text !== undefined && !this.#state.hasSpoken)
					this.#events.push([{ type: "message" }, { type: "text", delta: verdict.text }]);
				if (verdict.completion) this.#notes.push(`[${verdict.completion.agent}] ${verdict.completion.summary}`);
		}
		if (verdict.type !== "route") return;
		const { agents, phase, reason } = verdict.decision;
		if (agent.orchestrator) this.#state.countRoute();
		if (phase !== undefined && phase !== this.#phase && Object.hasOwn(this.#setup.phases, phase)) {
			this.#transition = { from: this.#phase, because: reason, at: this.#setup.clock.now() };
			this.#phase = phase;
		}
		if (reason !== "" && agent.orchestrator) this.#notes.push(`[${agent.name}] ${reason}`);
		for (const next of agents) if (!line.includes(next)) line.push(next);
	}

	/** One agent, with its retries. */
	async #activate(agent: AgentSpec, resumed: boolean): Promise<Verdict> {
		const { strategy, clock } = this.#setup;
		const attemptsMax = this.#setup.attemptsMaxOf(agent.name, this.#phase);
		const said = (content: string): Message => ({ role: "user", content, timestamp: clock.now() });
		if (!resumed) this.#messages = this.#notes.map(said);
		let { attempt } = resumed ? this.#state.activation : this.#state.activate(agent.name, this.#phase);
		if (this.#opening.length > 0) this.#state.say(this.#request.continues?.shown ?? "");
		this.#messages.push(...this.#opening.splice(0));
		for (; ; { attempt } = this.#state.retry()) {
			this.#failure = this.#state.terminal ? undefined : await this.#attempt(agent);
			if (this.#stop.signal.aborted) return { type: "end" };
			const verdict = strategy.decide({
				agent,
				phase: this.#rules,
				attempt,
				attemptsMax,
				terminal: this.#state.terminal,
				content: this.#state.content,
				failure: this.#failure?.message,
				orchestrator: agent.orchestrator ? undefined : this.#setup.orchestrator,
				fallback: agent.fallback,
			});
			if (verdict.type !== "retry") return verdict;
			// A strategy of somebody's own may never be content.
			if (attempt >= attemptsMax) return { type: "fail", message: `${agent.name} did not end in ${attempt} attempts` };
			this.#messages.push(said(verdict.reminder));
		}
	}

	/** Calls the model until it stops asking for tools; returns why it could not. */
	async #attempt(agent: AgentSpec): Promise<NexusError | undefined> {
		for (;;) {
			const heard = await this.#call(agent);
			if (this.#stop.signal.aborted) return undefined;
			if (heard.failed) return modelFailure(heard.message.errorMessage, agent.model.failure);
			const results = await this.#act(agent, heard.message);
			this.#messages.push(...results);
			if (results.length === 0 || this.#state.terminal !== undefined || this.#stop.signal.aborted) return undefined;
		}
	}

	async #act(agent: AgentSpec, heard: AssistantMessage): Promise<ToolResultMessage[]> {
		const asked = heard.content.flatMap((part) => {
			if (part.type !== "toolCall") return [];
			const call = this.#state.announce(String(part.id ?? ""), part.name, jsonOf(part.arguments));
			return [{ part, call, isTooMany: this.#state.isToolLimitPassed }];
		});
		// Under the ids that results answer to: a model may have used its own twice.
		const calls = new Map(asked.map(({ part, call }) => [part, call]));
		const opening = heard.content.find(({ type }) => type === "text");
		const content = heard.content.flatMap((part): AssistantMessage["content"] => {
			const call = part.type === "toolCall" ? calls.get(part) : undefined;
			if (call) return [{ ...(part as ToolCall), id: call.callId, name: call.name, arguments: jsonObject(call.args) }];
			if (part.type !== "text") return [part];
			const text = part === opening ? withoutThinking(part.text) : part.text;
			return text === "" ? [] : [{ ...part, text }];
		});
		// Before its tools act, so that a checkpoint has it. Providers refuse a message with nothing in it.
		const stopReason = asked.length > 0 ? "toolUse" : "stop";
		if (content.length > 0) this.#messages.push({ ...heard, content, stopReason });
		const how = { isCut: heard.stopReason === "length", enforced: this.#isEnforced(agent) };
		return await this.#acting.run(agent, asked, how);
	}

	/** One answer of the model. What is refused before its first token is tried again; what was shown is never shown twice. */
	async #call(agent: AgentSpec): Promise<Heard> {
		const { retriesMax, clock } = this.#setup;
		const { model } = agent;
		let tokensMax = model.contextTokensMax;
		for (let retries = 0; ; ) {
			const limit = this.#state.exhausted();
			if (limit !== undefined) throw new NexusError("engine_failed", `the run was stopped: ${limit}`);
			this.#fit(tokensMax);
			const heard = await this.#listen(agent);
			if (!heard.failed || heard.shown || this.#stop.signal.aborted) return heard;
			if (tokensMax === model.contextTokensMax && model.isOverflow(heard.message)) {
				tokensMax = Math.floor(tokensMax * TIGHT_SHARE);
			} else if (retries < retriesMax && model.isPassing(heard.message)) {
				const delayMs = Math.min(this.#setup.retryDelayMsMax, FIRST_RETRY_MS * 2 ** retries);
				retries += 1;
				await pause(delayMs, this.#stop.signal, clock);
				if (this.#stop.signal.aborted) return heard;
			} else return heard;
		}
	}

	async #listen(agent: AgentSpec): Promise<Heard> {
		const { name, model } = agent;
		const index = this.#calls.get(name) ?? 0;
		this.#calls.set(name, index + 1);
		this.#state.countModelCall();
		const call: ModelCall = {
			...{ agent: name, index, session: this.#request.session, signal: this.#stop.signal },
			systemPrompt: this.#prompt(agent),
			messages: [...this.#history, ...this.#messages],
			tools: this.#acting.offered(agent, this.#isEnforced(agent)).tools.map(asModelTool),
		};
		const heard = await listen(() => model.stream(call), {
			state: this.#state,
			account: model.signer?.account ?? "",
			say: (said) => this.#events.push(said),
			describe: (tool, args) => agent.tools.describe(tool, args),
		});
		this.#count(heard);
		return heard;
	}

	#count({ message: { usage }, failed, shown }: Heard): void {
		// A refused call has used nothing.
		if (failed && !shown) return;
		const [input, output, cacheRead, cacheWrite, cost] = [
			usage?.input,
			usage?.output,
			usage?.cacheRead,
			usage?.cacheWrite,
			usage?.cost?.total,
		].map((value) => (Number.isFinite(value) ? Math.max(0, value!) : 0)) as [number, number, number, number, number];
		this.#usage.add({ input, output, cacheRead, cacheWrite });
		this.#state.countUsage(input + output + cacheRead + cacheWrite, cost);
	}

	/** The oldest tool results give way, for good. */
	#fit(tokensMax: number): void {
		const all = [...this.#history, ...this.#messages];
		const fitting = trimmed(all, tokensMax);
		if (fitting === all) return;
		this.#events.push([
			{ type: "compaction", phase: "start" },
			{ type: "compaction", phase: "end" },
		]);
		const own = this.#history.length;
		this.#history = fitting.slice(0, own);
		this.#messages = fitting.slice(own);
	}

	get #rules(): Phase {
		return this.#setup.phases[this.#phase] ?? { enforce: true };
	}

	#isEnforced(agent: AgentSpec): boolean {
		return mustTerminate({ agent, phase: this.#rules });
	}

	#prompt(agent: AgentSpec): string {
		const { recentTransitionMs, clock } = this.#setup;
		return systemPrompt({
			prompt: agent.prompt,
			phase: this.#phase,
			enforced: this.#isEnforced(agent),
			orchestrator: agent.orchestrator,
			transition: this.#transition,
			recentTransitionMs,
			now: clock.now(),
		});
	}

	/** The answer ends when its tools have let go, or soon after whatever they do. */
	#abort(): void {
		this.#stop.abort();
		const { clock, toolSettleMs } = this.#setup;
		const waitMs = this.#acting.isBusy ? toolSettleMs + ABORT_SLACK_MS : ABORT_SLACK_MS;
		this.#disarm = clock.after(waitMs, () => this.#end(), "due");
	}

	#end(thrown?: { cause: unknown }): void {
		if (this.#over) return;
		const { aborted } = this.#outer;
		try {
			const because = aborted ? "stopped before it finished" : "the run ended before it finished";
			this.#events.push([...this.#unpaired(because), this.#usage.event()]);
			if (thrown && !aborted) this.#events.fail(thrown.cause);
			else this.#events.close();
		} catch (cause) {
			this.#events.fail(cause);
		} finally {
			this.#release();
		}
	}

	#unpaired(because: string): EngineEvent[] {
		return this.#state.openCalls().map(({ callId, name, args, status }) => ({
			...{ type: "tool" as const, callId, name, status: "failed" as const, summary: because, result: because },
			...(status === "announced" && { args }),
		}));
	}

	#release(): void {
		if (this.#over) return;
		this.#over = true;
		this.#disarm?.();
		this.#outer.removeEventListener("abort", this.#onAbort);
		this.#stop.abort();
	}
}

function jsonObject(value: unknown): Record<string, never> {
	return (typeof value === "object" && value !== null && !Array.isArray(value) ? value : { value }) as Record<
		string,
		never
	>;
}
