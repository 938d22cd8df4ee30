/** What an agent is told beside the session: its own prompt, the phase, and how it has to end. */

import { TERMINAL } from "./termination.ts";

export interface PhaseChange {
	from: string;
	because: string;
	at: number;
}

export interface PromptFacts {
	prompt: string;
	phase: string;
	/** Must end with a terminal tool. */
	enforced: boolean;
	orchestrator: boolean;
	/** The last change of phase. */
	transition?: PhaseChange | undefined;
	/** How long a change of phase counts as recent. */
	recentTransitionMs: number;
	now: number;
}

export function systemPrompt(facts: PromptFacts): string {
	const { prompt, phase, enforced, orchestrator, transition, recentTransitionMs, now } = facts;
	const parts = [prompt];
	if (transition && now - transition.at < recentTransitionMs) {
		const how = transition.from === phase ? `been set to ${phase}` : `changed from ${transition.from} to ${phase}`;
		parts.push(`The phase has just ${how} because: ${transition.because}`);
	}
	if (enforced && !orchestrator)
		parts.push(`The phase is ${phase}. When your work is done, and only then, call the tool \`${TERMINAL.complete}\`.`);
	if (orchestrator)
		parts.push(
			`The phase is ${phase}. You decide who works next: end with the tool \`${TERMINAL.route}\` or \`${TERMINAL.end}\`.`,
		);
	return parts.filter((part) => part !== "").join("\n\n");
}
