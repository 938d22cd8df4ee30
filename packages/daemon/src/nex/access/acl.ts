/** Access rules: which senders may write to which agent, by channel and account, and the rights of those who may. Pure. */

import { defined } from "../../std/defined.ts";
import { commonGlobs, fitsSome } from "../../std/globs.ts";

export interface AclConfig {
	/** Ids of senders with all rights. */
	owner?: readonly string[];
	allow?: readonly AclEntry[];
	/** Overrides all other rules. */
	deny?: readonly AclEntry[];
	/** Group messages that the agent answers. Default: those that mention it. */
	groups?: "mention" | "always" | "never";
	/** Senders that are on no list. Default: `pair` on a platform where anyone can write, otherwise `allow`. */
	unknown?: "pair" | "deny" | "allow";
}

/** The id of a sender, `*` for all senders, or conditions that must all match. */
export type AclEntry =
	| string
	| {
			sender?: string;
			chat?: string;
			agent?: string;
			/** In `allow`: the tools that the sender may use; without it, none of the owner's tools (A11). A trailing `*` matches any rest. */
			tools?: readonly string[];
			/** In `allow`: the tools whose calls the sender may approve. */
			approve?: readonly string[];
	  };

export interface AclQuestion {
	channel: string;
	account: string;
	agent: string;
	/** The platform's id of the sender. */
	sender: string;
	chat: { id: string; type: "direct" | "group" };
	mention: boolean;
	/** Anyone can write on this platform. */
	public: boolean;
	/** The operator has approved the sender. */
	paired: boolean;
}

export type AclVerdict =
	| { verdict: "allow"; owner: boolean }
	/** `unaddressed`: the message was not meant for the agent, so its text is not stored. */
	| { verdict: "deny"; because: string; unaddressed?: true }
	/** The sender is unknown and may request access. */
	| { verdict: "pair" };

export function decide(acl: AclConfig, ask: AclQuestion): AclVerdict {
	const { sender, chat, channel } = ask;
	if (acl.deny?.some((entry) => fits(entry, ask))) return deny(`${sender} is denied on ${channel}`);
	const owner = acl.owner?.includes(sender) ?? false;
	if (chat.type === "group") {
		const groups = acl.groups ?? "mention";
		if (groups === "never") return deny(`groups are switched off on ${channel}`);
		if (groups === "mention" && !ask.mention)
			return { verdict: "deny", because: "a group message that does not mention the agent", unaddressed: true };
	}
	if (owner) return { verdict: "allow", owner };
	if (ask.paired || acl.allow?.some((entry) => fits(entry, ask))) return { verdict: "allow", owner: false };
	return stranger(acl.unknown ?? (ask.public ? "pair" : "allow"), ask);
}

function stranger(unknown: NonNullable<AclConfig["unknown"]>, { sender, chat, channel }: AclQuestion): AclVerdict {
	switch (unknown) {
		case "allow":
			return { verdict: "allow", owner: false };
		case "deny":
			return deny(`${sender} is not allowed on ${channel}`);
		case "pair":
			// Every member of a group could read the code.
			return chat.type === "direct" ? { verdict: "pair" } : deny(`${sender} is not allowed on ${channel}`);
		default:
			return unknown satisfies never;
	}
}

export function fits(entry: AclEntry, ask: AclQuestion): boolean {
	if (typeof entry === "string") return entry === "*" || entry === ask.sender;
	const given = (wanted: string | undefined, is: string) => wanted === undefined || wanted === "*" || wanted === is;
	return given(entry.sender, ask.sender) && given(entry.chat, ask.chat.id) && given(entry.agent, ask.agent);
}

const deny = (because: string): AclVerdict => ({ verdict: "deny", because });

/** The rules of an account: its settings override the channel's, and the lists are joined. */
export function aclOf(channel: AclConfig = {}, account: AclConfig = {}): AclConfig {
	return {
		...channel,
		...account,
		owner: [...(channel.owner ?? []), ...(account.owner ?? [])],
		allow: [...(channel.allow ?? []), ...(account.allow ?? [])],
		deny: [...(channel.deny ?? []), ...(account.deny ?? [])],
	};
}

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
	const verdict = decide(acl, ask);
	if (verdict.verdict === "allow" && verdict.owner) return { ...OWNER_RIGHTS, ...limited };
	const lists = (acl.allow ?? []).flatMap((entry) =>
		typeof entry === "object" && entry.tools && fits(entry, ask) ? [entry.tools] : [],
	);
	return lists.length === 0
		? { ...GUEST_RIGHTS, ...limited }
		: { owner: false, tools: [...new Set(lists.flat())], ...limited };
}

/** The rights that all of them have: text of a guest never runs with an owner's rights (A10). */
export function commonRights(all: readonly Rights[]): Rights {
	type Join = (some: string[], others: string[]) => string[];
	const both = (join: Join, one?: string[], other?: string[]) => (one && other ? join(one, other) : (one ?? other));
	const either: Join = (some, others) => [...new Set([...some, ...others])];
	const shared: Join = (some, others) => some.filter((name) => others.includes(name));
	return all.reduce((one, other) =>
		defined({
			owner: one.owner && other.owner,
			tools: both(commonGlobs, one.tools, other.tools),
			denied: both(either, one.denied, other.denied),
			agents: both(shared, one.agents, other.agents),
		}),
	);
}

/** Whether the other sender has fewer rights than the run. */
export function narrows(run: Rights, other: Rights): boolean {
	return JSON.stringify(commonRights([run, other])) !== JSON.stringify(commonRights([run, run]));
}

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
