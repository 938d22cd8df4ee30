/** How people are asked: where, for how long, and about which tools. */

import type { ApprovalPolicy } from "../../engine/engine.ts";

export interface ApprovalsConfig {
	/** Where the operator is asked when nobody in the asker's chat may decide. */
	to?: ApprovalsTarget;
	/** By tool, for all agents that do not say otherwise; a `*` at the end stands for any rest. */
	policy?: Readonly<Record<string, ApprovalPolicy>>;
	/** By tool: beginnings of commands that "allow for this session" allows as a whole. */
	prefixes?: Readonly<Record<string, readonly string[]>>;
}

export interface ApprovalsTarget {
	channel: string;
	account: string;
	/** The chat's id on the platform. */
	to: string;
	thread?: string;
}
