/** Which agent events a reader wants. */

import type { AgentEvent } from "./events.ts";

export interface AgentEventFilter {
	session?: string;
	agent?: string;
}

/** Undefined: all of them. */
export function agentMatcher({ session, agent }: AgentEventFilter): ((event: AgentEvent) => boolean) | undefined {
	if (session === undefined && agent === undefined) return undefined;
	return (event) =>
		(session === undefined || event.session === session) && (agent === undefined || event.agent === agent);
}
