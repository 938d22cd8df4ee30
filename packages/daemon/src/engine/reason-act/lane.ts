/** One agent at work: its attempts, the calls of its model, the tools it asks for. Agents side by side have a lane each. */

import type { AssistantMessage, Message, ToolCall, ToolResultMessage } from "@earendil-works/pi-ai";
import { NexusError } from "@nexus-stream/protocol";
import type { ApprovalOutcome, EngineRequest, EngineYield, ExecutionEntry } from "@nexus-stream/protocol/engine";
import { backoffMs, sleep } from "@nexus-stream/protocol/retry";
import { modelFailure } from "../kit/kit.ts";
import { jsonObject } from "../pi/pi.ts";
import { asModelTool, describeCall } from "../tools/tools.ts";
import type { Acting } from "./act.ts";
import type { RunToolCall, Thread } from "./checkpoint.ts";
import { jsonOf, listen, type ModelReply, withoutThinking } from "./model/listen.ts";
import type { ModelRequest } from "./model/model.ts";
import { mayUse, notesFor, type Offer, sessionFor, systemPrompt, trimmed, userWords } from "./offer.ts";
import type { RunProgress } from "./progress.ts";
import { type AgentSpec, forTool, type LoopSetup } from "./setup.ts";
import type { RunState } from "./state.ts";
import { checkedVerdict, mustTerminate, type PhaseRules, type TerminationDecision } from "./termination.ts";

/** After a provider has refused a context as too long, it gets this share of the window. */
const TIGHT_SHARE = 0.5;
const FIRST_RETRY_MS = 500;

/** The part of the run that a lane uses. */
export interface LaneRun {
	readonly setup: LoopSetup;
	readonly request: EngineRequest;
	readonly signal: AbortSignal;
	readonly acting: Acting;
	readonly offer: Offer;
	readonly progress: RunProgress;
	/** The orchestrator, if the run's senders may use it. */
	readonly orchestrator: string | undefined;
	/** Words of people that arrived during the run, so far. `read` is called when there are new ones, before they are on record. */
	injected(read: (injected: readonly Message[]) => void): Promise<readonly Message[]>;
	count(agent: string, heard: ModelReply, ms: number): void;
	log(entry: ExecutionEntry): void;
}

export interface LaneParts {
	run: LaneRun;
	agent: AgentSpec;
	state: RunState;
	thread: Thread;
	say(said: EngineYield, taken?: () => void): void;
}

export class AgentLane {
	readonly agent: AgentSpec;
	readonly state: RunState;
	readonly thread: Thread;
	readonly say: LaneParts["say"];
	/** A call that waited for a person when the run before was cut off, with the answer. */
	missing: { call: RunToolCall; answer: ApprovalOutcome } | undefined;
	/** Its own text that people have already read, and the messages that tell the model so. */
	cutOff: { shown: string; messages: readonly Message[] } | undefined;
	/** Why the last attempt failed, with its code. */
	failure: NexusError | undefined;
	readonly #run: LaneRun;
	#session: Message[];

	constructor({ run, agent, state, thread, say }: LaneParts) {
		this.#run = run;
		this.agent = agent;
		this.state = state;
		this.thread = thread;
		this.say = say;
		this.#session = sessionFor(agent.name, run.request, run.setup.clock.now(), agent.model.signer);
	}

	/** The agent's turn, with its retries. `resumed`: continues the interrupted attempt. */
	async work(resumed: boolean): Promise<TerminationDecision> {
		const { setup, signal } = this.#run;
		const { phase, notes } = this.#run.progress;
		const { name } = this.agent;
		const attemptsMax = setup.attemptsMaxOf(name, phase);
		if (!resumed) {
			this.thread.messages.push(...notesFor(name, notes.slice(this.thread.notesRead), setup.clock.now()));
			this.thread.notesRead = notes.length;
			this.state.activate(name, phase);
		}
		await this.#takeUp();
		for (; ; this.state.retry()) {
			const { attempt } = this.state.activation;
			this.failure = this.state.terminal ? undefined : await this.#attempt();
			if (signal.aborted) return { type: "end" };
			const verdict = this.#verdict(attempt, attemptsMax);
			const about = { attempt, attemptsMax, phase, outcome: verdict.type };
			this.#log("attempt", `attempt ${attempt} of ${attemptsMax} in ${phase}: ${verdict.type}`, about);
			setup.counters?.add("agent_attempts", { agent: name, outcome: verdict.type });
			if (verdict.type !== "retry") return verdict;
			// A custom strategy may retry without end.
			if (attempt >= attemptsMax) return { type: "fail", message: `${name} did not end in ${attempt} attempts` };
			this.thread.messages.push(userWords(verdict.reminder, setup.clock.now()));
			this.#log("reminder", verdict.reminder, { attempt });
		}
	}

	/** The call that an earlier run of the session left open. */
	async #takeUp(): Promise<void> {
		const { missing: owed, cutOff, thread } = this;
		if (owed) thread.messages.push(...(await this.#run.acting.settle(this, this.#offered, owed.call, owed.answer)));
		if (!cutOff) return;
		this.state.say(cutOff.shown);
		thread.messages.push(...cutOff.messages);
	}

	#verdict(attempt: number, attemptsMax: number): TerminationDecision {
		const { agent, state } = this;
		const { setup, request, orchestrator } = this.#run;
		const { fallback } = agent;
		return checkedVerdict(setup.strategy, {
			agent,
			phase: this.#rules,
			attempt,
			attemptsMax,
			terminal: state.terminal,
			content: state.content,
			failure: this.failure?.message,
			orchestrator: agent.orchestrator ? undefined : orchestrator,
			fallback: fallback !== undefined && mayUse(request, fallback) ? fallback : undefined,
		});
	}

	/** Calls the model until it stops asking for tools; returns why it could not. */
	async #attempt(): Promise<NexusError | undefined> {
		const { signal } = this.#run;
		for (;;) {
			const heard = await this.#call();
			if (signal.aborted) return undefined;
			if (heard.failed) return modelFailure(heard.message.errorMessage, this.agent.model.failure);
			const results = await this.#act(heard.message);
			this.thread.messages.push(...results);
			if (results.length === 0 || this.state.terminal !== undefined || signal.aborted) return undefined;
		}
	}

	async #act(heard: AssistantMessage): Promise<ToolResultMessage[]> {
		const { state, thread } = this;
		const asked = heard.content.flatMap((part) => {
			if (part.type !== "toolCall") return [];
			const call = state.announce(String(part.id ?? ""), part.name, jsonOf(part.arguments));
			return [{ part, call, isTooMany: state.isToolLimitPassed }];
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
		if (content.length > 0) thread.messages.push({ ...heard, content, stopReason });
		return await this.#run.acting.run(this, this.#offered, asked, heard.stopReason === "length");
	}

	/** One answer of the model. What is refused before its first token is tried again; what was shown is never shown twice. */
	async #call(): Promise<ModelReply> {
		const { setup, signal } = this.#run;
		const { model } = this.agent;
		let tokensMax = model.contextTokensMax;
		for (let retries = 0; ; ) {
			await this.#takeInjected();
			const limit = this.state.exhausted();
			if (limit !== undefined) throw new NexusError("engine_failed", `the run was stopped: ${limit}`);
			this.#fit(tokensMax);
			const heard = await this.#listen();
			if (!heard.failed || heard.shown || signal.aborted) return heard;
			if (tokensMax === model.contextTokensMax && model.isOverflow(heard.message)) {
				tokensMax = Math.floor(tokensMax * TIGHT_SHARE);
			} else if (retries < setup.retriesMax && model.isPassing(heard.message)) {
				const backoff = { firstMs: FIRST_RETRY_MS, maxMs: setup.retryDelayMsMax };
				await sleep(setup.clock, backoffMs(backoff, retries++), signal, "due");
				if (signal.aborted) return heard;
			} else return heard;
		}
	}

	/** Each lane reads them once, behind what it has done so far. */
	async #takeInjected(): Promise<void> {
		const { thread } = this;
		const read = (injected: readonly Message[]) => {
			thread.messages.push(...injected.slice(thread.injectedRead));
			thread.injectedRead = injected.length;
		};
		read(await this.#run.injected(read));
	}

	async #listen(): Promise<ModelReply> {
		const { setup, request, signal } = this.#run;
		const { name, model, visible } = this.agent;
		const offered = this.#offered;
		this.state.used.modelCalls += 1;
		const call: ModelRequest = {
			agent: name,
			index: this.#run.progress.nextCall(name),
			continued: request.continues !== undefined,
			session: request.session,
			signal,
			systemPrompt: systemPrompt(this.agent, this.#isEnforced, this.#run.progress, setup),
			messages: [...this.#session, ...this.thread.messages],
			tools: offered.tools.map(asModelTool),
		};
		const since = setup.clock.now();
		const heard = await listen(() => model.stream(call), {
			state: this.state,
			account: model.signer?.account ?? "",
			visible,
			say: this.say,
			describe: (tool, args) => describeCall(tool, args, offered.find(tool)?.describe ?? forTool(setup.describe, tool)),
		});
		this.#run.count(name, heard, setup.clock.now() - since);
		return heard;
	}

	/** The oldest tool results give way, for good. */
	#fit(tokensMax: number): void {
		const all = [...this.#session, ...this.thread.messages];
		const fitting = trimmed(all, tokensMax);
		if (fitting === all) return;
		this.say([
			{ type: "compaction", phase: "start" },
			{ type: "compaction", phase: "end" },
		]);
		const own = this.#session.length;
		this.#session = fitting.slice(0, own);
		this.thread.messages = fitting.slice(own);
	}

	get #rules(): PhaseRules {
		const { setup, progress } = this.#run;
		return setup.phases[progress.phase] ?? { enforce: true };
	}

	get #isEnforced(): boolean {
		return mustTerminate({ agent: this.agent, phase: this.#rules });
	}

	get #offered() {
		return this.#run.offer(this.agent, this.#isEnforced);
	}

	#log(kind: ExecutionEntry["kind"], text: string, data: Record<string, unknown>): void {
		this.#run.log({ kind, agent: this.agent.name, text, data });
	}
}
