/** `nexus jobs`: the queue of model calls: list, show, cancel and watch them. */

import {
	type ScenarioJob,
	ScenarioJobSchema,
	ScenarioType,
	ScenarioJobState as State,
	SubscribeScenarioJobEventsResponseSchema,
} from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import { errorCodeOf } from "@nexus-stream/client/runtime";
import { exitCodeOf } from "@nexus-stream/protocol";
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
import { enumValue, jsonOf, runtimeOf, sinceTime, wordOf } from "../runtime.ts";
import { table } from "../table.ts";
import { type Colour, oneLine, type Terminal } from "../terminal.ts";

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
	context: CommandContext,
	{ json, state, app = "", limit }: Json & { state?: string; app?: string; limit: number },
): CommandExit {
	const { terminal } = context;
	const { jobs, queued, running } = await runtimeOf(context).ai.listScenarioJobs({
		appId: app,
		pageSize: limit,
		states: state === undefined ? [] : [enumValue(State, state, "--state")],
	});
	if (jobs.length === 0) terminal.note(state || app ? "there is no such job" : "there are no jobs");
	if (json) for (const job of jobs) terminal.json(jsonOf(ScenarioJobSchema, job));
	else
		table(
			terminal,
			["JOB", "STATE", "KIND", "SUBMITTED", "APP", "MODEL", "NOTE"],
			jobs.map((job) => [
				job.jobId,
				wordOf(State, job.state),
				KINDS[job.scenarioType] ?? "",
				sinceTime(job.createdAt),
				oneLine(job.appId, 40),
				oneLine(job.modelId, 40),
				notesOf(job),
			]),
			["APP", "MODEL", "SUBMITTED"],
		);
	if (terminal.interactive && !json) terminal.note(terminal.dim(`${queued} waiting, ${running} running`));
	return 0;
}

const KINDS: Readonly<Partial<Record<ScenarioType, string>>> = {
	[ScenarioType.TEXT_GENERATE]: "text",
	[ScenarioType.SPEECH_SYNTHESIZE]: "speech",
	[ScenarioType.IMAGE_GENERATE]: "image",
	[ScenarioType.TEXT_EMBED]: "embed",
	[ScenarioType.SPEECH_TRANSCRIBE]: "transcribe",
};

export async function showJob(context: CommandContext, jobId: string, { json }: Json): CommandExit {
	const { terminal } = context;
	const job = jobIn(await runtimeOf(context).ai.getScenarioJob({ jobId }));
	if (json) terminal.json(jsonOf(ScenarioJobSchema, job));
	else {
		terminal.note(stateLine(terminal, job));
		showResult(terminal, job);
	}
	return 0;
}

export async function cancelJob(
	context: CommandContext,
	jobId: string,
	words: readonly string[],
	{ json }: Json,
): CommandExit {
	const { terminal } = context;
	const job = jobIn(await runtimeOf(context).ai.cancelScenarioJob({ jobId, reason: words.join(" ") }));
	if (json) terminal.json(jsonOf(ScenarioJobSchema, job));
	else terminal.out(`${job.jobId}: ${wordOf(State, job.state)}\n`);
	return 0;
}

/** The daemon always sends it. */
const jobIn = ({ job }: { job?: ScenarioJob | undefined }): ScenarioJob => job!;

export async function watchJob(
	context: CommandContext,
	jobId: string,
	{ json, after }: Json & { after?: number },
): CommandExit {
	const { host, terminal } = context;
	const left = new AbortController();
	onInterrupt(host, () => left.abort());
	const { ai } = runtimeOf(context);
	const place = after === undefined ? {} : { after: BigInt(after) };
	let newest: ScenarioJob | undefined;
	let shown = "";
	try {
		for await (const event of ai.subscribeScenarioJobEvents({ jobId, ...place }, { signal: left.signal })) {
			newest = jobIn(event);
			if (json) terminal.json(jsonOf(SubscribeScenarioJobEventsResponseSchema, event));
			else {
				// Each snapshot replaces the one before; the same line twice says nothing.
				const line = stateLine(terminal, newest);
				if (line !== shown) terminal.status(line);
				shown = line;
			}
		}
	} catch (cause) {
		if (!left.signal.aborted) throw cause;
		terminal.note(`${jobId} goes on`);
		terminal.note(`  hint: \`nexus jobs watch ${jobId}\` follows it, \`nexus jobs cancel ${jobId}\` ends it`);
		return exitCodeOf("aborted");
	}
	const job = newest ?? jobIn(await ai.getScenarioJob({ jobId }));
	if (!json) showResult(terminal, job);
	return exitCodeFor(job);
}

const COLOUR: Readonly<Partial<Record<State, Colour>>> = {
	[State.COMPLETED]: "green",
	[State.FAILED]: "red",
	[State.TIMEOUT]: "red",
	[State.RUNNING]: "yellow",
};

function stateLine(terminal: Terminal, job: ScenarioJob): string {
	const colour = COLOUR[job.state];
	const word = wordOf(State, job.state);
	const state = colour ? terminal.paint(colour, word) : terminal.dim(word);
	return [job.jobId, state, terminal.dim(notesOf(job))].filter(Boolean).join("  ");
}

const notesOf = (job: ScenarioJob): string =>
	[
		job.state === State.QUEUED ? `${job.queuePosition} before it` : "",
		job.state === State.RUNNING && job.progressPercent >= 0 ? `${job.progressPercent} %` : "",
		job.attempt > 1 ? `attempt ${job.attempt} of ${job.retryMaxAttempts}${job.afterCrash ? " after a crash" : ""}` : "",
		job.demo ? "demo" : "",
		job.state === State.COMPLETED ? "" : oneLine(job.reason, 200),
	]
		.filter(Boolean)
		.join(", ");

/** Text goes to stdout as it is, so that it can be piped. */
function showResult(terminal: Terminal, { text, artifacts, embeddings }: ScenarioJob): void {
	if (text) terminal.out(text.endsWith("\n") ? text : `${text}\n`);
	if (embeddings.length > 0) terminal.out(`${JSON.stringify(embeddings.map(({ values }) => values))}\n`);
	for (const { artifactId, name, mimeType, sizeBytes } of artifacts)
		terminal.out(`${artifactId}\t${oneLine(mimeType, 80)}\t${sizeBytes} bytes\t${oneLine(name, 255)}\n`);
}

function exitCodeFor({ state, reasonCode }: ScenarioJob): number {
	if (state === State.COMPLETED) return 0;
	if (state === State.CANCELED) return exitCodeOf("aborted");
	return exitCodeOf(errorCodeOf(reasonCode));
}
