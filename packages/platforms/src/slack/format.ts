/** Markdown as Slack's mrkdwn. */

import { renderMarks, writtenOut } from "@nexus-stream/adapter/markdown/marks";

export const render = (markdown: string): string => renderMarks(markdown, { escape: escaped, link, bullet: "• " });

const escaped = (text: string): string => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

const LINKABLE = /^(?:https?|mailto|tel):/i;

/** In angle brackets, where a bar stands between address and label. */
function link(url: string, label: string): string {
	if (!LINKABLE.test(url)) return escaped(writtenOut(url, label));
	const address = escaped(url.replace(/[|<>\s]/g, encodeURIComponent));
	const words = label.replace(/\s+/g, " ").trim();
	return words === "" || words === url ? `<${address}>` : `<${address}|${escaped(words)}>`;
}

/** A stream takes markdown, in which Slack still reads these as mentions of a channel, a group or a person. */
const CALL = /<(?:!(?:channel|here|everyone|group|subteam\^)|@[A-Z0-9])/g;
/** The longest of them. */
export const CALL_CHARS_MAX = 10;

/** More text of a stream that notifies no one: a zero-width character splits the mentions. `before` is the end of the text so far. */
export function withoutCalls(markdown: string, before: string): string {
	const joined = before + markdown;
	let text = "";
	let at = before.length;
	for (const { index, 0: call } of joined.matchAll(CALL)) {
		if (index + call.length <= before.length) continue;
		const cut = Math.max(index + 1, at);
		text += `${joined.slice(at, cut)}\u200B`;
		at = cut;
	}
	return text + joined.slice(at);
}
