/** What a person wrote, from a mail. */

import type { Address, Email, Mailbox } from "postal-mime";
import { own } from "../../std/own.ts";
import type { InboundMessage, RemoteFile, Target } from "../kit/kit.ts";

export interface MailFile extends RemoteFile {
	data: Buffer;
}

export interface Inbound {
	message: InboundMessage;
	files: MailFile[];
}

/** What Gmail says of a mail beside the mail itself. */
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

/** Undefined: nothing a person said to the agent (our own, lists, programs). */
export function readMail(mail: Email, stored: Stored, me: string): Inbound | undefined {
	const from = mailboxes(mail.from)[0];
	if (!from || isSame(from.address, me) || stored.labelIds.some((label) => UNWANTED.has(label))) return undefined;
	if (isAutomatic(mail) || ROBOTS.test(from.address)) return undefined;
	const files = filesOf(mail);
	const subject = mail.subject?.trim() ?? "";
	const said = withoutQuote(mail.text ?? textOf(mail.html ?? ""));
	// What a thread is about stands only in its first mail.
	const text = mail.inReplyTo ? said : [subject, said].filter((each) => each !== "").join("\n\n");
	if (text === "" && files.length === 0) return undefined;
	const addressees = mailboxes(mail.to);
	const others = [...addressees, ...mailboxes(mail.cc)].filter(
		({ address }) => !isSame(address, me) && !isSame(address, from.address),
	);
	const group = others.length > 0;
	return {
		files,
		message: {
			eventId: stored.id,
			from: { id: from.address.toLowerCase(), ...(from.name ? { name: from.name } : {}) },
			chat: { id: stored.threadId, type: group ? "group" : "direct", ...(subject ? { name: subject } : {}) },
			text,
			// Who only gets a copy is not spoken to.
			...(group ? { mention: addressees.some(({ address }) => isSame(address, me)) } : {}),
			target: targetOf(mail, stored, from, others),
			ts: stored.receivedAt,
		},
	};
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

/** Takes the history off the end: the line that introduces it and quoted lines to the last one. What is between quotes stays. */
export function withoutQuote(text: string): string {
	const lines = text.replace(/\r\n?/g, "\n").trimEnd().split("\n");
	let end = lines.length;
	while (end > 0 && /^(?:>.*|\s*)$/.test(lines[end - 1] ?? "")) end--;
	const quoted = lines.slice(end).some((line) => line.startsWith(">"));
	if (!quoted) return text.trim();
	// "On …, … wrote:" may be broken into up to three lines.
	for (let size = 1; size <= 3 && size <= end; size++) {
		const intro = lines.slice(end - size, end).join(" ");
		if (/^.{0,40}\d.*[::]$/.test(intro.trim()) && intro.length < 300) {
			return lines
				.slice(0, end - size)
				.join("\n")
				.trim();
		}
	}
	return lines.slice(0, end).join("\n").trim();
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', nbsp: " ", "#39": "'" };

/** For mails without a text part. */
function textOf(html: string): string {
	return html
		.replace(/<(style|script|head)\b[\s\S]*?<\/\1>/gi, "")
		.replace(/<blockquote\b[\s\S]*$/i, "")
		.replace(/<br\b[^>]*>|<\/(?:p|div|li|tr|h\d)>/gi, "\n")
		.replace(/<[^>]*>/g, "")
		.replace(/&(\w+|#39);/g, (entity, name: string) => own(ENTITIES, name) ?? entity)
		.replace(/\n{3,}/g, "\n\n")
		.trim();
}

const filesOf = ({ attachments }: Email): MailFile[] =>
	attachments.map(({ filename, mimeType, content }, index) => {
		const data = typeof content === "string" ? Buffer.from(content) : Buffer.from(content as Uint8Array<ArrayBuffer>);
		return { name: filename ?? `attachment${index + 1}`, contentType: mimeType, bytes: data.length, data };
	});
