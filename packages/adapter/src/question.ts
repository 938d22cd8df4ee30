/** Rules for questions, the same for the daemon that asks and for every platform that shows them. */

import type { AdapterInfo, Question } from "./port.ts";

/** Characters `[A-Za-z0-9_-]`: both ids fit into the data of one button on every platform. */
export const QUESTION_ID_CHARS_MAX = 32;
export const CHOICE_ID_CHARS_MAX = 24;
export const ID_CHARS = /^[A-Za-z0-9_-]+$/;

/** For adapters that declare no limit. */
const CHOICES_MAX = 8;
const LABEL_CHARS_MAX = 40;

/** Why a question is invalid; undefined when it is valid. */
export function questionFault({ id, choices }: Question): string | undefined {
	if (!isId(id, QUESTION_ID_CHARS_MAX))
		return `its id must be ${QUESTION_ID_CHARS_MAX} letters, digits, _ and - at most`;
	if (!Array.isArray(choices) || choices.length === 0) return "it has no choices";
	for (const choice of choices as Question["choices"]) {
		if (!isId(choice.id, CHOICE_ID_CHARS_MAX))
			return `a choice's id must be ${CHOICE_ID_CHARS_MAX} letters, digits, _ and - at most`;
		if (typeof choice.label !== "string" || choice.label.trim() === "") return "a choice has no label";
	}
	return undefined;
}

/** Why a platform cannot show a question with buttons; undefined when it can. */
export function buttonsFault({ supports, limits }: AdapterInfo, { choices }: Question): string | undefined {
	const { choicesMax = CHOICES_MAX, labelCharsMax = LABEL_CHARS_MAX } = limits;
	if (!supports.includes("ask") || !supports.includes("send")) return "it has no buttons";
	if (choices.length > choicesMax) return `it has more than ${choicesMax} choices`;
	const isLong = choices.some(({ label }) => label.length > labelCharsMax);
	return isLong ? `a label has more than ${labelCharsMax} characters` : undefined;
}

const isId = (value: unknown, charsMax: number): boolean =>
	typeof value === "string" && value.length <= charsMax && ID_CHARS.test(value);
