/** `nexus jobs`: the queue of model calls, for a person who looks after it. */

import { exitCodeOf, isErrorCode, type JobJson, type JobState } from "@nexus-stream/protocol";
import {
	type CommandContext,
	type CommandExit,
	type Declarations,
	remoteJson,
	remoteRows,
	wholeNumber,
	withDaemon,
} from "../command.ts";
import { onInterrupt } from "../interrupt.ts";
import { since, table } from "../table.ts";
import { type Colour, noteDrop, oneLine, type Terminal } from "../terminal.ts";

export const declare: Declarations = {
	jobs(command, local) {
		command.addHelpText("after", "\nExamples:\n  nexus jobs --state running\n  nexus jobs watch job_01JD…");
		remoteRows(command.command("list", { isDefault: true }))
			.description("list jobs, newest first, and how many wait and run")
			.option("--state <state>", "submitted, queued, running, completed, failed, canceled or timeout")
			.option("--app <app>", "only this application's")
			.option("--limit <count>", "at most this many", wholeNumber, 20)
			.action(withDaemon(local, listJobs));
		remoteJson(command.command("show"), "print it as JSON")
			.description("show a job and its result so far")
			.argument("<job>", "its id")
			.action(withDaemon(local, showJob));
		remoteJson(command.command("watch"), "print the events as NDJSON")
			.description("follow a job to its end; Ctrl-C leaves it running")
			.argument("<job>", "its id")
			.option("--after <offset>", "begin after this offset; 0 = from its beginning", wholeNumber)
			.action(withDaemon(local, watchJob));
		remoteJson(command.command("cancel"), "print it as JSON")
			.description("end a job")
			.argument("<job>", "its id")
			.argument("[reason...]", "why, for the record")
			.action(withDaemon(local, cancelJob));
	},
};

interface Json {
	json?: boolean;
}

export async function listJobs(
	{ client, terminal }: CommandContext,
	{ json, state, app, limit }: Json & { state?: string; app?: string; limit: number },
): CommandExit {
	const { jobs, queued, running } = await client.api.jobs({ state, app_id: app, limit });
	if (jobs.length === 0) terminal.note(state || app ? "there is no such job" : "there are no jobs");
	if (json) for (const job of jobs) terminal.json(job);
	else
		table(
			terminal,
			["JOB", "STATE", "KIND", "SUBMITTED", "APP", "MODEL", "NOTE"],
			jobs.map((job) => [
				job.job_id,
				job.state,
				job.kind,
				since(job.created_at),
				oneLine(job.app_id, 40),
				oneLine(job.model, 40),
				notesOf(job),
			]),
			["APP", "MODEL", "SUBMITTED"],
		);
	if (terminal.interactive && !json) terminal.note(terminal.dim(`${queued} waiting, ${running} running`));
	return 0;
}

export async function showJob({ client, terminal }: CommandContext, id: string, { json }: Json): CommandExit {
	const job = await client.api.job(id);
	if (json) terminal.json(job);
	else {
		terminal.note(stateLine(terminal, job));
		showResult(terminal, job);
	}
	return 0;
}

export async function cancelJob(
	{ client, terminal }: CommandContext,
	id: string,
	reason: readonly string[],
	{ json }: Json,
): CommandExit {
	const job = await client.api.cancelJob(id, reason.join(" "));
	if (json) terminal.json(job);
	else terminal.out(`${job.job_id}: ${job.state}\n`);
	return 0;
}

export async function watchJob(
	{ client, host, terminal }: CommandContext,
	id: string,
	{ json, after }: Json & { after?: number },
): CommandExit {
	const left = new AbortController();
	onInterrupt(host, () => left.abort());
	const watching = { signal: left.signal, onDrop: noteDrop(terminal), after };
	let newest: JobJson | undefined;
	let shown = "";
	for await (const { event, text } of client.watchJob(id, watching)) {
		newest = event.job;
		if (json) terminal.json(text);
		else {
			// Each snapshot takes the place of the one before; the same line twice says nothing.
			const line = stateLine(terminal, newest);
			if (line !== shown) terminal.status(line);
			shown = line;
		}
	}
	if (left.signal.aborted) {
		terminal.note(`${id} goes on`);
		terminal.note(`  hint: \`nexus jobs watch ${id}\` follows it, \`nexus jobs cancel ${id}\` ends it`);
		return exitCodeOf("aborted");
	}
	const job = newest ?? (await client.api.job(id));
	if (!json) showResult(terminal, job);
	return exitCodeFor(job);
}

const COLOUR: Partial<Record<JobState, Colour>> = {
	completed: "green",
	failed: "red",
	timeout: "red",
	running: "yellow",
};

function stateLine(terminal: Terminal, job: JobJson): string {
	const colour = COLOUR[job.state];
	const state = colour ? terminal.paint(colour, job.state) : terminal.dim(job.state);
	return [job.job_id, state, terminal.dim(notesOf(job))].filter(Boolean).join("  ");
}

const notesOf = (job: JobJson): string =>
	[
		job.state === "queued" ? `${job.queue_position} before it` : "",
		job.state === "running" && job.progress_percent >= 0 ? `${job.progress_percent} %` : "",
		job.attempt > 1 ? `attempt ${job.attempt} of ${job.attempts_max}${job.after_crash ? " after a crash" : ""}` : "",
		job.demo ? "demo" : "",
		job.state !== "completed" && job.error ? oneLine(job.error.message, 200) : "",
	]
		.filter(Boolean)
		.join(", ");

/** Text goes to stdout as it is, so that it can be piped. */
function showResult(terminal: Terminal, { text, artifacts, embeddings }: JobJson): void {
	if (text) terminal.out(text.endsWith("\n") ? text : `${text}\n`);
	if (embeddings) terminal.out(`${JSON.stringify(embeddings)}\n`);
	for (const { artifact_id: id, name, mime_type: type, size_bytes: size } of artifacts)
		terminal.out(`${id}\t${oneLine(type, 80)}\t${size} bytes\t${oneLine(name, 255)}\n`);
}

function exitCodeFor({ state, error }: JobJson): number {
	if (state === "completed") return 0;
	if (state === "canceled") return exitCodeOf("aborted");
	return exitCodeOf(error && isErrorCode(error.code) ? error.code : "engine_failed");
}
