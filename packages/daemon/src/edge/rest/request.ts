/** An HTTP request as the message that its procedure takes: the fields of the path, and those of the query or the body. */

import {
	type DescEnum,
	type DescField,
	type DescMessage,
	fromJson,
	type JsonObject,
	type JsonValue,
	type Message,
	mergeFromJson,
	ScalarType,
} from "@bufbuild/protobuf";
import { NexusError } from "@nexus-stream/protocol";
import type { HttpRoute } from "./http-rules.ts";

export interface RequestParts {
	/** By field name, unescaped. */
	params: Readonly<Record<string, string>>;
	query: URLSearchParams;
	/** Parsed JSON; undefined for an empty body. */
	body?: unknown;
}

/** Throws `invalid` for a field that the request does not have, and for a value that its field cannot hold. */
export function requestOf({ method, params, hasBody }: HttpRoute, parts: RequestParts): Message {
	const { input } = method;
	const message = hasBody ? decoded("body", () => fromJson(input, bodyOf(parts.body))) : undefined;
	const query = queryJson(hasBody ? NO_FIELDS : input.fields, parts.query);
	const request = message ?? decoded("query", () => fromJson(input, query));
	const named = Object.fromEntries(params.map(({ name }) => [name, parts.params[name] ?? ""]));
	return decoded("path", () => mergeFromJson(input, request, named));
}

const NO_FIELDS: readonly DescField[] = [];

function bodyOf(body: unknown): JsonObject {
	if (body === undefined) return {};
	if (typeof body === "object" && body !== null && !Array.isArray(body)) return body as JsonObject;
	throw invalid("body", "must be a JSON object");
}

function decoded<Decoded>(where: string, decode: () => Decoded): Decoded {
	try {
		return decode();
	} catch (cause) {
		if (cause instanceof NexusError) throw cause;
		throw invalid(where, (cause as Error).message.replaceAll("nexus.runtime.v1.", ""), cause);
	}
}

const invalid = (where: string, message: string, cause?: unknown): NexusError =>
	new NexusError("invalid", `${where}: ${message}; see /openapi.json`, { cause });

/** `filter.domain=runs` names a field of a message in the request; a list is a name that comes several times. */
function queryJson(fields: readonly DescField[], query: URLSearchParams): JsonObject {
	const json: JsonObject = {};
	for (const name of new Set(query.keys())) put(json, fields, name, query.getAll(name));
	return json;
}

function put(json: JsonObject, fields: readonly DescField[], name: string, texts: readonly string[]): void {
	let [target, among] = [json, fields];
	const path = name.split(".");
	const last = path.pop()!;
	for (const part of path) {
		const outer = among.find((field) => field.name === part);
		if (outer?.fieldKind !== "message" || isText(outer.message)) throw unknown(name);
		target[part] ??= {};
		[target, among] = [target[part] as JsonObject, outer.message.fields];
	}
	const field = among.find((each) => each.name === last);
	if (!field) throw unknown(name);
	target[last] = fieldJson(field, name, texts);
}

const unknown = (name: string): NexusError => invalid(`query.${name}`, "is not a parameter of this route");

function fieldJson(field: DescField, name: string, texts: readonly string[]): JsonValue {
	if (field.fieldKind === "map" || (field.fieldKind === "message" && !isText(field.message))) throw unknown(name);
	if (field.fieldKind === "list") {
		if (field.listKind === "message") throw unknown(name);
		return texts.map((text) => scalarOf(field, text));
	}
	if (texts.length > 1) throw invalid(`query.${name}`, "is given more than once");
	return scalarOf(field, texts[0]!);
}

/** Messages that JSON spells as one text. */
const isText = ({ typeName }: DescMessage): boolean => typeName === "google.protobuf.Timestamp";

function scalarOf(field: DescField, text: string): JsonValue {
	if (field.enum) return enumName(field.enum, text);
	if (field.scalar === ScalarType.BOOL && (text === "true" || text === "false")) return text === "true";
	return text;
}

/** A value may be named without the prefix of its enum: `running` is SCENARIO_JOB_STATE_RUNNING. */
function enumName({ values, sharedPrefix = "" }: DescEnum, text: string): string {
	const name = text.toUpperCase();
	return values.find((value) => value.name === (sharedPrefix + name).toUpperCase())?.name ?? text;
}
