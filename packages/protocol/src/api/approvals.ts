/** The JSON of the HTTP API about approvals and questions. */

import type { ToolApprovalState } from "../frames/stream-event.ts";

export interface ApprovalJson {
	/** Short enough to be typed; one pending question has it at a time. */
	id: string;
	kind: "approval" | "question";
	run_id: string;
	session: string;
	call_id: string;
	tool: string;
	agent?: string;
	/** Whole. */
	args: unknown;
	/** The same for people: one line, what could deceive a reader is escaped. Of a question, the question. */
	text: string;
	/** Why a person is asked whatever the policy says; one line. */
	because?: string;
	choices?: string[];
	/** The author of the message that the run answers. */
	asked_for?: { channel: string; account: string; sender: string; sender_name?: string };
	state: ToolApprovalState;
	created_at: number;
	expires_at: number;
	decided_at?: number;
	/** The name of the person who decided, as shown to people. */
	by?: string;
	reason?: string;
	answer?: string;
}

export interface ApprovalListJson {
	/** Newest first. */
	approvals: ApprovalJson[];
}

export interface ApprovalRequest {
	decision: "approve" | "deny";
	reason?: string;
	/** Allows the same for the rest of the session. */
	remember?: boolean;
}

export interface AnswerRequest {
	answer: string;
}

/** A permission that holds for a session. */
export interface GrantJson {
	id: string;
	session: string;
	channel: string;
	account: string;
	sender: string;
	agent?: string;
	tool: string;
	/** Commands that begin so; left out = exactly the approved arguments. */
	prefix?: string;
	by: string;
	created_at: number;
}

export interface GrantListJson {
	grants: GrantJson[];
}

export interface GrantRevokedJson {
	revoked: true;
}
