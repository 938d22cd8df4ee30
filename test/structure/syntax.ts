/** The syntax tree of a source, from the parser of the build tool. */

import { parseSync } from "vite";

export interface Node {
	readonly type: string;
	readonly start: number;
	readonly end: number;
	readonly [key: string]: unknown;
}

export const isNode = (value: unknown): value is Node => typeof (value as Node | null)?.type === "string";

/** Depth first; `visit` returns false to skip the children of a node. */
export function walk(node: Node, visit: (node: Node) => boolean | undefined): void {
	if (visit(node) === false) return;
	for (const key in node) {
		const value = node[key];
		if (Array.isArray(value)) {
			for (const item of value) if (isNode(item)) walk(item, visit);
		} else if (typeof value === "object" && isNode(value)) walk(value, visit);
	}
}

/** Line numbers by offset. */
export function lineNumbers(source: string): (offset: number) => number {
	const starts = [0];
	for (let at = source.indexOf("\n"); at >= 0; at = source.indexOf("\n", at + 1)) starts.push(at + 1);
	return (offset) => {
		let low = 0;
		let high = starts.length;
		while (high - low > 1) {
			const middle = (low + high) >> 1;
			if ((starts[middle] ?? 0) <= offset) low = middle;
			else high = middle;
		}
		return low + 1;
	};
}

export interface Syntax {
	readonly program: Node;
	readonly comments: readonly { type: string; value: string; start: number }[];
}

export function syntaxOf(file: string, source: string): Syntax {
	const { program, comments, errors } = parseSync(file, source);
	if (errors.length > 0) throw new Error(`${file} cannot be parsed: ${errors[0]?.message}`);
	return { program: program as unknown as Node, comments };
}
