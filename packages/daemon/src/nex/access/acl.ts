/** Who may talk to which agent, on which channel and account. Pure: configuration and facts in, a verdict with its reason out. */

export interface AclConfig {
	/** Ids of senders who may do everything. */
	owner?: readonly string[];
	allow?: readonly AclEntry[];
	/** Stronger than everything else. */
	deny?: readonly AclEntry[];
	/** Which messages of a group are meant for the agent. Default: those that mention it. */
	groups?: "mention" | "always" | "never";
	/** Senders that no list names. Default: `pair` on a platform where anybody can write, else `allow`. */
	unknown?: "pair" | "deny" | "allow";
}

/** An id of a sender, `*` for everybody, or a narrower choice: all that is given has to fit. */
export type AclEntry =
	| string
	| {
			sender?: string;
			chat?: string;
			agent?: string;
			/** In `allow`: the tools that their words may reach; without it none of the owner's (A11). A `*` at the end stands for any rest. */
			tools?: readonly string[];
			/** In `allow`: the tools whose calls they may approve. */
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
	/** Anybody can write on this platform. */
	public: boolean;
	/** A person who runs the daemon has let the sender in. */
	paired: boolean;
}

export type AclVerdict =
	| { verdict: "allow"; owner: boolean }
	/** `unaddressed`: it was never meant for us, so its text is nobody's business. */
	| { verdict: "deny"; because: string; unaddressed?: true }
	/** Unknown, and may ask to be let in. */
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
			// A code in a group would be everybody's.
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

/** What holds for an account: its own words before the channel's, the lists together. */
export function aclOf(channel: AclConfig = {}, account: AclConfig = {}): AclConfig {
	return {
		...channel,
		...account,
		owner: [...(channel.owner ?? []), ...(account.owner ?? [])],
		allow: [...(channel.allow ?? []), ...(account.allow ?? [])],
		deny: [...(channel.deny ?? []), ...(account.deny ?? [])],
	};
}
