/** `channels`, `sessions` and `plugins` of `nexus.yaml`: chat platforms, who may write there, and how answers go out. */

import { z } from "zod";
import type { ApprovalLimits } from "../../broker/broker.ts";
import type { ChannelConfig, InboundConfig } from "../../nex/nex.ts";
import { byName, byTool, count, group, ms, oneOf, say, text, toolGlob } from "../../std/config-words.ts";

/** A schema for each setting of a part of the configuration. */
type SchemaOf<T> = Record<keyof NonNullable<T>, z.ZodType>;
type InboundChannel = NonNullable<InboundConfig["channels"]>[string];

const yesNo = say(z.boolean(), "true or false");

/** Long numbers would lose digits on the way: those are written in quotes. */
const id = z.union([z.string().min(1), z.int().transform(String)]);
const ids = say(z.array(id), "a list of the platform's ids of people, the long ones in quotes");
const whom = { sender: id.exactOptional(), chat: id.exactOptional(), agent: z.string().exactOptional() };
const globs = z.array(toolGlob).exactOptional();
const allowed = say(
	z.array(z.union([id, z.strictObject({ ...whom, tools: globs, approve: globs })])),
	'a list of ids of people, "*" for everybody, or maps with sender, chat, agent, tools, approve; a tool\'s name may end in *',
);
/** A denied sender starts no run, so a rule for tools would have no effect. */
const denied = say(
	z.array(z.union([id, z.strictObject(whom)])),
	'a list of ids of people, "*" for everybody, or maps with sender, chat, agent; what people may do with tools stands in `allow`',
);

const acl = group({
	owner: ids,
	allow: allowed,
	deny: denied,
	groups: oneOf(["mention", "always", "never"]),
	unknown: oneOf(["pair", "deny", "allow"]),
} satisfies SchemaOf<InboundChannel["acl"]>);

const queue = group({
	mode: oneOf(["interrupt", "steer", "followup", "collect", "reject", "inject"]),
	fallback: oneOf(["interrupt", "steer", "followup", "collect", "reject"]),
	rollback: yesNo,
	collectMs: ms,
	messagesMax: count,
	atCap: oneOf(["drop_oldest", "drop_newest", "summarise"]),
} satisfies SchemaOf<InboundChannel["queue"]>);

const session = text("chat, sender, or the label of one session for all");
const agent = text("a name that `acl` uses");
const chars = say(z.int().positive(), "a whole number of characters above 0");
const wait = z.int().min(0);

const blocks = group({
	minChars: chars,
	maxChars: chars,
	idleMs: ms,
	humanDelayMs: say(
		z.union([z.null(), z.strictObject({ min: wait, max: wait })]),
		"{ min, max } in milliseconds, or null for none",
	),
} satisfies SchemaOf<ChannelConfig["blocks"]>);

const streaming = group({
	enabled: yesNo,
	mode: oneOf(["draft_edit", "accumulate", "blocks", "off"]),
	reasoning: yesNo,
	tools: yesNo,
	parts: yesNo,
	placeholder: say(z.string(), "a text; empty = nothing"),
} satisfies SchemaOf<ChannelConfig["streaming"]>);

const account = group({
	settings: say(
		z.record(
			z.string(),
			z.union([z.string(), z.number(), z.boolean()]).transform((value) => String(value)),
		),
		"a map from settings of the adapter to texts; secrets belong to `nexus adapter add`",
	),
	acl,
	queue,
	session,
	agent,
	streaming,
});

const channel = {
	command: say(z.array(z.string().min(1)).min(1), "a list: a program and its arguments, without the verb"),
	env: say(z.record(z.string(), z.string()), "a map from names of environment variables to texts"),
	accounts: byName(account, "a map from names of your choice to accounts"),
	acl,
	queue,
	session,
	agent,
	busyText: say(z.string(), "a text; empty = nothing"),
	streaming,
	blocks,
	typing: group({ enabled: yesNo, intervalMs: ms }),
	errorText: say(z.string(), "a text; empty = nothing"),
} satisfies SchemaOf<ChannelConfig> & SchemaOf<InboundChannel>;

export const channels = byName(group(channel), "a map from names of channels to their configuration");
/** How people are asked; the limits are the Broker's. */
export const approvals = group({
	waitMs: ms,
	argsCharsMax: count,
	pendingMax: count,
	to: say(
		z.strictObject({ channel: z.string().min(1), account: z.string().min(1), to: id, thread: id.exactOptional() }),
		"{ channel, account, to, thread? }: a chat",
	),
	policy: byTool(oneOf(["never", "non-owner", "always"]), "a map from tools to never, non-owner or always"),
	outside: say(
		z.array(toolGlob),
		"a list of tools whose results are text from outside; `mcp__*` and `bash` by default",
	),
	prefixes: byName(
		say(z.array(z.string().min(1)), "a list of beginnings of commands"),
		"a map from tools to beginnings of commands",
	),
} satisfies SchemaOf<InboundConfig["approvals"]> & SchemaOf<ApprovalLimits>);

export const sessions = byName(
	group({ queue, trustHistory: yesNo } satisfies SchemaOf<NonNullable<InboundConfig["sessions"]>[string]>),
	"a map from labels of sessions to their configuration",
);
export const plugins = say(z.array(z.string().min(1)), "a list of modules; relative to this file");
