/** How people are asked: where, for how long, and about which tools. */

import type { ApprovalPolicy } from "../../engine/engine.ts";

export interface ApprovalsConfig {
	/** Where the operator is asked when nobody in the asker's chat may decide. */
	to?: ApprovalsTarget;
	/** By tool, for all agents that do not say otherwise; a `*` at the end stands for any rest. */
	policy?: Readonly<Record<string, ApprovalPolicy>>;
	/** Tools whose results are text from outside; a `*` at the end stands for any rest. Default: `mcp__*` and `bash`. */
	outside?: readonly string[];
	/** By tool: beginnings of commands that "allow for this session" allows as a whole. */
	prefixes?: Readonly<Record<string, readonly string[]>>;
}

/** A command may fetch anything, too. */
export const OUTSIDE_TOOLS: readonly string[] = ["mcp__*", "bash"];

export interface ApprovalsTarget {
	channel: string;
	account: string;
	/** The chat's id on the platform. */
	to: string;
	thread?: string;
}
