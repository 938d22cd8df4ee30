/** `nexus jobs`: the queue of model calls: list, show, cancel and watch them. */

import {
	type ScenarioJob,
	ScenarioJobSchema,
	ScenarioType,
	ScenarioJobState as State,
	SubscribeScenarioJobEventsResponseSchema,
} from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import {
	type CommandContext,
	type Declarations,
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
import { oneLine, type Terminal, tell } from "../terminal.ts";

export const declare: Declarations = {
	jobs(command, local) {
		command.addHelpText("after", "\nExamples:\n  nexus jobs --state running\n  nexus jobs watch job_01JD…");
		remoteRows(command.command("list", { isDefault: true }))
			.description("list jobs, newest first, and how many wait and run")
			.option("--state <state>", "submitted, queued, running, completed, failed, canceled or timeout")
			.option("--app <app>", "only this application's")
			.option("--limit <count>", "at most this many", wholeNumber, 20)
			.action(withDaemon(local, listJobs));
		remoteJson(command.command("show"))
			.description("show a job and its result so far")
			.argument("<job>", "its id")
			.action(withDaemon(local, showJob));
		remoteJson(command.command("watch"), "print the events as NDJSON")
			.description("follow a job to its end; Ctrl-C leaves it running")
			.argument("<job>", "its id")
			.option("--after <offset>", "begin after this offset; 0 = from its beginning", wholeNumber)
			.action(withDaemon(local, watchJob));
		remoteJson(command.command("cancel"))
			.description("end a job")
			.argument("<job>", "its id")
			.argument("[reason...]", "why, for the record")
			.action(withDaemon(local, cancelJob));
	},
};

async function listJobs(context: CommandContext, options: WorkListOptions) {
	const { terminal } = context;
	const { jobs, queued, running } = await runtimeOf(context).ai.listScenarioJobs(workQuery(State, options));
	list(terminal, options.json, jobs, {
		none: options.state || options.app ? "there is no such job" : "there are no jobs",
		json: (job) => jsonOf(ScenarioJobSchema, job),
		columns: {
			JOB: (job) => job.jobId,
			STATE: (job) => wordOf(State, job.state),
			KIND: (job) => KINDS[job.scenarioType] ?? "",
			SUBMITTED: (job) => sinceTime(job.createdAt),
			APP: (job) => oneLine(job.appId, 40),
			MODEL: (job) => oneLine(job.modelId, 40),
			NOTE: notesOf,
		},
		optional: ["APP", "MODEL", "SUBMITTED"],
	});
	if (terminal.interactive && !options.json) terminal.note(terminal.dim(`${queued} waiting, ${running} running`));
}

const KINDS: Readonly<Partial<Record<ScenarioType, string>>> = {
	[ScenarioType.TEXT_GENERATE]: "text",
	[ScenarioType.SPEECH_SYNTHESIZE]: "speech",
	[ScenarioType.IMAGE_GENERATE]: "image",
	[ScenarioType.TEXT_EMBED]: "embed",
	[ScenarioType.SPEECH_TRANSCRIBE]: "transcribe",
};

async function showJob(context: CommandContext, jobId: string, { json }: JsonOption) {
	const { terminal } = context;
	const job = jobIn(await runtimeOf(context).ai.getScenarioJob({ jobId }));
	if (json) return terminal.json(jsonOf(ScenarioJobSchema, job));
	terminal.note(stateLine(terminal, job));
	showResult(terminal, job);
}

async function cancelJob(context: CommandContext, jobId: string, words: readonly string[], { json }: JsonOption) {
	const job = jobIn(await runtimeOf(context).ai.cancelScenarioJob({ jobId, reason: words.join(" ") }));
	tell(context.terminal, json, jsonOf(ScenarioJobSchema, job), `${job.jobId}: ${wordOf(State, job.state)}`);
}

/** The daemon always sends it. */
const jobIn = ({ job }: { job?: ScenarioJob | undefined }): ScenarioJob => job!;

async function watchJob(context: CommandContext, jobId: string, { json, after }: JsonOption & { after?: number }) {
	const { terminal } = context;
	const { ai } = runtimeOf(context);
	let newest: ScenarioJob | undefined;
	let shown = "";
	const left = await followWork(
		context,
		"jobs",
		jobId,
		(signal) => ai.subscribeScenarioJobEvents({ jobId, ...afterOf(after) }, { signal }),
		(event) => {
			newest = jobIn(event);
			if (json) return terminal.json(jsonOf(SubscribeScenarioJobEventsResponseSchema, event));
			// Each snapshot replaces the one before; the same line twice says nothing.
			const line = stateLine(terminal, newest);
			if (line !== shown) terminal.status(line);
			shown = line;
		},
	);
	if (left !== undefined) return left;
	const job = newest ?? jobIn(await ai.getScenarioJob({ jobId }));
	if (!json) showResult(terminal, job);
	return exitCodeOfWork(wordOf(State, job.state), job.reasonCode);
}

const stateLine = (terminal: Terminal, job: ScenarioJob): string =>
	[job.jobId, paintState(terminal, wordOf(State, job.state)), terminal.dim(notesOf(job))].filter(Boolean).join("  ");

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
