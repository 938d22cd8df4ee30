/** Where people are asked, and in which words. */

import { shownJson, shownText } from "@nexus-stream/protocol";
import type { Approval } from "../../ledger/ledger.ts";
import type { AskChoice } from "../port.ts";

/** Unique for good, unlike the short id: names the question on the platforms. */
export const askIdOf = ({ id, runId }: Pick<Approval, "id" | "runId">): string =>
	`${id}-${runId.replace(/[^A-Za-z0-9_-]/g, "").slice(-24)}`;

export const shortIdIn = (askId: string): string => askId.slice(0, 4);

/** As button ids; those of a question count its choices. */
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

/** The choice that a button of a question stands for. */
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
		`Nothing happens until somebody decides; it expires in ${minutes} min.`,
	].join("\n\n");
}

export const waitingText = ({ id, tool }: Approval): string =>
	`⏳ \`${tool}\` needs the operator's approval (${id}). I go on as soon as it is decided.`;

export function outcomeOf({ id, kind, tool, state, by, reason, text }: Approval): string {
	const who = by === undefined || by === "nexus" ? "" : ` by ${oneLine(by)}`;
	const why = reason === undefined ? "" : `: ${shownText(reason)}`;
	const what = kind === "question" ? "" : ` \`${tool}\``;
	const said = kind === "question" && text !== undefined ? `: ${shownText(text)}` : why;
	return `${state === "approved" || state === "answered" ? "✅" : "🚫"} **${id}**${what} ${state}${who}${said}`;
}

function askerOf({ requester }: Approval): string {
	if (!requester) return "a program";
	const { sender, senderName, channel } = requester;
	// People choose their names themselves: the id is the platform's.
	return `${senderName === undefined ? "" : `${inCode(senderName)} `}(${inCode(sender)}) on ${channel}`;
}

const NAME_CHARS_MAX = 100;

const BECAUSE_CHARS_MAX = 500;

const oneLine = (text: string, charsMax = NAME_CHARS_MAX): string =>
	shownText(text).replaceAll("\n", "\\u000a").slice(0, charsMax).toWellFormed();

/** On one line, and nothing in it is markup. */
const inCode = (text: string, charsMax?: number): string => `\`${oneLine(text, charsMax).replaceAll("`", "'")}\``;

/** A fence that nothing in the text can close. */
function fenced(text: string): string {
	const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
	const fence = "`".repeat(longest + 1);
	return `${fence}\n${text}\n${fence}`;
}
