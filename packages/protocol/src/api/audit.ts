/** The audit log and the events of agents, as the HTTP API tells them. */

import type { Reason } from "../reason.ts";

export interface AuditEventJson {
	sequence: number;
	/** RFC 3339, UTC. */
	timestamp: string;
	domain: string;
	operation: string;
	app_id?: string;
	subject_user_id?: string;
	reason_code?: Reason;
	trace_id?: string;
	caller?: string;
	/** Ids and numbers: never the text of a message, an argument or a secret. */
	payload?: Readonly<Record<string, string | number | boolean>>;
}

export interface AuditListJson {
	/** Newest first. */
	events: AuditEventJson[];
	/** What to give as `before` for older ones; absent: there are none. */
	next_before?: number;
}

/** One event of `GET /v1/agents/stream`; its sequence is the id of the server-sent event. */
export interface AgentEventJson {
	event_type: "started" | "message" | "tool" | "approval" | "settled";
	/** In milliseconds since the epoch. */
	at: number;
	session: string;
	run_id?: string;
	agent?: string;
	/** Of a message: its event's id. Of a tool: its call's id. Of an approval: its id; absent: all that are open. */
	id?: string;
	tool?: string;
	/** Such as `started`, `completed`, `pending` or `failed`. */
	state?: string;
	reason_code?: Reason;
}
