/** Text as a model would send it: cut into tokens that join back to exactly the text, and made-up prose of any length. */

import type { EngineEvent } from "@nexus-stream/protocol/engine";
import { seededRandom, shuffled } from "../../std/seed.ts";

/** Cuts text into tokens: a word with the white space before it, long words in pieces. Joined, they are the text. */
export function tokensOf(text: string): string[] {
	return text.match(/\s*\S{1,16}|\s+$/gu) ?? [];
}

/** At most `charsMax` characters of a text, never half a character, with an ellipsis when something was left out. */
export function shorten(text: string, charsMax: number): string {
	const characters = Array.from(text.slice(0, 2 * charsMax + 2));
	return characters.length <= charsMax ? text : `${characters.slice(0, charsMax).join("")}…`;
}

const LABEL = "Demo engine: this text is made up to try things out.";

const SENTENCES = [
	"A log is an ordered sequence of records, and everything that streams is one.",
	"Producers append at the end, and consumers read at their own pace.",
	"A record becomes visible only once it is durable.",
	"A reader that is slow is simply further behind, and costs no memory.",
	"Reconnecting, replaying and joining late are the same thing seen from different moments.",
	"The number of a record says where it stands, so nothing is lost and nothing comes twice.",
	"The river carried the letters past the mill, one after another, without hurry.",
	"Every stone on the path had a number, and the numbers had no holes.",
	"She counted the lanterns from the harbour to the hill and wrote the sum on a card.",
	"**Order matters** more than speed, but it is pleasant to have both.",
	"A checksum at the end lets anyone verify what arrived, in any language.",
	"Stop means stop, and closing the window does not.",
	"What was said before the interruption is kept, because it was said.",
	"The baker opened at six, the post at seven, and the library whenever it rained.",
	"An agent is an async generator: it yields, returns, throws or is stopped.",
	"Use `Last-Event-ID` to carry on exactly where the connection broke.",
	"Nine small boats waited for the tide; the tenth had already gone.",
	"Anything that has no limit will one day meet it.",
	"The clock is an argument, which makes tomorrow easy to test.",
	"Grüße aus Zürich, 你好 from Shanghai, and a wave 👋 from here.",
	"No reader noticed the restart, which was the point of it.",
	"The map was folded so often that the mountains had become a valley.",
	"Two people who watch the same answer see the same words.",
	"When the last word is written, the line below it says so.",
] as const;

const SENTENCES_PER_PARAGRAPH = 4;

/**
 * Made-up prose as ready events, to be repeated in a circle for as many tokens as are wanted. Every delta carries the
 * white space before it; only the very first token of an answer has none (`first`).
 */
export function proseLoop(seed: number): { first: EngineEvent; loop: readonly EngineEvent[] } {
	const sentences = [LABEL, ...shuffled(SENTENCES, seededRandom(seed))];
	const text = sentences.map((s, i) => (i % SENTENCES_PER_PARAGRAPH === 0 ? "\n\n" : " ") + s).join("");
	const deltas = tokensOf(text);
	return {
		first: { type: "text", delta: deltas[0]!.trimStart() },
		loop: deltas.map((delta) => ({ type: "text", delta })),
	};
}
