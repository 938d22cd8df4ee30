/** The names of messages beside the text: they tell such a row from the rows of the answer's own messages. */

import { nonceOf, pieceOf } from "@nexus-stream/adapter/host";

/** Other nonces are hexadecimal throughout. */
const ATTACHMENT = /^x[0-9a-f]{19}(?:\.\d+)?$/;

export const isAttachmentNonce = (nonce: string): boolean => ATTACHMENT.test(nonce);

export const attachmentNonce = (delivery: string, offset: number, which: string): string =>
	`x${nonceOf(`${delivery}#${offset}${which}`, 0).slice(1)}`;

/** The line that a nonce belongs to. */
export const lineOf = (nonce: string): string => pieceOf(nonce).line;
