/** The rights of an admitted sender: tools, agents and approvals. Pure. */

import { commonGlobs, fitsSome } from "../../std/globs.ts";
import { type AclConfig, type AclQuestion, decide, fits } from "./acl.ts";

/** The rights of a message's sender. JSON, because they are recorded with the message. */
export type Rights = {
	owner: boolean;
	/** Undefined = all except `denied`. A trailing `*` matches any rest. */
	tools?: string[];
	denied?: string[];
	/** Undefined = all. */
	agents?: string[];
};

/** Tools that only an owner may use, unless the access rules allow them. */
const OWNERS_TOOLS: readonly string[] = ["bash", "write", "edit", "mcp__*"];

export const OWNER_RIGHTS: Rights = { owner: true };
export const GUEST_RIGHTS: Rights = { owner: false, denied: [...OWNERS_TOOLS] };

/** `agents`: all configured agents; when empty, rules about agents apply to the channel's agent. */
export function rightsOf(acl: AclConfig, ask: AclQuestion, agents: readonly string[]): Rights {
	const isAllowed = (agent: string) => decide(acl, { ...ask, agent }).verdict === "allow";
	const reached = agents.filter(isAllowed);
	const limited = reached.length < agents.length ? { agents: reached } : {};
	if (isOwner(acl, ask)) return { ...OWNER_RIGHTS, ...limited };
	const lists = (acl.allow ?? []).flatMap((entry) =>
		typeof entry === "object" && entry.tools && fits(entry, ask) ? [entry.tools] : [],
	);
	return lists.length === 0
		? { ...GUEST_RIGHTS, ...limited }
		: { owner: false, tools: [...new Set(lists.flat())], ...limited };
}

/** The rights that all of them have: text of a guest never runs with an owner's rights (A10). */
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

/** Whether the other sender has fewer rights than the run. */
export function narrows(run: Rights, other: Rights): boolean {
	return JSON.stringify(commonRights([run, other])) !== JSON.stringify(commonRights([run, run]));
}

const isOwner = (acl: AclConfig, ask: AclQuestion): boolean => {
	const verdict = decide(acl, ask);
	return verdict.verdict === "allow" && verdict.owner;
};

/** An owner may approve everything, other admitted senders the tools that a matching entry of `allow` lists. */
export function mayApprove(acl: AclConfig, ask: AclQuestion, tool: string): boolean {
	const verdict = decide(acl, ask);
	if (verdict.verdict !== "allow") return false;
	if (verdict.owner) return true;
	return (acl.allow ?? []).some(
		(entry) => typeof entry === "object" && fits(entry, ask) && fitsSome(tool, entry.approve ?? []),
	);
}

/** Whether an entry of `allow` lets a member of this chat approve the tool. */
export const isApprovedIn = (acl: AclConfig, chat: string, tool: string): boolean =>
	(acl.allow ?? []).some(
		(entry) => typeof entry === "object" && entry.chat === chat && fitsSome(tool, entry.approve ?? []),
	);
