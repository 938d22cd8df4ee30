/** Nodes that only compute, at once: branches, merges, templates, paths. */

import { NexusError } from "@nexus-stream/protocol";
import type { Plan, PlannedNode } from "../plan.ts";
import type { NodeOutput } from "../run/status.ts";
import { fill, holds, parsePath, type Scope, valueAt } from "./expressions.ts";

/** The values that a node sees: the workflow's input, the outputs of its completed dependencies, and its edges' values by their names. */
export function scopeOf(
	plan: Plan,
	node: PlannedNode,
	done: readonly string[],
	outputs: ReadonlyMap<string, NodeOutput>,
): Scope {
	const scope: Record<string, unknown> = { input: plan.input };
	for (const before of done) scope[before] = outputs.get(before);
	for (const { name, from, field } of node.inputs) {
		const output = done.includes(from) ? outputs.get(from) : undefined;
		if (output) scope[name] = field === undefined ? output : valueAt(output, [field]);
	}
	return scope;
}

export interface Computed {
	output: NodeOutput;
	/** For a branch: the value of its condition. */
	taken?: boolean;
}

/** Undefined for a node that takes its time. */
export function compute(node: PlannedNode, scope: Scope, done: readonly string[]): Computed | undefined {
	switch (node.kind) {
		case "CONTROL_NOOP":
			return { output: {} };
		case "CONTROL_BRANCH": {
			const taken = holds(node.config.condition, scope);
			return { output: { result: taken }, taken };
		}
		case "CONTROL_MERGE":
			return { output: merged(node.config.mode, scope, done) };
		case "TRANSFORM_TEMPLATE":
			return { output: { text: fill(node.config.template, scope) } };
		case "TRANSFORM_EXTRACT":
			return { output: { value: extracted(node.config, scope) } };
		default:
			return undefined;
	}
}

/** A node after an ANY merge does not know which way was taken: `value` is the output that came on it. */
function merged(mode: "ALL" | "ANY" | "N_OF_M", scope: Scope, done: readonly string[]): NodeOutput {
	if (mode === "ANY") return { from: done[0], value: scope[done[0]!] };
	return { from: done, outputs: Object.fromEntries(done.map((before) => [before, scope[before]])) };
}

function extracted(config: { path: string; default?: unknown }, scope: Scope): unknown {
	const value = valueAt(scope, parsePath(config.path));
	if (value !== undefined) return value;
	if ("default" in config) return config.default;
	throw new NexusError("invalid", `there is nothing at ${config.path}; set a default if that is all right`);
}

/** The size of a value in a message, in bytes: every number there takes more than its digits. */
export function weightOf(value: unknown): number {
	// An escaped character takes up to six times its length where it is stored.
	if (typeof value === "string") return Buffer.byteLength(JSON.stringify(value)) + 6;
	if (typeof value !== "object" || value === null) return 12;
	if (Array.isArray(value)) return value.reduce<number>((sum, each) => sum + weightOf(each), 12);
	return Object.entries(value).reduce((sum, [name, each]) => sum + Buffer.byteLength(name) + 12 + weightOf(each), 12);
}
