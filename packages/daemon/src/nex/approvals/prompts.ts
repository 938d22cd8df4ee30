/** The texts, buttons and commands of approvals and questions. Pure. */

import { shownJson, shownText } from "@nexus-stream/protocol";
import type { Approval } from "../../ledger/approvals/port.ts";
import type { AskChoice } from "../port.ts";

/** Identifies the question on the platforms; permanently unique, unlike the short id. */
export const askIdOf = ({ id, runId }: Pick<Approval, "id" | "runId">): string =>
	`${id}-${runId.replace(/[^A-Za-z0-9_-]/g, "").slice(-24)}`;

export const shortIdIn = (askId: string): string => askId.slice(0, 4);

/** Button ids of an approval; those of a question are numbered. */
export const APPROVE = "approve";
export const DENY = "deny";
export const ALWAYS = "always";

export function choicesOf({ id, kind, choices, requester }: Approval): AskChoice[] {
	if (kind === "question")
		return (choices ?? []).map((label, n) => ({
			id: `c${n}`,
			label: shownText(label),
			reply: `answer ${id} ${label}`,
		}));
	const always = { id: ALWAYS, label: "Allow for this session", reply: `approve ${id} always` };
	return [
		{ id: APPROVE, label: "Approve", reply: `approve ${id}` },
		{ id: DENY, label: "Deny", danger: true, reply: `deny ${id}` },
		...(requester?.only ? [always] : []),
	];
}

/** The choice of a question's button. */
export const choiceAt = ({ choices = [] }: Approval, button: string): string | undefined =>
	/^c\d{1,2}$/.test(button) ? choices[Number(button.slice(1))] : undefined;

export function promptOf(row: Approval): string {
	const { id, kind, tool, args, question = "", agent, because, createdAt, expiresAt } = row;
	const minutes = Math.max(1, Math.round((expiresAt - createdAt) / 60_000));
	if (kind === "question") {
		const how = row.choices ? "" : `\n\nReply \`answer ${id}\` and your answer.`;
		return `❓ **${id}** ${shownText(question)}${how}`;
	}
	const who = agent === undefined ? "The agent" : inCode(agent);
	return [
		`🔐 **${id}** ${who} wants to use \`${tool}\` for ${askerOf(row)} with exactly this:`,
		fenced(shownJson(args)),
		...(because === undefined ? [] : [`⚠️ You are asked because ${inCode(because, BECAUSE_CHARS_MAX)}.`]),
		`The call waits for a decision and expires in ${minutes} min.`,
	].join("\n\n");
}

export const waitingText = ({ id, tool }: Approval): string =>
	`⏳ Waiting for the operator to approve \`${tool}\` (${id}). I'll continue as soon as they decide.`;

export function outcomeOf({ id, kind, tool, state, by, reason, text }: Approval): string {
	const who = by === undefined || by === "nexus" ? "" : ` by ${oneLine(by)}`;
	const why = reason === undefined ? "" : `: ${shownText(reason)}`;
	const what = kind === "question" ? "" : ` \`${tool}\``;
	const detail = kind === "question" && text !== undefined ? `: ${shownText(text)}` : why;
	return `${state === "approved" || state === "answered" ? "✅" : "🚫"} **${id}**${what} ${state}${who}${detail}`;
}

function askerOf({ requester }: Approval): string {
	if (!requester) return "a program";
	const { sender, senderName, channel } = requester;
	// With the platform's id, because people choose their names themselves.
	return `${senderName === undefined ? "" : `${inCode(senderName)} `}(${inCode(sender)}) on ${channel}`;
}

const NAME_CHARS_MAX = 100;

const BECAUSE_CHARS_MAX = 500;

const oneLine = (text: string, charsMax = NAME_CHARS_MAX): string =>
	shownText(text).replaceAll("\n", "\\u000a").slice(0, charsMax).toWellFormed();

/** One line of inline code, without markup. */
const inCode = (text: string, charsMax?: number): string => `\`${oneLine(text, charsMax).replaceAll("`", "'")}\``;

/** A fence longer than any run of backticks in the text. */
function fenced(text: string): string {
	const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
	const fence = "`".repeat(longest + 1);
	return `${fence}\n${text}\n${fence}`;
}

/** A decision written in a chat: `approve K7Q2`, `deny K7Q2 because …`, `answer K7Q2 …`. A bare "yes" never decides. */
export interface ChatCommand {
	verb: "approve" | "deny" | "answer";
	id: string;
	/** The text after the id. */
	rest: string;
}

/** The second and fourth characters of an id are digits, so that no ordinary sentence matches. */
const COMMAND = /^\s*(?:<?@\S+>?[,:]?\s+)?\/?(approve|deny|answer)\s+`?([a-z][2-9][a-z][2-9])`?(?:[\s:,]+([\s\S]*))?$/i;

export function chatCommandIn(text: string): ChatCommand | undefined {
	const found = COMMAND.exec(text);
	if (!found) return undefined;
	const [, verb, id, rest = ""] = found;
	return { verb: verb!.toLowerCase() as ChatCommand["verb"], id: id!.toUpperCase(), rest: rest.trim() };
}
