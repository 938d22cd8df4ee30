/** Reads a person's message from a mail. */

import type { Target } from "@nexus-stream/adapter";
import type { MessageWithFiles, RemoteFile } from "@nexus-stream/adapter/platform/network";
import type { Address, Email, Mailbox } from "postal-mime";
import { heard } from "../heard.ts";
import { textOf, withoutQuote } from "./text.ts";

export interface MailFile extends RemoteFile {
	data: Buffer;
}

/** Gmail's own facts about a mail. */
export interface Stored {
	id: string;
	threadId: string;
	labelIds: readonly string[];
	/** Milliseconds since the epoch. */
	receivedAt: number;
}

export const NONCE_HEADER = "X-Nexus-Nonce";

const UNWANTED: ReadonlySet<string> = new Set(["SENT", "DRAFT", "SPAM", "TRASH"]);
/** Programs that answer programs never stop. */
const ROBOTS = /^(?:mailer-daemon|postmaster|no-?reply|do-?not-?reply)(?:[+@]|$)/i;

/** `skipped`: why a mail is nothing that a person said to the agent. */
export function readMail(mail: Email, stored: Stored, me: string): MessageWithFiles<MailFile> | { skipped: string } {
	const from = mailboxes(mail.from)[0];
	const unwanted = stored.labelIds.find((label) => UNWANTED.has(label));
	if (!from) return { skipped: "it names no sender" };
	if (isSame(from.address, me)) return { skipped: "it is our own" };
	if (unwanted !== undefined) return { skipped: `it is labelled ${unwanted}` };
	if (isAutomatic(mail) || ROBOTS.test(from.address)) return { skipped: "a program or a list sent it" };
	const subject = mail.subject?.trim() ?? "";
	const written = mail.text?.trim() ? mail.text : textOf(mail.html ?? "");
	const said = withoutQuote(written, { isReply: Boolean(mail.inReplyTo), me });
	// Only the first mail of a thread has its subject.
	const text = mail.inReplyTo ? said : [subject, said].filter((each) => each !== "").join("\n\n");
	const addressees = mailboxes(mail.to);
	const others = [...addressees, ...mailboxes(mail.cc)].filter(
		({ address }) => !isSame(address, me) && !isSame(address, from.address),
	);
	const group = others.length > 0;
	const message = heard([text], filesOf(mail), {
		eventId: stored.id,
		from: { id: from.address.toLowerCase(), name: from.name || undefined },
		chat: { id: stored.threadId, type: group ? "group" : "direct", name: subject || undefined },
		// A mail that only copies us does not address us.
		mention: group ? addressees.some(({ address }) => isSame(address, me)) : undefined,
		target: targetOf(mail, stored, from, others),
		ts: stored.receivedAt,
	});
	return message ?? { skipped: "it is empty" };
}

function targetOf(mail: Email, { threadId }: Stored, from: Mailbox, others: readonly Mailbox[]): Target {
	const answerTo = mailboxes(mail.replyTo)[0] ?? from;
	const references = [mail.references, mail.messageId].filter(Boolean).join(" ");
	return {
		to: answerTo.address,
		thread_id: threadId,
		direct: others.length === 0,
		subject: mail.subject ?? "",
		...(mail.messageId ? { reply_to: mail.messageId, references } : {}),
		...(others.length > 0 ? { cc: others.map(({ address }) => address).join(", ") } : {}),
	};
}

const mailboxes = (given: Address | readonly Address[] | undefined): Mailbox[] =>
	[given ?? []].flat().flatMap((each) => (each.group ? each.group : [each as Mailbox]));

const isSame = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

function isAutomatic({ headers }: Email): boolean {
	const value = (name: string) => headers.find(({ key }) => key === name.toLowerCase())?.value.toLowerCase();
	if (value(NONCE_HEADER) !== undefined || value("List-Id") !== undefined) return true;
	if ((value("Auto-Submitted") ?? "no") !== "no") return true;
	return /^(?:bulk|junk|list|auto_reply)/.test(value("Precedence") ?? "");
}

const filesOf = ({ attachments }: Email): MailFile[] =>
	attachments.map(({ filename, mimeType, content }, index) => {
		const data = typeof content === "string" ? Buffer.from(content) : Buffer.from(content as Uint8Array<ArrayBuffer>);
		return { name: filename ?? `attachment${index + 1}`, contentType: mimeType, bytes: data.length, data };
	});
