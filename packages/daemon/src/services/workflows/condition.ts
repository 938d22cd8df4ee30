/** Conditions of a branch, as data: a path and what its value has to be, joined by `all`, `any` and `not`. */

import { z } from "zod";
import { type PathSegment, parsePath, valueAt } from "./path.ts";
import type { Scope } from "./template.ts";

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
	left === right || (left !== undefined && right !== undefined && canonical(left) === canonical(right));

/** Objects are the same whatever the order of their fields. */
const canonical = (value: unknown): string =>
	JSON.stringify(value, (_, each: unknown) =>
		typeof each === "object" && each !== null && !Array.isArray(each)
			? Object.fromEntries(Object.entries(each).toSorted(([left], [right]) => (left < right ? -1 : 1)))
			: each,
	);
