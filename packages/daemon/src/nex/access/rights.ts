/** What somebody who is let in may do: which tools and agents their words reach, and what they may approve. Pure. */

import { commonGlobs, fitsSome } from "../../std/globs.ts";
import { type AclConfig, type AclQuestion, decide, fits } from "./acl.ts";

/** Of a message's sender. JSON: it is on record with the message. */
export type Rights = {
	owner: boolean;
	/** Left out = all but the denied. A `*` at the end stands for any rest. */
	tools?: string[];
	denied?: string[];
	/** Left out = all. */
	agents?: string[];
};

/** What nobody but an owner reaches, unless the access rules say so. */
const OWNERS_TOOLS: readonly string[] = ["bash", "write", "edit", "mcp__*"];

export const OWNER_RIGHTS: Rights = { owner: true };
export const GUEST_RIGHTS: Rights = { owner: false, denied: [...OWNERS_TOOLS] };

/** `agents`: all that are configured; without any, rules about agents mean the one of the channel. */
export function rightsOf(acl: AclConfig, ask: AclQuestion, agents: readonly string[]): Rights {
	const isLetIn = (agent: string) => decide(acl, { ...ask, agent }).verdict === "allow";
	const reached = agents.filter(isLetIn);
	const limited = reached.length < agents.length ? { agents: reached } : {};
	if (isOwner(acl, ask)) return { ...OWNER_RIGHTS, ...limited };
	const lists = (acl.allow ?? []).flatMap((entry) =>
		typeof entry === "object" && entry.tools && fits(entry, ask) ? [entry.tools] : [],
	);
	return lists.length === 0
		? { ...GUEST_RIGHTS, ...limited }
		: { owner: false, tools: [...new Set(lists.flat())], ...limited };
}

/** Text of a stranger never runs with an owner's rights: what all of them may do (A10). */
export function commonRights(all: readonly Rights[]): Rights {
	return all.reduce((one, other) => ({
		owner: one.owner && other.owner,
		...both("tools", one.tools, other.tools, commonGlobs),
		...both("denied", one.denied, other.denied, (some, others) => [...new Set([...some, ...others])]),
		...both("agents", one.agents, other.agents, (some, others) => some.filter((name) => others.includes(name))),
	}));
}

function both<Key extends string>(
	key: Key,
	one: string[] | undefined,
	other: string[] | undefined,
	join: (some: string[], others: string[]) => string[],
): { [key in Key]?: string[] } {
	const value = one && other ? join(one, other) : (one ?? other);
	return value === undefined ? {} : ({ [key]: value } as { [key in Key]: string[] });
}

/** Whether somebody whose words go into a run that has begun would have fewer rights than it. */
export function narrows(run: Rights, other: Rights): boolean {
	return JSON.stringify(commonRights([run, other])) !== JSON.stringify(commonRights([run, run]));
}

const isOwner = (acl: AclConfig, ask: AclQuestion): boolean => {
	const verdict = decide(acl, ask);
	return verdict.verdict === "allow" && verdict.owner;
};

/** An owner approves everything, others what an entry of `allow` that fits them names; nobody who is not let in. */
export function mayApprove(acl: AclConfig, ask: AclQuestion, tool: string): boolean {
	const verdict = decide(acl, ask);
	if (verdict.verdict !== "allow") return false;
	if (verdict.owner) return true;
	return (acl.allow ?? []).some(
		(entry) => typeof entry === "object" && fits(entry, ask) && fitsSome(tool, entry.approve ?? []),
	);
}

/** Whether an entry names this very chat as one where such a tool is approved: somebody there may. */
export const isApprovedIn = (acl: AclConfig, chat: string, tool: string): boolean =>
	(acl.allow ?? []).some(
		(entry) => typeof entry === "object" && entry.chat === chat && fitsSome(tool, entry.approve ?? []),
	);
