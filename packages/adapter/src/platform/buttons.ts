/** The data of a button: its question and its choice, and nothing about the person who presses it. */

import { CHOICE_ID_CHARS_MAX, QUESTION_ID_CHARS_MAX } from "../question.ts";

const PREFIX = "nx1";
const WORD = "[A-Za-z0-9_-]";
const DATA = new RegExp(`^${PREFIX}:(${WORD}{1,${QUESTION_ID_CHARS_MAX}}):(${WORD}{1,${CHOICE_ID_CHARS_MAX}})$`);

/** 62 bytes at most; Telegram takes 64, the others more. */
export const buttonData = (id: string, choice: string): string => `${PREFIX}:${id}:${choice}`;

/** Undefined: not a button of this account, or of an older version. */
export function readButton(data: unknown): { id: string; choice: string } | undefined {
	const [, id, choice] = (typeof data === "string" && DATA.exec(data)) || [];
	return id === undefined || choice === undefined ? undefined : { id, choice };
}

/** Buttons in rows of `size`. */
export const rowsOf = <T>(buttons: readonly T[], size: number): T[][] =>
	Array.from({ length: Math.ceil(buttons.length / size) }, (_, row) => buttons.slice(row * size, (row + 1) * size));
