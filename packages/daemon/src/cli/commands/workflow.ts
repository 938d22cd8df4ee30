/** `nexus workflow`: run one from a file, watch it, look it up, cancel it. */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { text as readAll } from "node:stream/consumers";
import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import {
	GetWorkflowResponseSchema,
	WorkflowNodeKind as Kind,
	WorkflowState as State,
	type SubscribeWorkflowEventsResponse,
	SubscribeWorkflowEventsResponseSchema,
	type Workflow,
	type WorkflowDefinition,
	WorkflowDefinitionSchema,
	type WorkflowNodeStatus,
	WorkflowSchema,
} from "@nexus-stream/client/gen/nexus/runtime/v1/workflow_pb";
import { NexusError, toNexusError } from "@nexus-stream/protocol";
import { parseDocument } from "yaml";
import {
	type CommandContext,
	type Declarations,
	each,
	type JsonOption,
	remoteJson,
	remoteRows,
	wholeNumber,
	withDaemon,
} from "../command.ts";
import {
	afterOf,
	exitCodeOfWork,
	followWork,
	jsonOf,
	paintState,
	runtimeOf,
	sinceTime,
	type WorkListOptions,
	wordOf,
	workQuery,
} from "../runtime.ts";
import { list } from "../table.ts";
import { Hinted, oneLine, type Terminal, tell } from "../terminal.ts";

export const declare: Declarations = {
	workflow(command, local) {
		command.addHelpText(
			"after",
			'\nExamples:\n  nexus workflow run examples/workflows/summary.yaml --input question="What is a log?"\n  nexus workflow watch wf_01JD…',
		);
		remoteJson(command.command("run"), "print the events as NDJSON, then the workflow with its outputs")
			.description("run a workflow and show its nodes; Ctrl-C leaves it running")
			.argument("<file>", "its definition in YAML or JSON; - reads it from stdin")
			.option("-i, --input <name=value>", "a value of its input: JSON, or else a text (repeatable)", each)
			.option("--app <app>", "the application that it is for")
			.addHelpText(
				"after",
				'\nExample:\n  nexus workflow run examples/workflows/summary.yaml --input question="What is a log?" --input words_max=20\n\nThe output goes to stdout, what happens to stderr. The exit code says how it ended.',
			)
			.action(withDaemon(local, runWorkflow));
		remoteRows(command.command("list", { isDefault: true }))
			.description("list workflows, newest first")
			.option("--state <state>", "accepted, queued, running, completed, failed or canceled")
			.option("--app <app>", "only this application's")
			.option("--limit <count>", "at most this many", wholeNumber, 20)
			.action(withDaemon(local, listWorkflows));
		remoteJson(command.command("show"), "print it as JSON, with its definition")
			.description("show the nodes of a workflow and their outputs")
			.argument("<workflow>", "its id")
			.action(withDaemon(local, showWorkflow));
		remoteJson(command.command("watch"), "print the events as NDJSON, then the workflow with its outputs")
			.description("follow a workflow to its end; Ctrl-C leaves it running")
			.argument("<workflow>", "its id")
			.option("--after <offset>", "begin after this offset; 0 = from its beginning", wholeNumber)
			.action(withDaemon(local, follow));
		remoteJson(command.command("cancel"))
			.description("end a workflow and stop what it has under way")
			.argument("<workflow>", "its id")
			.argument("[reason...]", "why, for the record")
			.action(withDaemon(local, cancelWorkflow));
	},
};

interface RunOptions extends JsonOption {
	input?: string[];
	app?: string;
}

/** The owner's own workflows. */
const OWNERS_APP = "owner";

async function runWorkflow(context: CommandContext, file: string, { input, app, json }: RunOptions) {
	const definition = withInput(await readDefinition(context, file), input ?? []);
	const submitted = await runtimeOf(context).workflows.submitWorkflow({ definition, appId: app ?? OWNERS_APP });
	const { workflowId } = submitted.workflow!;
	context.terminal.note(context.terminal.dim(workflowId));
	return follow(context, workflowId, { json, after: 0 });
}

async function readDefinition({ host }: CommandContext, file: string): Promise<WorkflowDefinition> {
	let source: string;
	try {
		source = file === "-" ? await readAll(host.stdin) : readFileSync(resolve(host.cwd(), file), "utf8");
	} catch (cause) {
		throw new NexusError("invalid", `${file}: ${toNexusError(cause).message}`, { cause });
	}
	const document = parseDocument(source);
	const [error] = document.errors;
	if (error) throw new NexusError("invalid", `${file}: ${error.message}`);
	const value: unknown = document.toJS();
	if (typeof value !== "object" || value === null || !("nodes" in value))
		throw new Hinted(
			new NexusError("invalid", `${file}: this is not a workflow: it has no nodes`),
			"docs/workflows.md says how one is written",
		);
	return definitionOf(file, value as Written);
}

/** As a file spells it: nodes by `id`, kinds without their prefix. */
interface Written {
	nodes: readonly { id?: string; kind?: string }[];
}

function definitionOf(file: string, { nodes, ...rest }: Written): WorkflowDefinition {
	const spelled = nodes.map(({ id = "", kind = "", ...node }) => {
		if (!Object.hasOwn(Kind, kind)) throw new NexusError("invalid", `node ${id}: there is no kind ${kind}`);
		return { ...node, node_id: id, kind: `WORKFLOW_NODE_KIND_${kind}` };
	});
	try {
		return fromJson(WorkflowDefinitionSchema, { ...rest, nodes: spelled });
	} catch (cause) {
		throw new NexusError("invalid", `${file}: ${toNexusError(cause).message}`, { cause });
	}
}

function withInput(definition: WorkflowDefinition, given: readonly string[]): WorkflowDefinition {
	const input: JsonObject = { ...definition.input };
	for (const one of given) {
		const at = one.indexOf("=");
		if (at < 1) throw new NexusError("invalid", `--input ${one}: write it as name=value`);
		input[one.slice(0, at)] = inputValue(one.slice(at + 1));
	}
	return given.length === 0 ? definition : { ...definition, input };
}

function inputValue(text: string): JsonObject[string] {
	try {
		return JSON.parse(text) as JsonObject[string];
	} catch {
		return text;
	}
}

async function follow(context: CommandContext, workflowId: string, { after, json }: JsonOption & { after?: number }) {
	const { terminal } = context;
	const shown = new Map<string, string>();
	const { workflows } = runtimeOf(context);
	const left = await followWork(
		context,
		"workflow",
		workflowId,
		(signal) => workflows.subscribeWorkflowEvents({ workflowId, ...afterOf(after) }, { signal }),
		(event) =>
			json ? terminal.json(jsonOf(SubscribeWorkflowEventsResponseSchema, event)) : showChanges(terminal, event, shown),
	);
	if (left !== undefined) return left;
	const workflow = (await workflows.getWorkflow({ workflowId })).workflow!;
	if (json) terminal.json(jsonOf(WorkflowSchema, workflow));
	else showOutput(terminal, workflow);
	return exitCodeOfWork(wordOf(State, workflow.state), workflow.reasonCode);
}

/** A line for each change of a node. `shown`: the last line of each. */
function showChanges(
	terminal: Terminal,
	{ workflow }: SubscribeWorkflowEventsResponse,
	shown: Map<string, string>,
): void {
	const { nodes } = workflow!;
	const width = Math.max(...nodes.map(({ nodeId }) => nodeId.length));
	for (const node of nodes) {
		const line = stateLine(terminal, node);
		if (node.state === State.ACCEPTED || shown.get(node.nodeId) === line) continue;
		shown.set(node.nodeId, line);
		terminal.note(`  ${node.nodeId.padEnd(width)}  ${line}`);
	}
}

function stateLine(terminal: Terminal, { state, attempt, runId, reason }: WorkflowNodeStatus): string {
	const notes = [
		attempt > 1 ? `attempt ${attempt}` : "",
		state === State.RUNNING ? runId : "",
		state === State.COMPLETED ? "" : oneLine(reason, 200),
	];
	return [paintState(terminal, wordOf(State, state)), terminal.dim(notes.filter(Boolean).join(", "))]
		.filter(Boolean)
		.join("  ");
}

/** A single text as it is, so that it can be piped; anything else as JSON. */
function showOutput(terminal: Terminal, { state, reason, output = {} }: Workflow): void {
	if (reason !== "") terminal.note(`nexus: ${wordOf(State, state)}: ${reason}`);
	const all = Object.values(output) as Record<string, unknown>[];
	const [only] = all;
	const text = only?.text ?? (only?.value as Record<string, unknown> | undefined)?.text;
	if (all.length === 1 && typeof text === "string") terminal.out(`${text}\n`);
	else if (all.length > 0) terminal.out(`${JSON.stringify(output, undefined, 2)}\n`);
}

async function listWorkflows(context: CommandContext, options: WorkListOptions) {
	const { workflows } = await runtimeOf(context).workflows.listWorkflows(workQuery(State, options));
	return list(context.terminal, options.json, workflows, {
		none:
			options.state || options.app
				? "there is no such workflow"
				: "there are no workflows; `nexus workflow run <file>` runs one",
		json: (one) => jsonOf(WorkflowSchema, one),
		columns: {
			WORKFLOW: (one) => one.workflowId,
			STATE: (one) => wordOf(State, one.state),
			DONE: (one) => `${one.progressPercent} %`,
			SUBMITTED: (one) => sinceTime(one.createdAt),
			APP: (one) => one.appId,
			NAME: (one) => oneLine(one.name, 200),
		},
		optional: ["APP", "SUBMITTED"],
	});
}

async function showWorkflow(context: CommandContext, workflowId: string, { json }: JsonOption) {
	const { terminal } = context;
	const found = await runtimeOf(context).workflows.getWorkflow({ workflowId });
	if (json) return terminal.json(jsonOf(GetWorkflowResponseSchema, found));
	const workflow = found.workflow!;
	const state = wordOf(State, workflow.state);
	terminal.note(`${workflowId}  ${state}  ${workflow.progressPercent} %  ${oneLine(workflow.name, 200)}`);
	return list(terminal, false, workflow.nodes, {
		columns: {
			NODE: (node) => node.nodeId,
			KIND: (node) => wordOf(Kind, node.kind).toUpperCase(),
			STATE: (node) => wordOf(State, node.state),
			ATTEMPT: (node) => String(node.attempt),
			RUN: (node) => node.runId,
			OUTPUT: (node) => oneLine(node.reason || (node.output ? JSON.stringify(node.output) : ""), 500),
		},
		optional: ["RUN", "ATTEMPT", "KIND"],
	});
}

async function cancelWorkflow(context: CommandContext, id: string, words: readonly string[], { json }: JsonOption) {
	const reason = words.join(" ");
	const { workflow } = await runtimeOf(context).workflows.cancelWorkflow({ workflowId: id, reason });
	tell(context.terminal, json, jsonOf(WorkflowSchema, workflow!), `${id}: ${wordOf(State, workflow!.state)}`);
}
