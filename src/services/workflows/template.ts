/** Texts with placeholders, `{{node.field}}`: a path each, and no code. */

import { NexusError } from "../../protocol/protocol.ts";
import { parsePath, type Step, valueAt } from "./path.ts";

const PLACEHOLDER = /\{\{([^{}]*)\}\}/g;
const WHOLE = /^\{\{([^{}]*)\}\}$/;

/** What the nodes before gave, by the names under which a node sees them. */
export type Scope = Readonly<Record<string, unknown>>;

/** The paths that a value names, in all its texts. */
export function pathsIn(value: unknown): Step[][] {
	if (typeof value === "string") return [...value.matchAll(PLACEHOLDER)].map(([, path]) => parsePath(path!));
	return typeof value === "object" && value !== null ? Object.values(value).flatMap(pathsIn) : [];
}

/** Fills a text. Throws `invalid` when something that it names is not there. */
export function fill(text: string, scope: Scope): string {
	return text.replace(PLACEHOLDER, (_, path: string) => {
		const value = found(path, scope);
		return typeof value === "string" ? value : JSON.stringify(value);
	});
}

/** Fills every text in a value. One that is a single placeholder becomes what it names, whatever that is. */
export function fillAll(value: unknown, scope: Scope): unknown {
	if (typeof value === "string") {
		const path = WHOLE.exec(value)?.[1];
		return path === undefined ? fill(value, scope) : found(path, scope);
	}
	if (Array.isArray(value)) return value.map((each) => fillAll(each, scope));
	if (typeof value !== "object" || value === null) return value;
	return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, fillAll(each, scope)]));
}

function found(path: string, scope: Scope): unknown {
	const value = valueAt(scope, parsePath(path));
	if (value === undefined) throw new NexusError("invalid", `there is nothing at {{${path}}}`);
	return value;
}
