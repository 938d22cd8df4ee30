/** The tool `ask`: a question to the person whose message is answered (A28). */

import type { Tool, ToolQuestion } from "./port.ts";
import { textResult } from "./registry.ts";

const CHOICES_MAX = 8;
const CHOICE_CHARS_MAX = 40;
const QUESTION_CHARS_MAX = 2000;

export const askTool: Tool = {
	name: "ask",
	description:
		"Asks the person a question and waits for the answer. Use it only when you cannot go on without knowing; offer choices when there are few.",
	parameters: {
		type: "object",
		properties: {
			question: { type: "string", minLength: 1, maxLength: QUESTION_CHARS_MAX },
			choices: {
				type: "array",
				items: { type: "string", minLength: 1, maxLength: CHOICE_CHARS_MAX },
				minItems: 2,
				maxItems: CHOICES_MAX,
				description: "Left out: the person answers in their own words.",
			},
		},
		required: ["question"],
		additionalProperties: false,
	},
	describe: () => "💬 Asking you",
	asks: ({ question, choices }): ToolQuestion => ({
		question: question as string,
		choices: choices === undefined ? undefined : (choices as string[]),
	}),
	execute: async (_args, { answer }) =>
		answer?.state === "answered"
			? textResult(answer.text ?? "")
			: { ...textResult("the person gave no answer"), failed: true },
};
