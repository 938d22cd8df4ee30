/** The commands about jobs, with their arguments and options. */

import type { Command } from "commander";
import type { Adding } from "./commands-approvals.ts";

const commands = () => import("./commands/jobs.ts");

export function addJobs(nexus: Command, { remote, asJson, whole, run }: Adding): void {
	const jobs = nexus
		.command("jobs")
		.description("model calls that applications have submitted: list, show, watch or cancel them; alone it lists")
		.addHelpText("after", "\nExamples:\n  nexus jobs --state running\n  nexus jobs watch job_01JD…");

	asJson(remote(jobs.command("list", { isDefault: true })), "one JSON object a line")
		.description("list jobs, newest first, and how many wait and run")
		.option("--state <state>", "submitted, queued, running, completed, failed, canceled or timeout")
		.option("--app <app>", "only this application's")
		.option("--limit <count>", "at most this many", whole, 20)
		.action((options) => run(options, async (context) => (await commands()).listJobs(context, options)));

	asJson(remote(jobs.command("show")), "print it as JSON")
		.description("show a job and what it has come to")
		.argument("<job>", "its id")
		.action((id, options) => run(options, async (context) => (await commands()).showJob(context, id, options)));

	asJson(remote(jobs.command("watch")), "print the events as NDJSON")
		.description("follow a job to its end; Ctrl-C leaves it running")
		.argument("<job>", "its id")
		.option("--after <offset>", "begin after this offset; 0 = from its beginning", whole)
		.action((id, options) => run(options, async (context) => (await commands()).watchJob(context, id, options)));

	asJson(remote(jobs.command("cancel")), "print it as JSON")
		.description("end a job")
		.argument("<job>", "its id")
		.argument("[reason...]", "why, for the record")
		.action((id, words: string[], options) =>
			run(options, async (context) => (await commands()).cancelJob(context, id, words.join(" "), options)),
		);
}
