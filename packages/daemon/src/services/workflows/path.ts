/**
 * Paths into JSON, read without evaluating anything. A subset of JSONPath (RFC 9535): `$.a.b`, `a["b c"]`, `a[0]`, `a[-1]`, `a[*]`.
 * The leading `$` may be left out. With a `[*]` the answer is a list, as long as what is there.
 */

import { NexusError } from "@nexus-stream/protocol";

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

/** The value at a path; undefined where there is none. */
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
