/** The commands about workflows, with their arguments and options. */

import type { Command } from "commander";
import type { Adding } from "./commands-approvals.ts";

const commands = () => import("./commands/workflow.ts");

const each = (value: string, earlier: string[] = []): string[] => [...earlier, value];

export function addWorkflows(nexus: Command, { remote, asJson, whole, run }: Adding): void {
	const workflow = nexus
		.command("workflow")
		.description(
			"graphs of model calls, scripts and agent runs that survive the daemon: run, list, show, watch or cancel them; alone it lists",
		)
		.addHelpText(
			"after",
			'\nExamples:\n  nexus workflow run examples/workflows/summary.yaml --input question="What is a log?"\n  nexus workflow watch wf_01JD…',
		);

	asJson(remote(workflow.command("run")), "print the events as NDJSON, then the workflow with its outputs")
		.description("run a workflow and show its nodes; Ctrl-C leaves it running")
		.argument("<file>", "its definition in YAML or JSON; - reads it from stdin")
		.option("-i, --input <name=value>", "a value of its input: JSON, or else a text (repeatable)", each)
		.option("--app <app>", "the application that it is for")
		.addHelpText(
			"after",
			'\nExample:\n  nexus workflow run examples/workflows/summary.yaml --input question="What is a log?" --input words_max=20\n\nThe output goes to stdout, what happens to stderr. The exit code says how it ended.',
		)
		.action((file, options) => run(options, async (context) => (await commands()).runWorkflow(context, file, options)));

	asJson(remote(workflow.command("list", { isDefault: true })), "one JSON object a line")
		.description("list workflows, newest first")
		.option("--state <state>", "accepted, queued, running, completed, failed or canceled")
		.option("--app <app>", "only this application's")
		.option("--limit <count>", "at most this many", whole, 20)
		.action((options) => run(options, async (context) => (await commands()).listWorkflows(context, options)));

	asJson(remote(workflow.command("show")), "print it as JSON, with its definition")
		.description("show the nodes of a workflow and what they gave")
		.argument("<workflow>", "its id")
		.action((id, options) => run(options, async (context) => (await commands()).showWorkflow(context, id, options)));

	asJson(remote(workflow.command("watch")), "print the events as NDJSON, then the workflow with its outputs")
		.description("follow a workflow to its end; Ctrl-C leaves it running")
		.argument("<workflow>", "its id")
		.option("--after <offset>", "begin after this offset; 0 = from its beginning", whole)
		.action((id, options) => run(options, async (context) => (await commands()).watchWorkflow(context, id, options)));

	asJson(remote(workflow.command("cancel")), "print it as JSON")
		.description("end a workflow and stop what it has under way")
		.argument("<workflow>", "its id")
		.argument("[reason...]", "why, for the record")
		.action((id, words: string[], options) =>
			run(options, async (context) => (await commands()).cancelWorkflow(context, id, words.join(" "), options)),
		);
}
