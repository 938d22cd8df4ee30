/**
 * Expressions in a node's configuration, as data and never as code: paths, texts with placeholders, conditions. A path is a subset of
 * JSONPath (RFC 9535): `$.a.b`, `a["b c"]`, `a[0]`, `a[-1]`, `a[*]`. The leading `$` may be left out. With a `[*]` the answer is a list.
 */

import { NexusError } from "@nexus-stream/protocol";
import { z } from "zod";
import { canonicalJson } from "../../kit/once.ts";

export type PathSegment = string | number | typeof EACH;
const EACH = Symbol("*");

const NAME = /^[\p{L}_][\p{L}\p{N}_-]*/u;
const INDEX = /^\[(-?\d{1,9})\]/;
const QUOTED = /^\[("(?:[^"\\]|\\.)*")\]/;
const STEPS_MAX = 64;

/** Throws `invalid` with what is wrong and where. */
export function parsePath(text: string): PathSegment[] {
	const steps: PathSegment[] = [];
	let rest = text.trim();
	if (rest === "$") return steps;
	rest = rest.startsWith("$") ? rest.slice(1) : `.${rest}`;
	while (rest !== "") {
		const [taken, step] = stepAt(rest) ?? [];
		if (taken === undefined || steps.length === STEPS_MAX)
			throw new NexusError("invalid", `invalid path ${JSON.stringify(text)}: use names, [0], ["name"] and [*]`);
		steps.push(step!);
		rest = rest.slice(taken);
	}
	return steps;
}

/** How many characters the first step takes, and what it is. */
function stepAt(rest: string): [number, PathSegment] | undefined {
	if (rest.startsWith("[*]")) return [3, EACH];
	if (rest.startsWith(".")) {
		const name = NAME.exec(rest.slice(1))?.[0];
		return name === undefined ? undefined : [name.length + 1, name];
	}
	const index = INDEX.exec(rest);
	if (index) return [index[0].length, Number(index[1])];
	const quoted = QUOTED.exec(rest);
	if (!quoted) return undefined;
	try {
		return [quoted[0].length, JSON.parse(quoted[1]!) as string];
	} catch {
		return undefined;
	}
}

/** Reads the value at a path of a JSON value. Returns undefined if the path does not exist. */
export function valueAt(value: unknown, steps: readonly PathSegment[]): unknown {
	let found = value;
	for (const [at, step] of steps.entries()) {
		if (step === EACH) {
			if (typeof found !== "object" || found === null) return undefined;
			const rest = steps.slice(at + 1);
			return Object.values(found)
				.map((each) => valueAt(each, rest))
				.filter((each) => each !== undefined);
		}
		found = stepInto(found, step);
		if (found === undefined) return undefined;
	}
	return found;
}

function stepInto(value: unknown, step: string | number): unknown {
	if (Array.isArray(value)) return typeof step === "number" ? (value.at(step) as unknown) : undefined;
	if (typeof value !== "object" || value === null || typeof step === "number") return undefined;
	// Inherited properties are not data.
	return Object.hasOwn(value, step) ? (value as Record<string, unknown>)[step] : undefined;
}

/** The first segment of the path: the name of an input. */
export const rootOf = (steps: readonly PathSegment[]): string | undefined =>
	typeof steps[0] === "string" ? steps[0] : undefined;

/** A text may have placeholders, `{{node.field}}`: a path each. */
const PLACEHOLDER = /\{\{([^{}]*)\}\}/g;
const WHOLE = /^\{\{([^{}]*)\}\}$/;

/** The values that a node sees, by their names. */
export type Scope = Readonly<Record<string, unknown>>;

/** The paths that a value names, in all its texts. */
export function pathsIn(value: unknown): PathSegment[][] {
	if (typeof value === "string") return [...value.matchAll(PLACEHOLDER)].map(([, path]) => parsePath(path!));
	return typeof value === "object" && value !== null ? Object.values(value).flatMap(pathsIn) : [];
}

/** Characters that may still be filled in: few placeholders can repeat the same long text many times. */
export interface Room {
	charsLeft: number;
}

const FILLED_CHARS_MAX = 1024 * 1024;

export const newRoom = (): Room => ({ charsLeft: FILLED_CHARS_MAX });

/** Fills a text. Throws `invalid` when something that it names is not there, `too_large` when it is too much. */
export function fill(text: string, scope: Scope, room = newRoom()): string {
	return text.replace(PLACEHOLDER, (_, path: string) => {
		const value = found(path, scope);
		const said = typeof value === "string" ? value : JSON.stringify(value);
		room.charsLeft -= said.length;
		if (room.charsLeft < 0)
			throw new NexusError("too_large", `what is filled in has more than ${FILLED_CHARS_MAX} characters`);
		return said;
	});
}

/** Fills every text in a value. One that is a single placeholder becomes what it names, whatever that is. */
export function fillAll(value: unknown, scope: Scope, room = newRoom()): unknown {
	if (typeof value === "string") {
		const path = WHOLE.exec(value)?.[1];
		return path === undefined ? fill(value, scope, room) : found(path, scope);
	}
	if (Array.isArray(value)) return value.map((each) => fillAll(each, scope, room));
	if (typeof value !== "object" || value === null) return value;
	return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, fillAll(each, scope, room)]));
}

function found(path: string, scope: Scope): unknown {
	const value = valueAt(scope, parsePath(path));
	if (value === undefined) throw new NexusError("invalid", `there is nothing at {{${path}}}`);
	return value;
}

const OPERATORS = ["exists", "truthy", "eq", "ne", "lt", "le", "gt", "ge", "contains", "in"] as const;

interface Comparison {
	path: string;
	op?: (typeof OPERATORS)[number] | undefined;
	value?: unknown;
}

/** A text alone is a path whose value has to be there and neither false, 0, empty nor null. */
export type Condition =
	| string
	| Comparison
	| { all: readonly Condition[] }
	| { any: readonly Condition[] }
	| { not: Condition };

const DEPTH_MAX = 8;

const comparison = z.strictObject({
	path: z.string().max(1000),
	op: z.enum(OPERATORS).optional(),
	value: z.unknown().optional(),
});

const conditionAt = (depth: number): z.ZodType<Condition> => {
	if (depth === DEPTH_MAX) return z.union([z.string().max(1000), comparison]);
	const inner = conditionAt(depth + 1);
	return z.union([
		z.string().max(1000),
		comparison,
		z.strictObject({ all: z.array(inner).min(1).max(32) }),
		z.strictObject({ any: z.array(inner).min(1).max(32) }),
		z.strictObject({ not: inner }),
	]);
};

export const condition = z.lazy(() => conditionAt(1));

/** The paths that it names. */
export function pathsOfCondition(given: Condition): PathSegment[][] {
	if (typeof given === "string") return [parsePath(given)];
	if ("all" in given) return given.all.flatMap(pathsOfCondition);
	if ("any" in given) return given.any.flatMap(pathsOfCondition);
	if ("not" in given) return pathsOfCondition(given.not);
	return [parsePath(given.path)];
}

export function holds(given: Condition, scope: Scope): boolean {
	if (typeof given === "string") return compare(scope, { path: given, op: "truthy" });
	if ("all" in given) return given.all.every((each) => holds(each, scope));
	if ("any" in given) return given.any.some((each) => holds(each, scope));
	if ("not" in given) return !holds(given.not, scope);
	return compare(scope, given);
}

function compare(scope: Scope, { path, op = "truthy", value }: Comparison): boolean {
	const found = valueAt(scope, parsePath(path));
	switch (op) {
		case "exists":
			return found !== undefined && found !== null;
		case "truthy":
			return Array.isArray(found) ? found.length > 0 : Boolean(found);
		case "eq":
			return isSame(found, value);
		case "ne":
			return !isSame(found, value);
		case "lt":
			return order(found, value, (left, right) => left < right);
		case "le":
			return order(found, value, (left, right) => left <= right);
		case "gt":
			return order(found, value, (left, right) => left > right);
		case "ge":
			return order(found, value, (left, right) => left >= right);
		case "contains":
			return contains(found, value);
		case "in":
			return contains(value, found);
		default:
			return op satisfies never;
	}
}

/** Two numbers or two texts; anything else has no order. */
function order(left: unknown, right: unknown, is: (left: number | string, right: number | string) => boolean): boolean {
	if (typeof left === "number" && typeof right === "number") return is(left, right);
	return typeof left === "string" && typeof right === "string" && is(left, right);
}

function contains(whole: unknown, part: unknown): boolean {
	if (typeof whole === "string") return typeof part === "string" && whole.includes(part);
	return Array.isArray(whole) && whole.some((each) => isSame(each, part));
}

const isSame = (left: unknown, right: unknown): boolean =>
	left === right || (left !== undefined && right !== undefined && canonicalJson(left) === canonicalJson(right));
