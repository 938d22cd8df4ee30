/**
 * JSON schemas of servers, as far as the daemon checks values by them: a check may never take longer than the value is long. So patterns are
 * not evaluated, one that backtracks takes hours for forty characters; the model reads them as words, and the server checks its own arguments.
 */

import type { JsonSchema } from "../tool.ts";

/** Keywords whose value is a schema, or a list of them. */
const SCHEMAS: ReadonlySet<string> = new Set([
	...["allOf", "anyOf", "oneOf", "not", "if", "then", "else"],
	...["items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "contentSchema"],
	...["additionalProperties", "unevaluatedProperties", "propertyNames"],
]);

/** Keywords whose value has a schema for each name. */
const MAPS: ReadonlySet<string> = new Set(["properties", "$defs", "definitions", "dependentSchemas", "dependencies"]);

/** Keywords whose check is not linear in the size of the value, and those that give a schema a second name. */
const DROPPED: ReadonlySet<string> = new Set([
	...["pattern", "patternProperties", "uniqueItems"],
	...["$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"],
]);

const REFUSED: ReadonlySet<string> = new Set(["$dynamicRef", "$recursiveRef"]);

const DEPTH_MAX = 64;
/** Schemas and alternatives in one schema, with all that they refer to. */
const STEPS_MAX = 20_000;
const PATTERN_CHARS_MAX = 300;

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json =>
	typeof value === "object" && value !== null && !Array.isArray(value);

export interface Checkable {
	schema: JsonSchema;
	/** How many schemas and alternatives a value may be compared with. */
	steps: number;
}

/** Never stricter than what the server says. Throws with what is wrong when it cannot be checked in bounded time. */
export function checkable(given: JsonSchema): Checkable {
	const first = schemaOf(given, { circular: new Set(), references: false }, 0);
	const circular = circularIn(given, given, new Map());
	// A schema that refers to a widened one is itself widened.
	const made =
		first.loosened || circular.size > 0 ? schemaOf(given, { circular, references: true }, 0).schema : first.schema;
	const steps = expanded(made, made, new Map());
	if (steps > STEPS_MAX) throw new Error("its schema refers to too much");
	const isSame = JSON.stringify(made) === JSON.stringify(given);
	return { schema: isSame ? given : (made as JsonSchema), steps };
}

/** References that are taken for anything: those that lead back, and what to think of the others. */
interface Loosening {
	circular: ReadonlySet<unknown>;
	references: boolean;
}

/** `loosened`: it takes more values than before. */
interface Made {
	schema: unknown;
	loosened: boolean;
}

function schemaOf(given: unknown, how: Loosening, depth: number): Made {
	if (depth > DEPTH_MAX) throw new Error("its schema is too deep");
	if (Array.isArray(given)) {
		const all = given.map((each) => schemaOf(each, how, depth + 1));
		return { schema: all.map(({ schema }) => schema), loosened: all.some(({ loosened }) => loosened) };
	}
	if (!isObject(given)) return { schema: given, loosened: false };
	const made: Json = {};
	const loosened = new Set<string>();
	for (const [key, value] of Object.entries(given)) {
		if (REFUSED.has(key)) throw new Error(`its schema uses ${key}`);
		if (key === "$ref") {
			checkReference(value);
			if (how.references) loosened.add(key);
		}
		if (DROPPED.has(key) || (key === "$ref" && how.circular.has(given))) {
			if (!key.startsWith("$") && key !== "id") loosened.add(key);
			continue;
		}
		const part = partOf(key, value, how, depth);
		if (part.loosened) loosened.add(key);
		put(made, key, part.schema);
	}
	if (loosened.size > 0) loosen(made, loosened, given);
	return { schema: made, loosened: loosened.size > 0 };
}

function partOf(key: string, value: unknown, how: Loosening, depth: number): Made {
	if (SCHEMAS.has(key)) return schemaOf(value, how, depth + 1);
	if (!MAPS.has(key) || !isObject(value)) return { schema: value, loosened: false };
	const made: Json = {};
	let loosened = false;
	for (const [name, one] of Object.entries(value)) {
		const part = schemaOf(one, how, depth + 1);
		loosened ||= part.loosened;
		put(made, name, part.schema);
	}
	return { schema: made, loosened };
}

/** A server may name a property `__proto__`. */
const put = (target: Json, key: string, value: unknown) =>
	Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });

/** Where a part that takes more would make the whole take less, that keyword goes, too. */
function loosen(made: Json, loosened: ReadonlySet<string>, { pattern, patternProperties, description }: Json): void {
	if (loosened.has("not")) delete made.not;
	if (loosened.has("if")) for (const key of ["if", "then", "else"]) delete made[key];
	if (loosened.has("contains")) delete made.maxContains;
	if (loosened.has("oneOf")) {
		const either = { anyOf: made.oneOf };
		delete made.oneOf;
		made.allOf = [...(Array.isArray(made.allOf) ? (made.allOf as unknown[]) : []), either];
	}
	if (loosened.has("patternProperties"))
		for (const key of ["additionalProperties", "unevaluatedProperties"]) delete made[key];
	const named = isObject(patternProperties) ? Object.keys(patternProperties).join(", ") : "";
	const words = [
		typeof description === "string" ? description : "",
		typeof pattern === "string" ? `Pattern: ${pattern.slice(0, PATTERN_CHARS_MAX)}` : "",
		named === "" ? "" : `Names by pattern: ${named.slice(0, PATTERN_CHARS_MAX)}`,
	].filter((each) => each !== "");
	if (words.length > 0) made.description = words.join("\n");
}

/** The same key leads from a schema to a schema wherever it begins: what is refused here could be anything, a pattern included. */
function checkReference(reference: unknown): void {
	const wrong = new Error(`its schema refers to ${JSON.stringify(reference).slice(0, 100)}, which is not part of it`);
	if (typeof reference !== "string" || !/^#(?:\/|$)/.test(reference)) throw wrong;
	let isMap = false;
	for (const key of stepsOf(reference)) {
		if (isMap) isMap = false;
		else if (MAPS.has(key)) isMap = true;
		else if (!SCHEMAS.has(key) && !/^\d+$/.test(key)) throw wrong;
	}
	if (isMap) throw wrong;
}

const stepsOf = (reference: string): string[] =>
	reference
		.split("/")
		.slice(1)
		.map((step) => decoded(step).replaceAll("~1", "/").replaceAll("~0", "~"));

function decoded(step: string): string {
	try {
		return decodeURIComponent(step);
	} catch {
		throw new Error("its schema refers to an invalid address");
	}
}

/** Schemas whose reference leads back to what they are a part of: a value that is as deep makes each level cost twice the one below. */
function circularIn(schema: unknown, root: unknown, state: Map<object, "open" | "done">, found = new Set<unknown>()) {
	if (typeof schema !== "object" || schema === null || state.has(schema)) return found;
	state.set(schema, "open");
	for (const { part, isReference } of partsOf(schema, root)) {
		if (isReference && state.get(part as object) === "open") found.add(schema);
		else circularIn(part, root, state, found);
	}
	state.set(schema, "done");
	return found;
}

/** References to references grow without bounds, and so does what a value is compared with. */
function expanded(schema: unknown, root: unknown, known: Map<object, number>): number {
	if (typeof schema !== "object" || schema === null) return 0;
	const found = known.get(schema);
	if (found !== undefined) return found;
	const { enum: alternatives } = schema as Json;
	let sum = 1 + (Array.isArray(alternatives) ? alternatives.length : 0);
	for (const { part } of partsOf(schema, root)) sum += expanded(part, root, known);
	known.set(schema, sum);
	return sum;
}

function* partsOf(schema: object, root: unknown): Generator<{ part: unknown; isReference?: true }> {
	if (Array.isArray(schema)) return yield* schema.map((part: unknown) => ({ part }));
	for (const [key, value] of Object.entries(schema)) {
		if (SCHEMAS.has(key)) yield { part: value as unknown };
		// Definitions are checked where they are referred to.
		else if (MAPS.has(key) && !key.endsWith("defs") && key !== "definitions" && isObject(value))
			for (const part of Object.values(value)) yield { part };
		else if (key === "$ref") yield { part: targetOf(value as string, root), isReference: true };
	}
}

function targetOf(reference: string, root: unknown): unknown {
	let at: unknown = root;
	for (const step of stepsOf(reference))
		at = typeof at === "object" && at !== null && Object.hasOwn(at, step) ? (at as Json)[step] : undefined;
	return at;
}
