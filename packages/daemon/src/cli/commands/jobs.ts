/** `nexus jobs`: the queue of model calls, for a person who looks after it. */

import { exitCodeOf, isErrorCode, type JobJson, type JobState } from "@nexus-stream/protocol";
import type { CommandContext, CommandExit } from "../command.ts";
import { onInterrupt } from "../interrupt.ts";
import { since, table } from "../table.ts";
import { type Colour, noteDrop, oneLine, type Terminal } from "../terminal.ts";

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
	reason: string,
	{ json }: Json,
): CommandExit {
	const job = await client.api.cancelJob(id, reason);
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
