/** A server asks a person for something: its form becomes questions, one after another, labelled with the server's name. */

import type { ElicitRequestFormParams, ElicitResult, PrimitiveSchemaDefinition } from "@modelcontextprotocol/client";
import { shownText } from "@nexus-stream/protocol";
import type { ApprovalOutcome } from "@nexus-stream/protocol/engine";
import { clip, printable } from "../../std/clip.ts";
import type { ToolQuestion } from "../tool.ts";

const MESSAGE_CHARS_MAX = 1000;
const FIELD_CHARS_MAX = 300;
/** More or longer ones are no question to a person; they are answered in words. */
const CHOICES_MAX = 10;
const CHOICE_CHARS_MAX = 100;
/** For a field whose answer does not fit. */
const TRIES_MAX = 3;

export interface Elicitation {
	server: string;
	form: Pick<ElicitRequestFormParams, "message" | "requestedSchema">;
	ask(question: ToolQuestion): Promise<ApprovalOutcome>;
	questionsMax: number;
}

type Value = string | number | boolean | string[];
type Given = { value: Value } | { problem: string };

export async function elicit({ server, form, ask, questionsMax }: Elicitation): Promise<ElicitResult> {
	const says = `The MCP server "${server}" asks: ${words(form.message, MESSAGE_CHARS_MAX)}`;
	const fields = requestedFields(form.requestedSchema);
	if (fields.length > questionsMax) return { action: "cancel" };
	if (fields.length === 0) return await confirmed(says, ask);
	const content: Record<string, Value> = {};
	for (const [name, field] of fields) {
		const given = await answerTo(`${says}\n${labelOf(name, field)}`, field, ask);
		if (typeof given === "string") return { action: given };
		content[name] = given.value;
	}
	return { action: "accept", content };
}

/** The required fields, or all fields if none is required. Optional fields with a default are left out. */
function requestedFields({ properties, required = [] }: ElicitRequestFormParams["requestedSchema"]) {
	const fields = Object.entries(properties);
	const needed = fields.filter(([name]) => required.includes(name));
	return needed.length > 0
		? needed
		: fields.filter(([, field]) => !("default" in field) || field.default === undefined);
}

async function confirmed(text: string, ask: Elicitation["ask"]): Promise<ElicitResult> {
	const answer = await ask({ question: text, choices: ["yes", "no"] });
	if (answer.state !== "answered") return { action: refusal(answer) };
	return isYes(answer.text ?? "") ? { action: "accept", content: {} } : { action: "decline" };
}

async function answerTo(
	text: string,
	field: PrimitiveSchemaDefinition,
	ask: Elicitation["ask"],
): Promise<{ value: Value } | "decline" | "cancel"> {
	const choices = choicesOf(field)?.map(({ title }) => title);
	const offered = choices && areOffered(choices) && field.type !== "array" ? { choices } : {};
	let problem = "";
	for (let tries = 0; tries < TRIES_MAX; tries++) {
		const answer = await ask({ question: problem === "" ? text : `${text}\n${problem}`, ...offered });
		if (answer.state !== "answered") return refusal(answer);
		const given = parsedAnswer(field, (answer.text ?? "").trim());
		if ("value" in given) return given;
		problem = `That does not fit: ${given.problem}.`;
	}
	return "cancel";
}

const areOffered = (choices: readonly string[]): boolean =>
	choices.length > 0 && choices.length <= CHOICES_MAX && choices.every((choice) => choice !== "");

/** A denied question is declined; an unanswered one is cancelled. */
const refusal = ({ state }: ApprovalOutcome): "decline" | "cancel" => (state === "denied" ? "decline" : "cancel");

function labelOf(name: string, field: PrimitiveSchemaDefinition): string {
	const label = [field.title ?? name, field.description].filter((text) => text !== undefined).join(": ");
	const several =
		field.type === "array"
			? ` (several, with commas: ${choicesOf(field)
					?.map(({ title }) => title)
					.join(", ")})`
			: "";
	return words(`${label}${several}`, FIELD_CHARS_MAX);
}

const words = (text: string, charsMax: number): string => clip(shownText(printable(text)).trim(), charsMax);

interface ElicitationChoice {
	value: string;
	title: string;
}

function choicesOf(field: PrimitiveSchemaDefinition): ElicitationChoice[] | undefined {
	if (field.type === "boolean") return ["yes", "no"].map((title) => ({ value: title, title }));
	const listed: object = field.type === "array" ? field.items : field;
	if ("enum" in listed && Array.isArray(listed.enum)) {
		const titles = "enumNames" in listed && Array.isArray(listed.enumNames) ? listed.enumNames : [];
		return listed.enum.map((value, index) => ({
			value: String(value),
			title: words(String(titles[index] ?? value), CHOICE_CHARS_MAX),
		}));
	}
	const titled = "oneOf" in listed ? listed.oneOf : "anyOf" in listed ? listed.anyOf : undefined;
	if (!Array.isArray(titled)) return undefined;
	return (titled as { const: string; title?: string }[]).map(({ const: value, title }) => ({
		value,
		title: words(title ?? value, CHOICE_CHARS_MAX),
	}));
}

function parsedAnswer(field: PrimitiveSchemaDefinition, text: string): Given {
	switch (field.type) {
		case "boolean":
			if (isYes(text)) return { value: true };
			return /^(?:no|n|false)$/i.test(text) ? { value: false } : { problem: "it is yes or no" };
		case "number":
		case "integer":
			return numberOf(field, text);
		case "array": {
			const chosen = text.split(",").map((one) => chosenOf(field, one.trim()));
			const wrong = chosen.find((one) => "problem" in one);
			if (wrong) return wrong;
			return { value: chosen.flatMap((one) => ("value" in one ? [String(one.value)] : [])) };
		}
		case "string":
			return choicesOf(field) ? chosenOf(field, text) : textOf(field, text);
		default:
			return field satisfies never;
	}
}

const isYes = (text: string): boolean => /^(?:yes|y|true)$/i.test(text.trim());

function chosenOf(field: PrimitiveSchemaDefinition, text: string): Given {
	const same = (other: string) => other.toLowerCase() === text.toLowerCase();
	const choices = choicesOf(field) ?? [];
	const found = choices.find(({ value, title }) => same(value) || same(title));
	if (found) return { value: found.value };
	return { problem: `it is one of ${choices.map(({ title }) => title).join(", ")}` };
}

function numberOf(field: Extract<PrimitiveSchemaDefinition, { type: "number" | "integer" }>, text: string): Given {
	const value = text === "" ? Number.NaN : Number(text);
	if (!Number.isFinite(value)) return { problem: "it is a number" };
	if (field.type === "integer" && !Number.isInteger(value)) return { problem: "it is a whole number" };
	const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = field;
	return value >= minimum && value <= maximum ? { value } : { problem: `it is from ${minimum} to ${maximum}` };
}

function textOf(field: object, text: string): Given {
	const { minLength = 1, maxLength = 10_000 } = field as { minLength?: number; maxLength?: number };
	if (text.length >= minLength && text.length <= maxLength) return { value: text };
	return { problem: `it has from ${minLength} to ${maxLength} characters` };
}
