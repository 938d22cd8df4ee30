/** The schema of a definition, and of the configuration of each kind of node. */

import { z } from "zod";
import { condition } from "./expressions.ts";

const text = z.string().max(64 * 1024);
const filled = text.min(1);
const name = z.string().min(1).max(256);

/** Fields of every model call. */
const call = { connector_id: name.optional(), model: name.optional() };

const generate = z
	.strictObject({
		...call,
		prompt: filled.optional(),
		messages: z
			.array(z.strictObject({ role: z.enum(["user", "assistant"]), text: filled }))
			.min(1)
			.max(256)
			.optional(),
		system: text.optional(),
		temperature: z.number().min(0).max(2).optional(),
		max_tokens: z.int().min(1).optional(),
	})
	.refine(({ prompt, messages }) => (prompt === undefined) !== (messages === undefined), {
		error: "set either prompt or messages",
	});

const target = z.union([name, z.array(name).max(128)]).transform((one) => (typeof one === "string" ? [one] : one));

export const KINDS = {
	AI_GENERATE: generate,
	AI_STREAM: generate,
	AI_EMBED: z.strictObject({ ...call, inputs: z.union([filled, z.array(filled).min(1).max(256)]) }),
	AI_IMAGE: z.strictObject({
		...call,
		prompt: filled,
		size: name.optional(),
		count: z.int().min(1).max(10).optional(),
	}),
	AI_TTS: z.strictObject({ ...call, text: filled, voice: name.optional(), mime_type: name.optional() }),
	AI_STT: z.strictObject({
		...call,
		artifact_id: filled,
		mime_type: name.optional(),
		language: name.optional(),
	}),
	TRANSFORM_EXTRACT: z.strictObject({ path: z.string().min(1).max(1000), default: z.unknown().optional() }),
	TRANSFORM_TEMPLATE: z.strictObject({ template: filled }),
	TRANSFORM_SCRIPT: z.strictObject({ code: filled }),
	CONTROL_BRANCH: z
		.strictObject({ condition, true_target: target.default([]), false_target: target.default([]) })
		.refine((branch) => branch.true_target.length + branch.false_target.length > 0, {
			error: "set true_target, false_target or both",
		}),
	CONTROL_MERGE: z
		.strictObject({ mode: z.enum(["ALL", "ANY", "N_OF_M"]), n: z.int().min(1).optional() })
		.refine(({ mode, n }) => (mode === "N_OF_M") === (n !== undefined), { error: "n belongs to the mode N_OF_M" }),
	CONTROL_NOOP: z.strictObject({}),
	AGENT_RUN: z.strictObject({ session: name, text: filled }),
} as const;

export type WorkflowNodeKind = keyof typeof KINDS;

export type ConfigOf<Kind extends WorkflowNodeKind> = z.infer<(typeof KINDS)[Kind]>;

/** A node with its configuration as its kind has it. */
export type TypedNode = { [Kind in WorkflowNodeKind]: { kind: Kind; config: ConfigOf<Kind> } }[WorkflowNodeKind];

/** It acts outside of the workflow: a model is called, an agent works. Doing it again is not the same as doing it once. */
export const isExternal = (kind: WorkflowNodeKind): boolean => kind.startsWith("AI_") || kind === "AGENT_RUN";

const id = z.string();

/** A definition as it arrives. The kinds and configurations of its nodes are checked one by one. */
export const definitionShape = z.strictObject({
	name: z.string().max(200).default(""),
	nodes: z.array(
		z.strictObject({
			id,
			kind: z.string(),
			depends_on: z.array(id).default([]),
			/** Settings of its kind: docs/workflows.md. */
			config: z.record(z.string(), z.unknown()).default({}),
			/** Attempts in all, also after a crash. Default: 1. */
			retry_max_attempts: z.int().min(0).default(0),
			/** Before the second attempt; twice as long before each further one. */
			retry_backoff_ms: z.int().min(0).default(0),
			timeout_ms: z.int().min(0).default(0),
		}),
	),
	edges: z
		.array(
			z.strictObject({
				from_node: id,
				/** A field of its output; left out: all of it. */
				from_output: z.string().max(256).default(""),
				to_node: id,
				/** The name of the value there; left out: the id of the node that it comes from. */
				to_input: z.string().max(256).default(""),
			}),
		)
		.default([]),
	/** Nodes see it as `input`. */
	input: z.record(z.string(), z.unknown()).default({}),
});
