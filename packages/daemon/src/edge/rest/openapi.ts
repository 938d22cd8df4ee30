/** The OpenAPI description of the routes that are derived from the runtime contract. */

import { type DescEnum, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import {
	type Described,
	describeFailures,
	LAST_EVENT_ID,
	type OpenApiObject,
	refTo,
	SECURITY,
} from "../api/openapi.ts";
import type { HttpRoute } from "./http-rules.ts";

/** The comments in `proto/` on procedures, messages, fields and enums, by full name. */
export type Comments = Readonly<Record<string, string>>;

export function describeRoutes(routes: readonly HttpRoute[], comments: Comments = {}): Described {
	const schemas = new Schemas(comments, requestMessages(routes));
	const paths: Record<string, OpenApiObject> = {};
	for (const route of routes) {
		paths[route.path] = { ...paths[route.path], [route.verb.toLowerCase()]: operation(route, schemas, comments) };
	}
	return { paths, schemas: schemas.components };
}

function operation(route: HttpRoute, schemas: Schemas, comments: Comments): OpenApiObject {
	const { method, params, hasBody, closes } = route;
	const summary = comments[`${method.parent.typeName}.${method.name}`] ?? wordsOf(method.name);
	const hasAfter = method.input.fields.some(({ name }) => name === "after");
	return {
		operationId: `${method.parent.name}_${method.name}`,
		tags: [method.parent.name],
		summary,
		...(closes ? { "x-close-mode": closes } : {}),
		security: SECURITY,
		parameters: [
			...params.map((field) => parameter(field, "path", field.name, schemas)),
			...(hasBody ? [] : queryParameters(method.input.fields, params, schemas)),
			...(closes && hasAfter && !route.file ? [LAST_EVENT_ID] : []),
		],
		...(hasBody ? { requestBody: bodyOf(route, schemas) } : {}),
		responses: responses(route, summary, schemas),
	};
}

/** `ListScenarioJobs` as `List scenario jobs`. */
const wordsOf = (name: string): string =>
	name.replace(/(?<=[a-z])(?=[A-Z])/g, " ").replace(/(?<= )[A-Z](?=[a-z])/g, (letter) => letter.toLowerCase());

function parameter(field: DescField, place: "path" | "query", name: string, schemas: Schemas): OpenApiObject {
	const { description, ...schema } = schemas.field(field);
	return { name, in: place, required: place === "path", ...(description ? { description } : {}), schema };
}

/** A message in the request has its fields as `filter.domain`. */
function queryParameters(
	fields: readonly DescField[],
	without: readonly DescField[],
	schemas: Schemas,
): OpenApiObject[] {
	return fields
		.filter((field) => !without.includes(field))
		.flatMap((field) => {
			if (field.fieldKind !== "message" || field.message.typeName in WELL_KNOWN)
				return [parameter(field, "query", field.name, schemas)];
			return field.message.fields.map((inner) => parameter(inner, "query", `${field.name}.${inner.name}`, schemas));
		});
}

function bodyOf({ method: { input }, params }: HttpRoute, schemas: Schemas): OpenApiObject {
	const schema = params.length === 0 ? schemas.message(input) : schemas.object(input, params);
	return { required: false, content: { "application/json": { schema } } };
}

function responses(route: HttpRoute, summary: string, schemas: Schemas): OpenApiObject {
	const { method, answer, closes, file, status, hasBody, params } = route;
	const schemaOf = () => (answer ? schemas.field(answer) : schemas.message(method.output));
	const content = file
		? Object.fromEntries(FILE_TYPES.map((type) => [type, { schema: {} }]))
		: { [closes ? "text/event-stream" : "application/json"]: { schema: schemaOf() } };
	const answers: OpenApiObject = { [status]: { description: summary, content } };
	if (closes && !file && closes !== "D")
		answers[204] = { description: "The stream has ended and everything was sent before." };
	const codes = [
		...(params.length > 0 || hasBody ? (["not_found", "conflict", "precondition"] as const) : []),
		...(closes ? (["not_found", "expired"] as const) : []),
		...(hasBody ? (["too_large"] as const) : []),
		"unauthenticated" as const,
	];
	return describeFailures(answers, codes);
}

const FILE_TYPES = ["application/x-ndjson", "text/csv", "application/gzip"];

/** Messages that JSON spells in their own way. */
const WELL_KNOWN: Readonly<Record<string, OpenApiObject>> = {
	"google.protobuf.Timestamp": { type: "string", format: "date-time" },
	"google.protobuf.Struct": { type: "object" },
};

/** Messages that a client writes: it may leave out every field. */
function requestMessages(routes: readonly HttpRoute[]): ReadonlySet<DescMessage> {
	const found = new Set(routes.map(({ method }) => method.input));
	for (const { fields } of found) for (const { message } of fields) if (message) found.add(message);
	return found;
}

/** Collects the components that the routes refer to. */
class Schemas {
	readonly components: Record<string, OpenApiObject> = {};
	readonly #comments: Comments;
	readonly #requests: ReadonlySet<DescMessage>;

	constructor(comments: Comments, requests: ReadonlySet<DescMessage>) {
		this.#comments = comments;
		this.#requests = requests;
	}

	message(message: DescMessage): OpenApiObject {
		const known = WELL_KNOWN[message.typeName];
		if (known) return known;
		if (!(message.name in this.components)) {
			// First, for a message that contains itself.
			this.components[message.name] = {};
			this.components[message.name] = this.object(message, []);
		}
		return { $ref: refTo(message.name) };
	}

	object(message: DescMessage, without: readonly DescField[]): OpenApiObject {
		const fields = message.fields.filter((field) => !without.includes(field));
		// Written even when they were not set.
		const required = fields
			.filter(({ presence }) => presence === FeatureSet_FieldPresence.IMPLICIT)
			.map(({ name }) => name);
		return {
			type: "object",
			...this.#described(message.typeName),
			properties: Object.fromEntries(fields.map((field) => [field.name, this.field(field)])),
			...(required.length > 0 && !this.#requests.has(message) ? { required } : {}),
		};
	}

	field(field: DescField): OpenApiObject {
		return { ...this.#value(field), ...this.#described(`${field.parent.typeName}.${field.name}`) };
	}

	#value(field: DescField): OpenApiObject {
		if (field.fieldKind === "map")
			return { type: "object", additionalProperties: this.#single(field.enum, field.message, field.scalar) };
		const single = this.#single(field.enum, field.message, field.scalar);
		return field.fieldKind === "list" ? { type: "array", items: single } : single;
	}

	#single(
		enumeration: DescEnum | undefined,
		message: DescMessage | undefined,
		scalar: ScalarType | undefined,
	): OpenApiObject {
		if (enumeration) return this.#enumeration(enumeration);
		if (message) return this.message(message);
		return scalarSchema(scalar!);
	}

	#enumeration({ name, typeName, values }: DescEnum): OpenApiObject {
		this.components[name] ??= {
			type: "string",
			...this.#described(typeName),
			enum: values.map((value) => value.name),
		};
		return { $ref: refTo(name) };
	}

	#described(name: string): { description?: string } {
		const description = this.#comments[name];
		return description === undefined ? {} : { description };
	}
}

function scalarSchema(scalar: ScalarType): OpenApiObject {
	switch (scalar) {
		case ScalarType.STRING:
			return { type: "string" };
		case ScalarType.BYTES:
			return { type: "string", contentEncoding: "base64" };
		case ScalarType.BOOL:
			return { type: "boolean" };
		case ScalarType.DOUBLE:
		case ScalarType.FLOAT:
			return { type: "number" };
		case ScalarType.INT64:
		case ScalarType.UINT64:
		case ScalarType.FIXED64:
		case ScalarType.SFIXED64:
		case ScalarType.SINT64:
			// As protobuf writes it: JSON numbers lose digits above 2^53.
			return { type: "string", format: "int64" };
		default:
			return { type: "integer", format: "int32" };
	}
}
