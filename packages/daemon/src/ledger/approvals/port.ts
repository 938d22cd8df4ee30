/** Approvals and questions: what a run waits for a person to decide, and what was decided. */

import { type Reading, writesOf } from "../../std/write.ts";

export type ApprovalState = "pending" | "approved" | "denied" | "answered" | "expired" | "withdrawn";

/** The author of the message that the run answers, and the chat it was written in. */
export interface Requester {
	channel: string;
	account: string;
	/** The platform's id of the sender. */
	sender: string;
	senderName?: string;
	/** The run answers no other author. */
	only: boolean;
	chat: { id: string; type: "direct" | "group" };
	/** Where answers in this chat go; left out when clients pull them. */
	target?: Record<string, unknown>;
}

export interface Approval {
	/** Short enough to be typed. One pending row has it at a time. */
	id: string;
	runId: string;
	session: string;
	callId: string;
	tool: string;
	agent?: string;
	kind: "approval" | "question";
	/** Whole: what is approved is what is run. */
	args: unknown;
	/** Hash of the tool's name and its arguments. */
	digest: string;
	question?: string;
	choices?: readonly string[];
	requester?: Requester;
	/** Why a person is asked whatever the policy says; one line. */
	because?: string;
	state: ApprovalState;
	createdAt: number;
	/** No answer is accepted from this time on. */
	expiresAt: number;
	decidedAt?: number;
	/** The person who decided, as shown to readers. */
	by?: string;
	reason?: string;
	/** The text of the answer. */
	text?: string;
}

/** Which question, as it was opened. */
export type OpenQuestion = Pick<Approval, "id" | "runId" | "session" | "tool" | "agent">;

/** The decision, or the timeout or withdrawal, that ends the wait. */
export type Decided = Pick<Approval, "by" | "reason" | "text"> & {
	state: Exclude<ApprovalState, "pending">;
	at: number;
};

export interface ApprovalQuery {
	state?: ApprovalState;
	runId?: string;
	session?: string;
	limit?: number;
}

export interface StoredApprovals {
	/** The pending row of this id, or the newest one that had it. */
	find(id: string): Reading<Approval | undefined>;
	get(runId: string, id: string): Reading<Approval | undefined>;
	/** All that wait for a decision, oldest first. */
	pending(): Reading<Approval[]>;
	/** Newest first. */
	list(query?: ApprovalQuery): Reading<Approval[]>;
	/** Whether any were decided before a time. */
	isOlder(before: number): Reading<boolean>;
}

export interface ApprovalOps {
	/** An id that another pending row has is a conflict. */
	open(approval: Approval): void;
	/** Decides a pending row: the first answer wins. A later answer, or one after `expiresAt`, is a conflict. */
	decide(question: OpenQuestion, decided: Decided): void;
	/** Withdraws the run's pending questions; a run without any does not cause a conflict. */
	withdrawRun(runId: string, decided: Decided): void;
	/** Withdraws what the session's earlier runs still ask. */
	withdrawSession(session: string, decided: Decided): void;
	/** Forgets some that were decided before a time, at most so many. */
	forget(before: number, rowsMax: number): void;
}

export const approvalWrites = writesOf<ApprovalOps>("approvals", [
	"open",
	"decide",
	"withdrawRun",
	"withdrawSession",
	"forget",
]);
