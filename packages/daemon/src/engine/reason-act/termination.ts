/** How an attempt of an agent ends: reminder, hand-over, end or failure. Pure: one question, one answer. */

import { resolve } from "node:path";
import { NexusError, wordsOf } from "@nexus-stream/protocol";
import { importWithin } from "../../std/import-within.ts";
import { END } from "../agents.ts";
import type { TerminalCall } from "./checkpoint.ts";

/** Tools that end an attempt. */
export const TERMINAL = { complete: "complete", route: "route", end: "end_conversation" } as const;

export interface PhaseRules {
	/** Agents that do not orchestrate must end with a terminal tool. */
	enforce: boolean;
}

/** Free conversation needs no `complete`; everything else does. */
export const PHASES: Readonly<Record<string, PhaseRules>> = {
	chat: { enforce: false },
	brainstorm: { enforce: false },
	plan: { enforce: true },
	execute: { enforce: true },
	verification: { enforce: true },
	chores: { enforce: true },
	reflection: { enforce: true },
};

export const FIRST_PHASE = "chat";

export const ATTEMPTS_MAX = 2;

/** The next agents, and the reason. */
export interface RoutingDecision {
	/** In order; `END` alone ends the run. */
	agents: readonly string[];
	phase?: string;
	reason: string;
	/** All at once, instead of one after another. */
	parallel?: boolean;
}

/** The hand-over of an agent that is done. */
export interface Completion {
	agent: string;
	/** Shown to the orchestrator. */
	summary: string;
	/** `auto`: the agent never said that it was done. */
	by: "tool" | "auto" | "failure";
}

/** Facts about a finished attempt, for the strategy. */
export interface AttemptEnd {
	agent: { name: string; orchestrator: boolean };
	phase: PhaseRules;
	attempt: number;
	attemptsMax: number;
	/** Its terminal call, if it made one. */
	terminal?: TerminalCall | undefined;
	/** The agent's text in this attempt; empty answers are allowed. */
	content: string;
	/** Why the attempt could not be finished, if it could not. */
	failure?: string | undefined;
	/** The agent that the others return to. */
	orchestrator?: string | undefined;
	/** The agent that takes over when this one fails; for an orchestrator also the target when it does not route: an agent, or `END`. */
	fallback?: string | undefined;
}

export type TerminationDecision =
	/** The run is over; `text` is shown if the agent has said nothing. */
	| { type: "end"; text?: string; completion?: Completion }
	/** The same agent once more, with these words as the user's. */
	| { type: "retry"; reminder: string }
	/** Other agents. */
	| { type: "route"; decision: RoutingDecision; text?: string; completion?: Completion }
	/** The run fails. */
	| { type: "fail"; message: string };

/** Replaceable; it decides, and does nothing itself. */
export interface TerminationStrategy {
	readonly name: string;
	decide(end: AttemptEnd): TerminationDecision;
}

/** The summary of a completion is kept to this length. */
const SUMMARY_CHARS_MAX = 4000;

/** Enforces a terminal tool, reminds, then completes in the agent's place. */
export const enforcing: TerminationStrategy = {
	name: "enforcing",
	decide(end) {
		if (end.failure !== undefined) return afterFailure(end, end.failure);
		if (end.terminal !== undefined) return afterTerminal(end, end.terminal);
		if (!mustTerminate(end)) return { type: "end" };
		if (end.attempt < end.attemptsMax) return { type: "retry", reminder: reminderFor(end.agent.orchestrator) };
		return end.agent.orchestrator ? withoutRoute(end) : handedOver(end, end.content, "auto");
	},
};

/** Every answer ends its attempt: no reminders, no automatic hand-over. */
export const lenient: TerminationStrategy = {
	name: "lenient",
	decide(end) {
		if (end.failure !== undefined) return afterFailure(end, end.failure);
		return end.terminal === undefined ? { type: "end" } : afterTerminal(end, end.terminal);
	},
};

/** A custom strategy may throw, or return anything. */
export function checkedVerdict(strategy: TerminationStrategy, end: AttemptEnd): TerminationDecision {
	const verdict: TerminationDecision | undefined = strategy.decide(end);
	if (VERDICTS.includes(verdict?.type)) return verdict;
	return { type: "fail", message: `the strategy "${strategy.name}" gave no verdict on ${end.agent.name}'s attempt` };
}

const VERDICTS: readonly unknown[] = ["end", "retry", "route", "fail"] satisfies TerminationDecision["type"][];

const STRATEGIES = { enforcing, lenient } as const;

/** Orchestrators route in every phase: the exempt phases exempt the others. */
export const mustTerminate = ({ agent, phase }: Pick<AttemptEnd, "agent" | "phase">): boolean =>
	agent.orchestrator || phase.enforce;

export const reminderFor = (orchestrator: boolean): string =>
	orchestrator
		? "I see you've finished processing, but you haven't provided routing instructions yet. As the orchestrator, you MUST route to " +
			`appropriate agents for the next task with the '${TERMINAL.route}' tool, or end with '${TERMINAL.end}'. Do not repeat your answer.`
		: `I see you've finished responding, but you haven't used the '${TERMINAL.complete}' tool yet. As a non-orchestrator agent, you MUST use the ` +
			`'${TERMINAL.complete}' tool to signal that your work is done. Do not repeat your answer.`;

function afterTerminal(end: AttemptEnd, { name, args }: TerminalCall): TerminationDecision {
	const fields = typeof args === "object" && args !== null ? (args as Record<string, unknown>) : {};
	const response = words(fields.response);
	switch (name) {
		case TERMINAL.route:
			return afterRoute(fields);
		case TERMINAL.complete:
			return handedOver(end, words(fields.summary) ?? response ?? end.content, "tool", response);
		default:
			// `end_conversation`, and whatever other tool is declared terminal.
			return { type: "end", text: response ?? words(fields.text) };
	}
}

function afterRoute(fields: Record<string, unknown>): TerminationDecision {
	const named: unknown[] = Array.isArray(fields.agents) ? fields.agents : [];
	const agents = named.filter((name): name is string => typeof name === "string" && name !== END);
	if (agents.length === 0) return { type: "end" };
	const parallel = fields.parallel === true ? true : undefined;
	return {
		type: "route",
		decision: { agents, reason: words(fields.reason) ?? "", phase: words(fields.phase), parallel },
	};
}

/** A failing agent does not stop the others: its fallback takes over, else the orchestrator. The run fails only if there is neither. */
function afterFailure(end: AttemptEnd, failure: string): TerminationDecision {
	const { agent, fallback } = end;
	if (fallback !== undefined && fallback !== END) {
		const reason = `${agent.name} failed: ${failure}`.slice(0, SUMMARY_CHARS_MAX);
		const completion: Completion = { agent: agent.name, summary: reason, by: "failure" };
		return { type: "route", decision: { agents: [fallback], reason }, completion };
	}
	if (end.agent.orchestrator || end.orchestrator === undefined) return { type: "fail", message: failure };
	return handedOver(end, `${end.agent.name} failed: ${failure}`, "failure");
}

/** Back to the orchestrator; where there is none, the run is over. */
function handedOver(end: AttemptEnd, summary: string, by: Completion["by"], text?: string): TerminationDecision {
	const completion: Completion = { agent: end.agent.name, summary: summary.slice(0, SUMMARY_CHARS_MAX), by };
	if (end.orchestrator === undefined) return { type: "end", completion, text };
	const decision = { agents: [end.orchestrator], reason: `${end.agent.name} ${OUTCOMES[by]}` };
	return { type: "route", decision, completion, text };
}

const OUTCOMES: Record<Completion["by"], string> = {
	tool: "has completed its work",
	auto: "stopped without saying that its work is done",
	failure: "failed",
};

/** An orchestrator that does not route cannot be completed in its place; where it leads then is configured. */
function withoutRoute({ agent, attempt, fallback }: AttemptEnd): TerminationDecision {
	if (fallback === END) return { type: "end" };
	const reason = `${agent.name} gave no routing instructions in ${attempt} attempts`;
	if (fallback === undefined) return { type: "fail", message: `${reason}; set a \`fallback\` for it to go on without` };
	return { type: "route", decision: { agents: [fallback], reason } };
}

const words = (value: unknown): string | undefined =>
	typeof value === "string" && value.trim() !== "" ? value : undefined;

export async function strategyOf(
	choice: keyof typeof STRATEGIES | { module: string } = "enforcing",
	base: string,
): Promise<TerminationStrategy> {
	if (typeof choice === "string") return STRATEGIES[choice];
	const { module } = choice;
	const refuse = (found: string, cause?: unknown) =>
		new NexusError(
			"config",
			`\`reasonAct.termination\`: ${module} ${found}. It exports \`default { name, decide(end) }\`, and decide returns { type: "end" | "retry" | "route" | "fail", … }`,
			{ cause },
		);
	const exports = await importWithin(resolve(base, module)).catch((cause: unknown) => {
		throw refuse(`cannot be loaded: ${wordsOf(cause)}`, cause);
	});
	const found = (exports.default ?? exports.strategy) as Partial<TerminationStrategy> | null | undefined;
	if (typeof found?.decide !== "function") throw refuse("has no `decide`");
	if (typeof found.name !== "string" || found.name === "") throw refuse("has no `name`");
	return found as TerminationStrategy;
}
