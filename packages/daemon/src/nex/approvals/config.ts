/** The configuration of approvals: the operator's chat and the policy by tool. */

import type { ApprovalPolicy } from "@nexus-stream/protocol/engine";

export interface ApprovalsConfig {
	/** Where the operator is asked when no member of the requester's chat may decide. */
	to?: ApprovalsTarget;
	/** By tool, for all agents without a policy; a trailing `*` matches any rest. */
	policy?: Readonly<Record<string, ApprovalPolicy>>;
	/** Tools whose results are untrusted text; a trailing `*` matches any rest. Default: `mcp__*` and `bash`. */
	outside?: readonly string[];
	/** By tool: command prefixes that "allow for this session" allows with any arguments. */
	prefixes?: Readonly<Record<string, readonly string[]>>;
}

/** `bash` as well, because a command may fetch any text. */
export const OUTSIDE_TOOLS: readonly string[] = ["mcp__*", "bash"];

export interface ApprovalsTarget {
	channel: string;
	account: string;
	/** The chat's id on the platform. */
	to: string;
	thread?: string;
}
