/** What a person is asked about a tool call, and what became of it, in words. Pure. */

import type { RunView, ToolApprovalStatus, ToolView } from "@nexus-stream/protocol";

export interface ShownApproval extends ToolApprovalStatus {
	readonly kind: "approval" | "question";
}

/** Takes the answers. */
export interface ApprovalActions {
	/** False once it was decided: the frames of a run that has ended do not tell. */
	isPending(id: string): boolean;
	/** What became of a question that the frames of its run leave open. */
	decided?(id: string): Pick<ShownApproval, "state" | "by"> | undefined;
	/** Another run goes on where this one was cut off. */
	readonly isContinued?: boolean;
	decide(id: string, decision: "approve" | "deny", remember: boolean): Promise<void>;
	answer(id: string, text: string): Promise<void>;
}

export function approvalOf({ approval, question }: ToolView): ShownApproval | undefined {
	if (approval) return { kind: "approval", ...approval };
	return question && { kind: "question", ...question };
}

/** With what the daemon knows of it where the frames tell nothing. */
export const settledApproval = (approval: ShownApproval, actions: ApprovalActions | undefined): ShownApproval =>
	approval.state === "pending" ? { ...approval, ...actions?.decided?.(approval.id) } : approval;

/** A call that no person has allowed yet, in words that do not sound as if it ran. */
export function wantsWords({ args }: Pick<ToolView, "args">): string {
	const { command } = (typeof args === "object" && args !== null ? args : {}) as { command?: unknown };
	return typeof command === "string" && command !== "" ? `Wants to run: ${command}` : "Wants to run";
}

/** It can still be answered: also after its run was cut off, because the answer then starts the one that goes on. */
export const isOpen = ({ state, expires_at: expiresAt }: ShownApproval, now: number): boolean =>
	state === "pending" && expiresAt > now;

/** What a tool call waits for, as a heading. */
export const approvalTitle = (kind: ShownApproval["kind"], tool: string, agent?: string): string =>
	kind === "approval" ? `Allow ${tool} to run?` : `${agent ?? "The agent"} asks`;

const DECIDED: Readonly<Record<ToolApprovalStatus["state"], string>> = {
	pending: "No longer open",
	approved: "Allowed",
	denied: "Denied",
	answered: "Answered",
	expired: "Nobody answered in time",
	withdrawn: "No longer asked",
};

/** What the daemon calls whoever has its token: on this page, the reader. */
const OWNER = "the owner";

/** Only a person's decision has an author. `later`: another run went on with it. */
export function decidedWords({ state, by }: Pick<ShownApproval, "state" | "by">, later = false): string {
	const isDecided = state === "approved" || state === "denied" || state === "answered";
	if (!isDecided) return DECIDED[state];
	const words = by === undefined ? DECIDED[state] : `${DECIDED[state]} by ${by === OWNER ? "you" : by}`;
	return later ? `${words}; continued below` : words;
}

const MINUTE_MS = 60_000;

/** Seconds only in the last minute: a clock that ticks for ten of them distracts. */
export function timeLeftWords({ expires_at: expiresAt }: ShownApproval, now: number): string {
	const leftMs = Math.max(0, expiresAt - now);
	return leftMs > MINUTE_MS ? `${Math.ceil(leftMs / MINUTE_MS)} min left` : `${Math.ceil(leftMs / 1000)} s left`;
}

/** What a run's calls are waiting for a person to say. */
export const openAsksOf = ({ messages }: RunView): ShownApproval[] =>
	messages
		.flatMap(({ tools }) => tools.flatMap((tool) => approvalOf(tool) ?? []))
		.filter(({ state }) => state === "pending");
