/** Nonces of attachments, which distinguish their rows from those of the answer's text. */

import { nonceOf, pieceOf } from "@nexus-stream/adapter/host";

/** All other nonces are entirely hexadecimal. */
const ATTACHMENT = /^x[0-9a-f]{19}(?:\.\d+)?$/;

export const isAttachmentNonce = (nonce: string): boolean => ATTACHMENT.test(nonce);

export const attachmentNonce = (delivery: string, offset: number, which: string): string =>
	`x${nonceOf(`${delivery}#${offset}${which}`, 0).slice(1)}`;

/** The line that a nonce belongs to. */
export const lineOf = (nonce: string): string => pieceOf(nonce).line;
