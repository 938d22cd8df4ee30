/** Approvals and questions of a tool call, and their decisions, in words. */

import type { RunView, ToolApprovalStatus, ToolView } from "@nexus-stream/protocol";

export interface ShownApproval extends ToolApprovalStatus {
	readonly kind: "approval" | "question";
}

/** Takes the answers. */
export interface ApprovalActions {
	/** False once it was decided, which the frames of an ended run do not show. */
	isPending(id: string): boolean;
	/** The decision on a question that is open in the frames of its run. */
	decided?(id: string): Pick<ShownApproval, "state" | "by"> | undefined;
	/** Another run continues this one. */
	readonly isContinued?: boolean;
	decide(id: string, decision: "approve" | "deny", remember: boolean): Promise<void>;
	answer(id: string, text: string): Promise<void>;
}

export function approvalOf({ approval, question }: ToolView): ShownApproval | undefined {
	if (approval) return { kind: "approval", ...approval };
	return question && { kind: "question", ...question };
}

/** Adds the daemon's decision where the frames have none. */
export const settledApproval = (approval: ShownApproval, actions: ApprovalActions | undefined): ShownApproval =>
	approval.state === "pending" ? { ...approval, ...actions?.decided?.(approval.id) } : approval;

/** Describes a call that was not allowed yet, so that it does not read as if it ran. */
export function wantsWords({ args }: Pick<ToolView, "args">): string {
	const { command } = (typeof args === "object" && args !== null ? args : {}) as { command?: unknown };
	return typeof command === "string" && command !== "" ? `Wants to run: ${command}` : "Wants to run";
}

/** Whether it can still be answered. After an interruption the answer starts the run that continues. */
export const isOpen = ({ state, expires_at: expiresAt }: ShownApproval, now: number): boolean =>
	state === "pending" && expiresAt > now;

/** The heading of an approval or question. */
export const approvalTitle = (kind: ShownApproval["kind"], tool: string, agent?: string): string =>
	kind === "approval" ? `Allow ${tool} to run?` : `${agent ?? "The agent"} asks`;

const DECIDED: Readonly<Record<ToolApprovalStatus["state"], string>> = {
	pending: "No longer open",
	approved: "Allowed",
	denied: "Denied",
	answered: "Answered",
	expired: "Not answered in time",
	withdrawn: "No longer asked",
};

/** The daemon's name for the holder of its token, who is the reader of this page. */
const OWNER = "the owner";

/** Only a person's decision has an author. `later`: another run continued with it. */
export function decidedWords({ state, by }: Pick<ShownApproval, "state" | "by">, later = false): string {
	const isDecided = state === "approved" || state === "denied" || state === "answered";
	if (!isDecided) return DECIDED[state];
	const words = by === undefined ? DECIDED[state] : `${DECIDED[state]} by ${by === OWNER ? "you" : by}`;
	return later ? `${words}; continued below` : words;
}

const MINUTE_MS = 60_000;

/** Seconds only in the last minute: a clock that ticks for ten minutes distracts. */
export function timeLeftWords({ expires_at: expiresAt }: ShownApproval, now: number): string {
	const leftMs = Math.max(0, expiresAt - now);
	return leftMs > MINUTE_MS ? `${Math.ceil(leftMs / MINUTE_MS)} min left` : `${Math.ceil(leftMs / 1000)} s left`;
}

/** The open approvals and questions of a run. */
export const openAsksOf = ({ messages }: RunView): ShownApproval[] =>
	messages
		.flatMap(({ tools }) => tools.flatMap((tool) => approvalOf(tool) ?? []))
		.filter(({ state }) => state === "pending");
