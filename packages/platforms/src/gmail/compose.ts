/** A mail, in the form in which Gmail takes it: plain text, which every reader can show, and HTML. */

import type { Target, WireAttachment } from "@nexus-stream/adapter";
import { SYNTAX } from "@nexus-stream/adapter/markdown/markdown";
import { isHostile } from "@nexus-stream/protocol/markdown";
import { micromark } from "micromark";
import { gfmHtml } from "micromark-extension-gfm";
import MailComposer from "nodemailer/lib/mail-composer";
import { NONCE_HEADER } from "./inbound.ts";

export interface OutgoingMail {
	from: { name: string; address: string };
	target: Target;
	text: string;
	nonce: string;
	attachments: readonly WireAttachment[];
}

/** The same for every try of the same mail. */
export const messageIdOf = (nonce: string, address: string): string =>
	`<nexus.${nonce}@${address.split("@").at(-1) ?? "localhost"}>`;

/** Base64url of the whole mail. */
export async function compose({ from, target, text, nonce, attachments }: OutgoingMail): Promise<string> {
	const field = (name: string): string => (typeof target[name] === "string" ? target[name] : "");
	const [subject, cc, references] = [field("subject"), field("cc"), field("references") || field("reply_to")];
	const composer = new MailComposer({
		from,
		to: target.to,
		cc: cc || undefined,
		subject: subjectOf(subject, target.reply_to !== undefined),
		messageId: messageIdOf(nonce, from.address),
		...(target.reply_to === undefined ? {} : { inReplyTo: target.reply_to, references }),
		// RFC 3834: programs do not answer this.
		headers: {
			[NONCE_HEADER]: nonce,
			"Auto-Submitted": target.reply_to === undefined ? "auto-generated" : "auto-replied",
		},
		text,
		html: toHtml(text),
		attachments: attachments.map(({ name, contentType, data }) => ({
			filename: name,
			contentType,
			content: Buffer.from(data, "base64"),
		})),
		disableFileAccess: true,
		disableUrlAccess: true,
	});
	return (await composer.compile().build()).toString("base64url");
}

/** Gmail joins a mail to its thread only under the same subject. */
function subjectOf(subject: string, answer: boolean): string {
	if (!answer || /^re:/i.test(subject)) return subject || "Message";
	return `Re: ${subject}`.trim();
}

/** Mail readers know no style sheets: what matters is said at every tag. */
const STYLES: Readonly<Record<string, string>> = {
	pre: "background:#f6f8fa;padding:8px;overflow-x:auto;font-family:monospace",
	blockquote: "margin:0 0 0 8px;padding-left:8px;border-left:2px solid #ccc;color:#555",
	table: "border-collapse:collapse",
	th: "border:1px solid #ccc;padding:4px 8px",
	td: "border:1px solid #ccc;padding:4px 8px",
};

/** HTML and links that do something are text: what an agent says is not trusted. */
export function toHtml(markdown: string): string {
	if (isHostile(markdown)) return `<p style="white-space:pre-wrap">${escaped(markdown)}</p>`;
	const html = micromark(markdown, { extensions: SYNTAX, htmlExtensions: [gfmHtml()] });
	return html.replace(
		/<(pre|blockquote|table|th|td)(?=[ >])/g,
		(tag, name: string) => `${tag} style="${STYLES[name]}"`,
	);
}

const escaped = (text: string): string => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
