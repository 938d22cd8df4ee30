/**
 * Finds a message of ours that may have been created without our hearing of it. Discord does not give nonces back in a channel's history, so
 * messages are recognised by their text; a young one can be confirmed, because for some minutes a repeated creation is answered with the message that is there.
 */

import { withoutToolLines } from "@nexus-stream/adapter/draft/tool-line";
import type { APIMessage } from "discord-api-types/v10";

/** Discord says "the past few minutes" and no number. */
export const NONCE_TRUSTED_MS = 120_000;

const DISCORD_EPOCH_MS = 1_420_070_400_000;

/** Message ids carry their time. */
export const createdAt = (id: string): number => Number(BigInt(id) >> 22n) + DISCORD_EPOCH_MS;

export interface MessageLookup {
	me: string;
	/** The text it would have by now, or the name of a file. */
	text: string;
	nonce: string;
	/** Ours are newer than this message. */
	since?: string;
}

/** `history`: newest first, as Discord lists it. */
export function recognise(history: readonly APIMessage[], wanted: MessageLookup, now: number) {
	const mine = history.filter(({ id, author }) => author.id === wanted.me && isAfter(id, wanted.since));
	const named = mine.find(({ nonce }) => nonce === wanted.nonce);
	const message = named ?? mine.find((each) => fits(each, wanted.text));
	if (!message) return undefined;
	return {
		message,
		/** Discord gave the nonce back. */
		named: named !== undefined,
		/** False: repeat the creation with its nonce; what Discord answers with is the one. */
		certain: named !== undefined || now - createdAt(message.id) > NONCE_TRUSTED_MS,
	};
}

const isAfter = (id: string, since: string | undefined): boolean => since === undefined || BigInt(id) > BigInt(since);

/** A draft shows the beginning of its text; fences that were closed for the moment do not count. */
function fits({ content, attachments }: APIMessage, text: string): boolean {
	if (content === "") return attachments.some(({ filename }) => filename === text);
	const said = withoutToolLines(content);
	// It had no text yet when it was made.
	if (said === "") return true;
	const shown = said.replace(/\n?(?:`{3,}|~{3,})$/, "").trimEnd();
	return shown !== "" && text.trimStart().startsWith(shown);
}
