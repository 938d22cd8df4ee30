/** Half of `npm run generate`: writes the JSON types of the HTTP API from its schemas, for programs that do not load those (ADR 58). */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
// Loads every schema.
import "../packages/daemon/src/edge/api/api.ts";
import { schemasIn } from "../packages/daemon/src/edge/api/openapi.ts";
import { TYPES } from "../packages/daemon/src/edge/api/resource.ts";
import { ROOT } from "./run.ts";

/** The part of JSON Schema that the schemas of the API need. */
interface Schema {
	$ref?: string;
	description?: string;
	type?: string;
	const?: unknown;
	enum?: readonly unknown[];
	anyOf?: readonly Schema[];
	items?: Schema;
	properties?: Readonly<Record<string, Schema>>;
	required?: readonly string[];
	propertyNames?: Schema;
	additionalProperties?: Schema | false;
}

const HEAD = `/** The JSON of the HTTP API: what \`/v1\` takes and answers. Written by \`npm run generate\` from the schemas in \`packages/daemon/src/edge/api\`. */
`;

const comment = ({ description }: Schema, indent: string): string =>
	description === undefined ? "" : `${indent}/** ${description.replaceAll("*/", "*\\/")} */\n`;

/** Fields, one a line; those of an object that may have others end with an index signature. */
function fields({ properties = {}, required = [], additionalProperties }: Schema, indent: string): string {
	const inner = `${indent}\t`;
	const lines = Object.entries(properties).map(
		([name, field]) =>
			`${comment(field, inner)}${inner}${name}${required.includes(name) ? "" : "?"}: ${typeOf(field, inner)};\n`,
	);
	if (additionalProperties) lines.push(`${inner}[field: string]: ${typeOf(additionalProperties, inner)};\n`);
	return `{\n${lines.join("")}${indent}}`;
}

function objectOf(schema: Schema, indent: string): string {
	const { propertyNames, additionalProperties, properties } = schema;
	if (properties || !additionalProperties) return fields(schema, indent);
	return `Record<${typeOf(propertyNames ?? { type: "string" }, indent)}, ${typeOf(additionalProperties, indent)}>`;
}

const PRIMITIVES: Readonly<Record<string, string>> = {
	string: "string",
	number: "number",
	integer: "number",
	boolean: "boolean",
	null: "null",
};

function typeOf(schema: Schema, indent = ""): string {
	if (schema.$ref !== undefined) return schema.$ref;
	if (schema.const !== undefined) return JSON.stringify(schema.const);
	if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
	if (schema.anyOf) return schema.anyOf.map((each) => typeOf(each, indent)).join(" | ");
	if (schema.type === "array") {
		const item = typeOf(schema.items ?? {}, indent);
		return item.includes(" | ") && !item.startsWith("{") ? `(${item})[]` : `${item}[]`;
	}
	if (schema.type === "object") return objectOf(schema, indent);
	if (schema.type === undefined) return "unknown";
	const primitive = PRIMITIVES[schema.type];
	if (primitive === undefined) throw new Error(`there is no TypeScript for ${JSON.stringify(schema)}`);
	return primitive;
}

export function apiTypes(): string {
	const schemas = schemasIn(TYPES, (id) => id) as Record<string, Schema>;
	const declared = Object.entries(schemas)
		.toSorted(([one], [other]) => (one < other ? -1 : 1))
		.map(([name, schema]) => {
			const text = typeOf(schema);
			const isInterface = schema.type === "object" && text.startsWith("{");
			return `${comment(schema, "")}export ${isInterface ? `interface ${name} ${text}` : `type ${name} = ${text};`}\n`;
		});
	return [HEAD, ...declared].join("\n");
}

export const API_TYPES = join(ROOT, "packages/protocol/src/gen/api.ts");

if (import.meta.main) writeFileSync(API_TYPES, apiTypes());
