/** The quoted message of a reply, added to the text for the agent: "what does he mean?" alone says nothing. */

import { graphemeAtOrBefore } from "../markdown/boundary.ts";

const CHARS_MAX = 1000;

/** Quotes a message of the author `who`. Empty when the message has no text. */
export function inReplyTo(who: string | undefined, text: string): string {
	const words = text.replace(/\s+/g, " ").trim();
	if (words === "") return "";
	const whole = words.length <= CHARS_MAX;
	const shown = whole ? words : `${words.slice(0, graphemeAtOrBefore(words, CHARS_MAX, 0))}…`;
	return `[in reply to ${who ?? "somebody"}: ${shown}]`;
}
