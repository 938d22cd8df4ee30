/** Texts with placeholders, `{{node.field}}`: a path each, and no code. */

import { NexusError } from "@nexus-stream/protocol";
import { type PathSegment, parsePath, valueAt } from "./path.ts";

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
