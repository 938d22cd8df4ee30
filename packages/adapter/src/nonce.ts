/** Names for messages that may or may not exist: the same message has the same nonce in every process that tries to create it. */

import { createHash } from "node:crypto";

/** Short enough that `<nonce>.<n>` stays within the 25 characters that platforms allow. */
const NONCE_CHARS = 20;

/** `ordinal` counts a delivery's messages from 1. */
export const nonceOf = (delivery: string, ordinal: number): string =>
	createHash("sha256").update(`${delivery}/${ordinal}`).digest("hex").slice(0, NONCE_CHARS);

/** Names of the further messages that one `send` line needed. */
export const pieceNonce = (nonce: string, piece: number): string => (piece === 1 ? nonce : `${nonce}.${piece}`);

/** The line that a message belongs to, and which of its messages it is. */
export function pieceOf(nonce: string): { line: string; piece: number } {
	const [, line, piece] = /^(.+)\.(\d+)$/.exec(nonce) ?? [];
	return line === undefined ? { line: nonce, piece: 1 } : { line, piece: Number(piece) };
}
