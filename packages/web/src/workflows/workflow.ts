/** One workflow as a value: its nodes in the order of their dependencies, their outputs, and their texts so far. */

import { ReasonCode } from "@nexus-stream/client/gen/nexus/runtime/v1/common_pb";
import {
	WorkflowNodeKind as Kind,
	WorkflowState as State,
	type Workflow,
	type WorkflowNodeStatus,
} from "@nexus-stream/client/gen/nexus/runtime/v1/workflow_pb";
import type { RunView } from "@nexus-stream/protocol";
import { plural } from "../ui/format.ts";
import type { PageView } from "../ui/page.ts";

export interface WorkflowView extends PageView {
	readonly workflowId: string;
	readonly link: "connecting" | "live" | "reconnecting" | "ended" | "refused";
	/** The snapshot of the last event. */
	readonly workflow?: Workflow;
	/** Outputs by node id. Events do not carry them. */
	readonly outputs: Readonly<Record<string, NodeOutputView>>;
	/** The text of each node's run so far, by run id. */
	readonly texts: Readonly<Record<string, RunView>>;
	readonly canceling: boolean;
}

type NodeOutputView = Readonly<Record<string, unknown>>;

export const newWorkflowView = (workflowId: string): WorkflowView => ({
	workflowId,
	link: "connecting",
	outputs: {},
	texts: {},
	canceling: false,
});

/** Replaces the shown snapshot by the event's (close mode B). */
export const withEvent = (view: WorkflowView, workflow: Workflow): WorkflowView => ({ ...view, workflow });

/** Takes the outputs of a read. Its states count only until the first event, because the stream is never behind. */
export const withRead = (view: WorkflowView, workflow: Workflow): WorkflowView => {
	const outputs = workflow.nodes.flatMap(({ nodeId: id, state, output }) =>
		// A completed node without an output counts as read: there is nothing left to fetch.
		output || state === State.COMPLETED ? [[id, output ?? {}] as const] : [],
	);
	return { ...view, outputs: Object.fromEntries(outputs), workflow: view.workflow ?? workflow };
};

/** Whether a completed node has an output that was not read yet. */
export const hasUnreadOutputs = ({ workflow, outputs }: WorkflowView): boolean =>
	workflow?.nodes.some(({ nodeId: id, state }) => state === State.COMPLETED && !outputs[id]) ?? false;

const WRITES: ReadonlySet<Kind> = new Set([Kind.AI_STREAM, Kind.AI_GENERATE, Kind.AGENT_RUN]);

export const writes = ({ kind }: Pick<WorkflowNodeStatus, "kind">): boolean => WRITES.has(kind);

/** The runs whose text is read from their stream, in the order of the nodes, because no output has it yet. */
export const textRunsOf = ({ workflow, outputs }: WorkflowView): string[] =>
	(workflow?.nodes ?? [])
		.filter(writes)
		.flatMap(({ nodeId, runId }) => (runId === "" || outputs[nodeId] ? [] : [runId]));

/** Nodes by their distance from the start. Within a layer, each is near the nodes that it depends on. */
export function layersOf(nodes: readonly WorkflowNodeStatus[]): WorkflowNodeStatus[][] {
	const byId = new Map(nodes.map((node) => [node.nodeId, node]));
	const depths = new Map<string, number>();
	const depthOf = (node: WorkflowNodeStatus): number => {
		const found = depths.get(node.nodeId);
		if (found !== undefined) return found;
		// The daemon refuses cycles; this value ends the recursion even if there were one.
		depths.set(node.nodeId, 0);
		const before = node.dependsOn.flatMap((id) => byId.get(id) ?? []);
		const depth = before.length === 0 ? 0 : 1 + Math.max(...before.map(depthOf));
		depths.set(node.nodeId, depth);
		return depth;
	};
	const depthsMax = Math.max(-1, ...nodes.map(depthOf));
	const layers = Array.from({ length: depthsMax + 1 }, (_, depth) => nodes.filter((node) => depthOf(node) === depth));
	const places = new Map<string, number>();
	return layers.map((layer) => {
		const mean = ({ dependsOn: before }: WorkflowNodeStatus) =>
			before.reduce((sum, id) => sum + (places.get(id) ?? 0), 0) / Math.max(1, before.length);
		const ordered = layer.toSorted((one, other) => mean(one) - mean(other));
		for (const [at, node] of ordered.entries()) places.set(node.nodeId, at - (ordered.length - 1) / 2);
		return ordered;
	});
}

export interface PlacedNode {
	readonly node: WorkflowNodeStatus;
	/** In columns and rows; a layer with fewer nodes than the widest one stands in the middle. */
	readonly x: number;
	readonly y: number;
}

export interface WorkflowLayout {
	readonly columns: number;
	readonly rows: number;
	readonly nodes: readonly PlacedNode[];
	/** Without the edges that follow from other edges, so that few lines cross. */
	readonly edges: readonly { readonly from: PlacedNode; readonly to: PlacedNode }[];
}

export function graphOf(nodes: readonly WorkflowNodeStatus[]): WorkflowLayout {
	const layers = layersOf(nodes);
	const columns = Math.max(0, ...layers.map((layer) => layer.length));
	const placed = layers.flatMap((layer, y) =>
		layer.map((node, at): PlacedNode => ({ node, x: at + (columns - layer.length) / 2, y })),
	);
	const byId = new Map(placed.map((each) => [each.node.nodeId, each]));
	const before = new Map<string, ReadonlySet<string>>();
	const edges = placed.flatMap((to) => {
		const { nodeId: id, dependsOn: direct } = to.node;
		// The layers are in order, so the ancestors of every direct dependency are complete.
		const further = new Set(direct.flatMap((each) => [...(before.get(each) ?? [])]));
		before.set(id, new Set([...direct, ...further]));
		return direct.flatMap((each) => {
			const from = byId.get(each);
			return from && !further.has(each) ? [{ from, to }] : [];
		});
	});
	return { columns, rows: layers.length, nodes: placed, edges };
}

/** The leaf nodes: their outputs are the result of the workflow. */
export function resultNodesOf(nodes: readonly WorkflowNodeStatus[]): ReadonlySet<string> {
	const needed = new Set(nodes.flatMap(({ dependsOn: before }) => before));
	return new Set(nodes.map(({ nodeId: id }) => id).filter((id) => !needed.has(id)));
}

const KINDS: Readonly<Partial<Record<Kind, string>>> = {
	[Kind.AI_GENERATE]: "Text",
	[Kind.AI_STREAM]: "Text",
	[Kind.AI_EMBED]: "Embedding",
	[Kind.AI_IMAGE]: "Image",
	[Kind.AI_TTS]: "Speech",
	[Kind.AI_STT]: "Transcription",
	[Kind.TRANSFORM_EXTRACT]: "Extract",
	[Kind.TRANSFORM_TEMPLATE]: "Template",
	[Kind.TRANSFORM_SCRIPT]: "Script",
	[Kind.CONTROL_BRANCH]: "Branch",
	[Kind.CONTROL_MERGE]: "Merge",
	[Kind.CONTROL_NOOP]: "Pass on",
	[Kind.AGENT_RUN]: "Agent",
};

export const nodeKindWords = (kind: Kind): string => KINDS[kind] ?? "Unknown";

/** Names the attempt, unless it is the first. */
export function attemptWords({ attempt, afterCrash }: WorkflowNodeStatus): string | undefined {
	const parts = [attempt > 1 && `Attempt ${attempt}`, afterCrash && "after a crash"].filter(Boolean).join(", ");
	return parts === "" ? undefined : parts[0]!.toUpperCase() + parts.slice(1);
}

export function skippedWords(node: WorkflowNodeStatus, nodes: readonly WorkflowNodeStatus[]): string {
	const before = nodes.filter(({ nodeId: id }) => node.dependsOn.includes(id));
	const branch = before.find(({ kind, state }) => kind === Kind.CONTROL_BRANCH && state === State.COMPLETED);
	if (before.every(({ state }) => state === State.COMPLETED) && branch)
		return `The branch ${branch.nodeId} went the other way.`;
	const lacking = before.filter(({ state }) => state !== State.COMPLETED).map(({ nodeId: id }) => id);
	return lacking.length === 0 ? "Not needed." : `Nothing came from ${lacking.join(" and ")}.`;
}

const ASK_PROVIDER = "`nexus connector test` asks the provider what is wrong.";
const SEE_CONNECTORS = "See `nexus connector list`, and connector_id in the node's config.";
const SEE_ALLOWED = "See connectors.allow in nexus.yaml for servers of your own network.";
const CHOOSE_ANOTHER = "Choose another model or connector in the node's config.";

const ADVICE: Readonly<Partial<Record<ReasonCode, string>>> = {
	[ReasonCode.CRASHED]: "retry_max_attempts: 2 in its definition tries such a node again.",
	[ReasonCode.AI_CONNECTOR_ID_REQUIRED]: SEE_CONNECTORS,
	[ReasonCode.AI_CONNECTOR_NOT_FOUND]: SEE_CONNECTORS,
	[ReasonCode.AI_CONNECTOR_DISABLED]: SEE_CONNECTORS,
	[ReasonCode.AI_CONNECTOR_CREDENTIAL_MISSING]: SEE_CONNECTORS,
	[ReasonCode.AI_PROVIDER_FAILED]: ASK_PROVIDER,
	[ReasonCode.AI_PROVIDER_TIMEOUT]: ASK_PROVIDER,
	[ReasonCode.ENGINE_FAILED]: ASK_PROVIDER,
	[ReasonCode.UNAVAILABLE]: ASK_PROVIDER,
	[ReasonCode.AI_ENDPOINT_FORBIDDEN]: SEE_ALLOWED,
	[ReasonCode.AI_ENDPOINT_UNRESOLVED]: SEE_ALLOWED,
	[ReasonCode.AI_MODEL_NOT_FOUND]: CHOOSE_ANOTHER,
	[ReasonCode.AI_SCENARIO_UNSUPPORTED]: CHOOSE_ANOTHER,
	[ReasonCode.TIMEOUT]: "Raise timeout_ms in its definition if it needs longer.",
};

/** The next step after a node's failure, where its message does not name one. */
export const adviceOf = ({ reasonCode }: Pick<WorkflowNodeStatus, "reasonCode">): string | undefined =>
	ADVICE[reasonCode];

export interface ShownFile {
	readonly artifactId: string;
	readonly name: string;
	readonly sizeBytes: number | bigint;
}

export interface ShownOutput {
	/** The text, if the output has one. */
	readonly text?: string;
	/** The other fields as JSON, with long lists and texts shortened. */
	readonly json?: string;
	/** The model that answered and the tokens it used. */
	readonly facts?: string;
	readonly artifacts: readonly ShownFile[];
	/** The text or the JSON is not complete. */
	readonly cut: boolean;
}

const TEXT_CHARS_MAX = 20_000;
const VALUE_CHARS_MAX = 1000;
const JSON_CHARS_MAX = 6000;
const ITEMS_MAX = 8;
/** Fields that are shown elsewhere or mean nothing to a person. */
const HIDDEN_FIELDS: ReadonlySet<string> = new Set(["text", "artifacts", "artifact_id", "run_id"]);
const FACTS: ReadonlySet<string> = new Set(["model", "usage", "demo"]);

/** Undefined for an output that no model produced. */
function factsOf({ model, usage, demo }: NodeOutputView): string | undefined {
	if (typeof model !== "string") return undefined;
	const { input_tokens: input = -1, output_tokens: written = -1 } = (usage ?? {}) as Record<string, number>;
	// -1: the model reported no count.
	const tokens = [input >= 0 && `${plural(input, "token")} in`, written > 0 && `${written} out`].filter(Boolean);
	return [demo === true ? "Demo, no model answered" : model, ...tokens].join(" · ");
}

/** A file in the output of a node. */
interface OutputFile {
	artifact_id: string;
	name: string;
	size_bytes: number;
}

const fileOf = ({ artifact_id: artifactId, name, size_bytes: sizeBytes }: OutputFile): ShownFile => ({
	artifactId,
	name,
	sizeBytes,
});

export function shownOutput(output: NodeOutputView): ShownOutput {
	let cut = false;
	const clip = (text: string, most: number) => {
		if (text.length <= most) return text;
		cut = true;
		return `${text.slice(0, most)}…`;
	};
	const short = (value: unknown): unknown => {
		if (typeof value === "string") return clip(value, VALUE_CHARS_MAX);
		if (!Array.isArray(value)) return value;
		if (value.length <= ITEMS_MAX) return value;
		cut = true;
		return [...value.slice(0, ITEMS_MAX), `… ${value.length - ITEMS_MAX} more`];
	};
	const text = typeof output.text === "string" ? clip(output.text, TEXT_CHARS_MAX) : undefined;
	const facts = factsOf(output);
	const isShownElsewhere = (name: string) =>
		name === "text" ? text !== undefined : HIDDEN_FIELDS.has(name) || (facts !== undefined && FACTS.has(name));
	const rest = Object.entries(output).filter(([name]) => !isShownElsewhere(name));
	const json = rest.length === 0 ? undefined : jsonText(Object.fromEntries(rest), short);
	const artifacts = Array.isArray(output.artifacts) ? (output.artifacts as OutputFile[]).map(fileOf) : [];
	return { text, json: json === undefined ? undefined : clip(json, JSON_CHARS_MAX), facts, artifacts, cut };
}

const jsonText = (value: unknown, short: (value: unknown) => unknown): string =>
	JSON.stringify(value, (_, each: unknown) => short(each), 2);
