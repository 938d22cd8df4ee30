/** Step 1: whether a request says something that can be understood, within its limits. */

import { NexusError } from "@nexus-stream/protocol";
import type { ScenarioKind } from "../connectors/port.ts";
import { SCENARIO_TIMEOUT_MS, type ScenarioHead, type ScenarioSpec } from "./port.ts";

const ID_CHARS_MAX = 200;
const MESSAGES_MAX = 1000;
/** Characters of all texts of a request together. */
const TEXT_CHARS_MAX = 1024 * 1024;
const SPEECH_CHARS_MAX = 64 * 1024;
const PROMPT_CHARS_MAX = 32 * 1024;
const IMAGES_MAX = 10;
const INPUTS_MAX = 2048;
const MAX_TOKENS_MAX = 1_000_000;
const TEMPERATURE_MAX = 2;
const ROLES: ReadonlySet<string> = new Set(["user", "assistant"]);

/** Throws `invalid` with the name of the field. */
export function checkHead(
	{ appId, userId, model = "", connectorId = "", timeoutMs }: ScenarioHead,
	kind: ScenarioKind,
	most = SCENARIO_TIMEOUT_MS[kind],
) {
	const ids = { app_id: appId, subject_user_id: userId, model_id: model, connector_id: connectorId };
	for (const [name, value] of Object.entries(ids))
		if (value.length > ID_CHARS_MAX) throw invalid(`${name} has more than ${ID_CHARS_MAX} characters`);
	if (timeoutMs !== undefined && !isBetween(timeoutMs, 1, most))
		throw invalid(`timeout_ms must be between 1 and ${most} for ${kind}, or left out`);
}

/** Throws `invalid` with the name of the field. */
export function checkSpec(spec: ScenarioSpec, hasAudio: boolean): void {
	switch (spec.kind) {
		case "text":
			checkText(spec);
			break;
		case "speech":
			checkLength("speech_synthesize.text", spec.text, SPEECH_CHARS_MAX);
			checkNames("speech_synthesize", { voice: spec.voice, mime_type: spec.mimeType });
			break;
		case "image":
			checkLength("image_generate.prompt", spec.prompt, PROMPT_CHARS_MAX);
			checkCount("image_generate.count", spec.count, IMAGES_MAX);
			checkNames("image_generate", { size: spec.size });
			break;
		case "embed":
			checkCount("text_embed.inputs", spec.inputs.length, INPUTS_MAX);
			checkAll("text_embed.inputs", spec.inputs);
			break;
		case "transcribe":
			if ((spec.artifactId === "") !== hasAudio)
				throw invalid("speech_transcribe needs audio or an artifact_id, not both");
			checkNames("speech_transcribe", {
				artifact_id: spec.artifactId,
				mime_type: spec.mimeType,
				language: spec.language,
			});
			break;
		default:
			throw invalid(`unknown scenario: ${JSON.stringify(spec satisfies never)}`);
	}
}

function checkText({ messages, system = "", maxTokens, temperature }: Extract<ScenarioSpec, { kind: "text" }>): void {
	checkCount("text_generate.messages", messages.length, MESSAGES_MAX);
	if (messages.some(({ role }) => !ROLES.has(role))) throw invalid("a message's role is user or assistant");
	if (messages.at(-1)!.role !== "user") throw invalid("the last message must be the user's");
	checkAll(
		"text_generate.messages",
		messages.map(({ text }) => text),
	);
	if (system.length > TEXT_CHARS_MAX) throw invalid(`system_prompt has more than ${TEXT_CHARS_MAX} characters`);
	checkCount("text_generate.max_tokens", maxTokens, MAX_TOKENS_MAX);
	const isWarm = temperature === undefined || (temperature >= 0 && temperature <= TEMPERATURE_MAX);
	if (!isWarm) throw invalid(`text_generate.temperature must be between 0 and ${TEMPERATURE_MAX}`);
}

function checkAll(name: string, texts: readonly string[]): void {
	let total = 0;
	for (const text of texts) {
		if (text === "") throw invalid(`${name}: one of them is empty`);
		total += text.length;
	}
	if (total > TEXT_CHARS_MAX) throw invalid(`${name} have more than ${TEXT_CHARS_MAX} characters together`);
}

function checkLength(name: string, text: string, charsMax: number): void {
	if (text === "" || text.length > charsMax) throw invalid(`${name} must have 1 to ${charsMax} characters`);
}

/** These names are stored with the call, and sent to the provider unchanged. */
function checkNames(part: string, names: Readonly<Record<string, string | undefined>>): void {
	for (const [name, value = ""] of Object.entries(names))
		if (value.length > ID_CHARS_MAX) throw invalid(`${part}.${name} has more than ${ID_CHARS_MAX} characters`);
}

function checkCount(name: string, count: number | undefined, most: number): void {
	if (count !== undefined && !isBetween(count, 1, most)) throw invalid(`${name} must be between 1 and ${most}`);
}

const isBetween = (value: number, least: number, most: number): boolean =>
	Number.isSafeInteger(value) && value >= least && value <= most;

const invalid = (message: string): NexusError =>
	new NexusError("invalid", message, { reason: "PROTOCOL_ENVELOPE_INVALID" });
