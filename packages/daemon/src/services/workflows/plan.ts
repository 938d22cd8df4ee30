/** A definition becomes a plan: checked whole before anything runs, in an order in which every node comes after what it waits for. */

import { NexusError, toNexusError } from "@nexus-stream/protocol";
import type { z } from "zod";
import { type PathSegment, parsePath, pathsIn, pathsOfCondition, rootOf } from "./nodes/expressions.ts";
import { definitionShape, isExternal, KINDS, type TypedNode, type WorkflowNodeKind } from "./nodes/kinds.ts";
import type { WorkflowDefinitionJson, WorkflowEdgeJson, WorkflowLimits, WorkflowNodeJson } from "./port.ts";

/** Another node's value, under the name that this node gives it. */
export interface PlannedInput {
	name: string;
	from: string;
	/** A field of its output; undefined: all of it. */
	field?: string;
}

interface PlannedBase {
	id: string;
	dependsOn: readonly string[];
	inputs: readonly PlannedInput[];
	attemptsMax: number;
	backoffMs: number;
	/** 0: as its kind has it. */
	timeoutMs: number;
	/** It acts outside of the workflow. */
	external: boolean;
	/** For a merge: how many of its dependencies have to complete. */
	needs?: number;
	/** For a branch: the nodes that follow when its condition holds, and those when not. */
	targets?: { true: readonly string[]; false: readonly string[] };
}

export type PlannedNode = PlannedBase & TypedNode;

export interface Plan {
	name: string;
	input: Readonly<Record<string, unknown>>;
	/** Every node comes after those that it depends on. */
	nodes: readonly PlannedNode[];
	node(id: string): PlannedNode;
	dependants(id: string): readonly string[];
}

const NODE_ID = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
const NODE_ID_RULE = "use 1 to 64 letters, digits, _ and -, and begin with a letter";
/** The name of the workflow's own input. */
const INPUT = "input";
const BACKOFF_MS = 1000;

type Shaped = z.infer<typeof definitionShape>;
type ShapedNode = Shaped["nodes"][number];

export const invalid = (message: string) => new NexusError("invalid", message, { reason: "WORKFLOW_INVALID" });

/**
 * Throws `invalid` (WORKFLOW_INVALID) with the node, what is wrong with it, and what to do. `isAccepted`: it was taken in before, perhaps by a
 * version that took more names.
 */
export function planOf(definition: unknown, limits: WorkflowLimits, isAccepted = false): Plan {
	const shaped = shapedOf(definition, limits);
	if (!isAccepted) checkNames(definition as WorkflowDefinitionJson, shaped);
	const known = new Map<string, ShapedNode>();
	for (const node of shaped.nodes) {
		if (known.has(node.id)) throw invalid(`node ${node.id}: there are two of this id; rename one`);
		known.set(node.id, node);
	}
	const typed = new Map(shaped.nodes.map((node) => [node.id, typedOf(node)]));
	const waits = dependencies(shaped, known, typed);
	const order = inOrder([...known.keys()], waits);
	const nodes = order.map((each) => planned(known.get(each)!, typed.get(each)!, waits.get(each)!, shaped, limits));
	for (const node of nodes) checkPaths(node, shaped.input);
	return createPlan(shaped, nodes);
}

function createPlan({ name, input }: Shaped, nodes: readonly PlannedNode[]): Plan {
	const byId = new Map(nodes.map((node) => [node.id, node]));
	const after = new Map(nodes.map((node) => [node.id, [] as string[]]));
	for (const node of nodes) for (const before of node.dependsOn) after.get(before)!.push(node.id);
	return { name, input, nodes, node: (one) => byId.get(one)!, dependants: (one) => after.get(one)! };
}

function shapedOf(definition: unknown, limits: WorkflowLimits): Shaped {
	const bytes = Buffer.byteLength(JSON.stringify(definition) ?? "");
	if (bytes > limits.definitionBytesMax)
		throw invalid(`the definition has ${bytes} bytes; at most ${limits.definitionBytesMax} are allowed`);
	const { success, data, error } = definitionShape.safeParse(definition);
	if (!success) throw invalid(`${whereIn(definition, error.issues[0]!)}: ${error.issues[0]!.message}`);
	if (data.nodes.length === 0) throw invalid("the workflow has no nodes; add one");
	if (data.nodes.length > limits.nodesMax)
		throw invalid(`the workflow has ${data.nodes.length} nodes; at most ${limits.nodesMax} are allowed`);
	if (data.edges.length > limits.edgesMax)
		throw invalid(`the workflow has ${data.edges.length} edges; at most ${limits.edgesMax} are allowed`);
	return data;
}

/** A node by its id where it has one, and the field. */
function whereIn(definition: unknown, { path }: z.core.$ZodIssue): string {
	const [list, at, ...field] = path;
	if (list !== "nodes" || typeof at !== "number") return path.join(".") || "the definition";
	const { id: named } = ((definition as WorkflowDefinitionJson).nodes[at] ?? {}) as Partial<WorkflowNodeJson>;
	return [typeof named === "string" ? `node ${named}` : `node number ${at + 1}`, field.join(".")]
		.filter(Boolean)
		.join(": ");
}

/** Assigning to this name does not make a field of an object: the value would be lost. */
const NO_NAME = "__proto__";

/** In the definition as it arrived: some of it is gone once it has its shape. */
function checkNames({ input }: WorkflowDefinitionJson, { nodes, edges }: Shaped): void {
	if (input !== undefined && Object.hasOwn(input, NO_NAME))
		throw invalid(`input: ${NO_NAME} is not a valid name; rename it`);
	for (const { to_node: node, to_input: name } of edges)
		if (name === NO_NAME) throw invalid(`node ${node}: ${NO_NAME} is not a valid name of an input; rename it`);
	for (const node of nodes) checkId(node.id);
}

function checkId(given: string): void {
	if (!NODE_ID.test(given)) throw invalid(`node ${JSON.stringify(given)}: ${NODE_ID_RULE}`);
	if (given === INPUT) throw invalid(`node ${INPUT}: this is the name of the workflow's own input; rename the node`);
}

function typedOf({ id: named, kind, config }: ShapedNode): TypedNode {
	if (!Object.hasOwn(KINDS, kind))
		throw invalid(
			`node ${named}: ${kind === "" ? "it has no kind that is known" : `there is no kind ${kind}`}; known are ${Object.keys(KINDS).join(", ")}`,
		);
	const known = kind as WorkflowNodeKind;
	const { success, data, error } = KINDS[known].safeParse(config);
	if (success) return { kind: known, config: data } as TypedNode;
	const issue = error.issues[0]!;
	throw invalid(`node ${named}: ${["config", ...issue.path].join(".")}: ${issue.message}`);
}

/** By `depends_on`, by edges, and by the branches that lead to a node. */
function dependencies(
	{ nodes, edges }: Shaped,
	known: ReadonlyMap<string, ShapedNode>,
	typed: ReadonlyMap<string, TypedNode>,
): Map<string, Set<string>> {
	const waits = new Map(nodes.map((node) => [node.id, new Set<string>()]));
	const wait = (node: string, before: string, because: string) => {
		const named = because === "" ? node : because;
		const missing = [node, before].find((one) => !known.has(one));
		if (missing !== undefined) throw invalid(`node ${named}: there is no node ${missing}; add it, or correct the name`);
		if (node === before) throw invalid(`node ${node}: it depends on itself`);
		waits.get(node)!.add(before);
	};
	for (const node of nodes) {
		for (const before of node.depends_on) wait(node.id, before, "");
		const { kind, config } = typed.get(node.id)!;
		if (kind !== "CONTROL_BRANCH") continue;
		for (const target of [...config.true_target, ...config.false_target]) wait(target, node.id, node.id);
	}
	for (const { from_node: from, to_node: to } of edges) wait(to, from, known.has(to) ? to : from);
	return waits;
}

/** Throws when there is a circle, with its nodes. */
function inOrder(ids: readonly string[], waits: ReadonlyMap<string, ReadonlySet<string>>): string[] {
	const order: string[] = [];
	const state = new Map<string, "open" | "done">();
	const visit = (node: string, way: readonly string[]) => {
		if (state.get(node) === "done") return;
		if (state.get(node) === "open") {
			const circle = [...way.slice(way.indexOf(node)), node].join(" → ");
			throw invalid(`node ${node}: it waits for itself (${circle}); remove one of these dependencies`);
		}
		state.set(node, "open");
		for (const before of waits.get(node)!) visit(before, [...way, node]);
		state.set(node, "done");
		order.push(node);
	};
	for (const node of ids) visit(node, []);
	return order;
}

function planned(
	node: ShapedNode,
	typed: TypedNode,
	waits: ReadonlySet<string>,
	{ edges }: Shaped,
	limits: WorkflowLimits,
): PlannedNode {
	const { id: named } = node;
	if (node.retry_max_attempts > limits.attemptsMax)
		throw invalid(`node ${named}: retry_max_attempts is at most ${limits.attemptsMax}`);
	if (node.retry_backoff_ms > limits.backoffMsMax)
		throw invalid(`node ${named}: retry_backoff_ms is at most ${limits.backoffMsMax}`);
	const timeoutMsMax = typed.kind === "TRANSFORM_SCRIPT" ? limits.scriptMsMax : limits.timeoutMsMax;
	if (node.timeout_ms > timeoutMsMax) throw invalid(`node ${named}: timeout_ms is at most ${timeoutMsMax}`);
	return {
		...typed,
		id: named,
		dependsOn: [...waits],
		inputs: inputsOf(named, edges, waits),
		attemptsMax: Math.max(1, node.retry_max_attempts),
		backoffMs: node.retry_backoff_ms || BACKOFF_MS,
		timeoutMs: node.timeout_ms || (typed.kind === "TRANSFORM_SCRIPT" ? limits.scriptMs : 0),
		external: isExternal(typed.kind),
		needs: typed.kind === "CONTROL_MERGE" ? needsOf(named, typed.config, waits.size) : undefined,
		targets:
			typed.kind === "CONTROL_BRANCH"
				? { true: typed.config.true_target, false: typed.config.false_target }
				: undefined,
	};
}

function inputsOf(node: string, edges: readonly Required<WorkflowEdgeJson>[], waits: ReadonlySet<string>) {
	const inputs: PlannedInput[] = [];
	for (const { from_node: from, from_output: field, to_node: to, to_input: given } of edges) {
		if (to !== node) continue;
		const name = given || from;
		if (given !== "" && (given === INPUT || (waits.has(given) && given !== from)))
			throw invalid(`node ${node}: the input ${given} has the name of something else; rename it`);
		if (inputs.some((other) => other.name === name))
			throw invalid(`node ${node}: two edges lead to the input ${name}; rename one with to_input`);
		inputs.push({ name, from, field: field || undefined });
	}
	return inputs;
}

function needsOf(node: string, { mode, n }: { mode: string; n?: number | undefined }, dependencyCount: number): number {
	if (dependencyCount === 0) throw invalid(`node ${node}: nothing leads to this merge; set depends_on`);
	if (n !== undefined && n > dependencyCount)
		throw invalid(`node ${node}: config.n is ${n}, but only ${dependencyCount} nodes lead to it`);
	return mode === "ALL" ? dependencyCount : (n ?? 1);
}

/** A node may read only nodes that it waits for, and parts of the workflow's input that exist. */
function checkPaths(node: PlannedNode, input: Readonly<Record<string, unknown>>): void {
	const names = new Set([INPUT, ...node.dependsOn, ...node.inputs.map(({ name }) => name)]);
	for (const steps of pathsOf(node)) {
		const root = rootOf(steps);
		if (root === undefined || !names.has(root)) {
			const what = root ?? "what it names";
			throw invalid(
				`node ${node.id}: it has no input ${what}; add ${what} to depends_on, or an edge, or use ${[...names].join(", ")}`,
			);
		}
		const [, field] = steps;
		if (root === INPUT && typeof field === "string" && !Object.hasOwn(input, field))
			throw invalid(`node ${node.id}: the workflow has no input ${field}; set it in \`input\``);
	}
}

/** The paths that its configuration names. A script's code is code, and reads what it likes of its inputs. */
function pathsOf(node: PlannedNode): PathSegment[][] {
	try {
		if (node.kind === "TRANSFORM_SCRIPT") return [];
		if (node.kind === "TRANSFORM_EXTRACT") {
			// A default says that it may not be there.
			const steps = parsePath(node.config.path);
			return ["default" in node.config && rootOf(steps) === INPUT ? [INPUT] : steps];
		}
		return node.kind === "CONTROL_BRANCH" ? pathsOfCondition(node.config.condition) : pathsIn(node.config);
	} catch (cause) {
		throw invalid(`node ${node.id}: ${toNexusError(cause).message}`);
	}
}
