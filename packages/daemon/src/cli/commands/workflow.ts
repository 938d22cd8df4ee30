/** `nexus workflow`: run one from a file, watch it, look it up, cancel it. */

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { text as readAll } from "node:stream/consumers";
import {
	exitCodeOf,
	isErrorCode,
	NexusError,
	toNexusError,
	type WorkflowDefinitionJson,
	type WorkflowEventJson,
	type WorkflowJson,
	type WorkflowNodeStatusJson,
	type WorkflowState,
} from "@nexus-stream/protocol";
import { parseDocument } from "yaml";
import { overRestarts } from "../client.ts";
import {
	type CommandContext,
	type CommandExit,
	type Declarations,
	each,
	remoteJson,
	remoteRows,
	wholeNumber,
	withDaemon,
} from "../command.ts";
import { onInterrupt } from "../interrupt.ts";
import { since, table } from "../table.ts";
import { type Colour, Hinted, noteDrop, oneLine, type Terminal } from "../terminal.ts";

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
		remoteJson(command.command("cancel"), "print it as JSON")
			.description("end a workflow and stop what it has under way")
			.argument("<workflow>", "its id")
			.argument("[reason...]", "why, for the record")
			.action(withDaemon(local, cancelWorkflow));
	},
};

interface Json {
	json?: boolean;
}

export interface RunOptions extends Json {
	input?: string[];
	app?: string;
}

export async function runWorkflow(context: CommandContext, file: string, options: RunOptions): CommandExit {
	const { client, terminal } = context;
	const definition = withInput(await readDefinition(context, file), options.input ?? []);
	const submitted = {
		definition,
		// The same request again is the same workflow: a connection that breaks here costs nothing.
		idempotency_key: randomUUID(),
		app_id: options.app,
	};
	const { workflow_id: id } = await overRestarts(() => client.api.submitWorkflow(submitted), noteDrop(terminal));
	terminal.note(terminal.dim(id));
	return follow(context, id, { ...options, after: 0 });
}

async function readDefinition({ host }: CommandContext, file: string): Promise<WorkflowDefinitionJson> {
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
			new NexusError("invalid", `${file}: not a workflow: it has no nodes`),
			"docs/workflows.md says how one is written",
		);
	return value as WorkflowDefinitionJson;
}

function withInput(definition: WorkflowDefinitionJson, given: readonly string[]): WorkflowDefinitionJson {
	const input = { ...definition.input };
	for (const one of given) {
		const at = one.indexOf("=");
		if (at < 1) throw new NexusError("invalid", `--input ${one}: write it as name=value`);
		input[one.slice(0, at)] = inputValue(one.slice(at + 1));
	}
	return given.length === 0 ? definition : { ...definition, input };
}

function inputValue(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch {
		return text;
	}
}

interface FollowCommandOptions extends Json {
	after?: number;
}

async function follow(
	{ client, host, terminal }: CommandContext,
	id: string,
	options: FollowCommandOptions,
): CommandExit {
	const left = new AbortController();
	onInterrupt(host, () => left.abort());
	const nodes = createNodes(terminal);
	let newest: WorkflowJson | undefined;
	const { after } = options;
	const watching = { signal: left.signal, onDrop: noteDrop(terminal), after };
	for await (const { event, text } of client.watchWorkflow(id, watching)) {
		if (options.json) terminal.json(text);
		else nodes.show(event);
		newest = event.workflow;
	}
	if (left.signal.aborted) {
		terminal.note(`${id} goes on`);
		terminal.note(`  hint: \`nexus workflow watch ${id}\` follows it, \`nexus workflow cancel ${id}\` ends it`);
		return exitCodeOf("aborted");
	}
	const { workflow } = await client.api.workflow(newest?.workflow_id ?? id);
	if (options.json) terminal.json(workflow);
	else showOutput(terminal, workflow);
	return exitCodeFor(workflow);
}

/** A line for each change of a node. */
function createNodes(terminal: Terminal) {
	const seen = new Map<string, string>();
	return {
		show({ workflow: { nodes } }: WorkflowEventJson) {
			const width = Math.max(...nodes.map(({ node_id: id }) => id.length));
			for (const node of nodes) {
				const line = stateLine(terminal, node);
				if (node.state === "accepted" || seen.get(node.node_id) === line) continue;
				seen.set(node.node_id, line);
				terminal.note(`  ${node.node_id.padEnd(width)}  ${line}`);
			}
		},
	};
}

const COLOUR: Partial<Record<WorkflowState, Colour>> = { completed: "green", failed: "red", running: "yellow" };

function stateLine(terminal: Terminal, { state, attempt, run_id: runId, error }: WorkflowNodeStatusJson): string {
	const colour = COLOUR[state];
	const shown = colour ? terminal.paint(colour, state) : terminal.dim(state);
	const notes = [
		attempt > 1 ? `attempt ${attempt}` : "",
		state === "running" ? (runId ?? "") : "",
		error && state !== "completed" ? oneLine(error.message, 200) : "",
	];
	return [shown, terminal.dim(notes.filter(Boolean).join(", "))].filter(Boolean).join("  ");
}

/** A single text as it is, so that it can be piped; anything else as JSON. */
function showOutput(terminal: Terminal, { state, error, output = {} }: WorkflowJson): void {
	if (error) terminal.note(`nexus: ${state}: ${error.message}`);
	const all = Object.values(output) as Record<string, unknown>[];
	const [only] = all;
	const text = only?.text ?? (only?.value as Record<string, unknown> | undefined)?.text;
	if (all.length === 1 && typeof text === "string") terminal.out(`${text}\n`);
	else if (all.length > 0) terminal.out(`${JSON.stringify(output, undefined, 2)}\n`);
}

function exitCodeFor({ state, error }: WorkflowJson): number {
	if (state === "completed") return 0;
	if (state === "canceled") return exitCodeOf("aborted");
	return exitCodeOf(error && isErrorCode(error.code) ? error.code : "engine_failed");
}

export async function listWorkflows(
	{ client, terminal }: CommandContext,
	{ json, state, app, limit }: Json & { state?: string; app?: string; limit: number },
): CommandExit {
	const { workflows } = await client.api.workflows({ state, app_id: app, limit });
	if (workflows.length === 0)
		terminal.note(
			state || app ? "there is no such workflow" : "there are no workflows; `nexus workflow run <file>` runs one",
		);
	if (json) for (const workflow of workflows) terminal.json(workflow);
	else
		table(
			terminal,
			["WORKFLOW", "STATE", "DONE", "SUBMITTED", "APP", "NAME"],
			workflows.map((one) => [
				one.workflow_id,
				one.state,
				`${one.progress_percent} %`,
				since(one.created_at),
				one.app_id,
				oneLine(one.name, 200),
			]),
			["APP", "SUBMITTED"],
		);
	return 0;
}

export async function showWorkflow({ client, terminal }: CommandContext, id: string, { json }: Json): CommandExit {
	const found = await client.api.workflow(id);
	if (json) {
		terminal.json(found);
		return 0;
	}
	const { workflow } = found;
	terminal.note(
		`${workflow.workflow_id}  ${workflow.state}  ${workflow.progress_percent} %  ${oneLine(workflow.name, 200)}`,
	);
	table(
		terminal,
		["NODE", "KIND", "STATE", "ATTEMPT", "RUN", "OUTPUT"],
		workflow.nodes.map(({ node_id, kind, state, attempt, run_id, error, output }) => [
			node_id,
			kind,
			state,
			String(attempt),
			run_id ?? "",
			oneLine(error?.message ?? (output ? JSON.stringify(output) : ""), 500),
		]),
		["RUN", "ATTEMPT", "KIND"],
	);
	return 0;
}

export async function cancelWorkflow(
	{ client, terminal }: CommandContext,
	id: string,
	reason: readonly string[],
	{ json }: Json,
): CommandExit {
	const workflow = await client.api.cancelWorkflow(id, reason.join(" "));
	if (json) terminal.json(workflow);
	else terminal.out(`${workflow.workflow_id}: ${workflow.state}\n`);
	return 0;
}
