/** One attempt of a job: calls the provider and stores output that is not text as artifacts. */

import { NexusError, newRunId, toNexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { extensionOf } from "../../std/content-type.ts";
import type { Write } from "../../std/write.ts";
import type { ArtifactInfo, Artifacts } from "../artifacts/port.ts";
import type { Media } from "../connectors/port.ts";
import { recordedError } from "../kit/durable-work.ts";
import type { AdmittedScenario, ScenarioOutcome, ScenarioSpec, Scenarios, StoredScenario } from "../scenarios/port.ts";
import type { Job, JobLimits } from "./port.ts";

export interface AttemptDeps {
	scenarios: Pick<Scenarios, "start" | "readmit" | "textSoFar">;
	artifacts: Pick<Artifacts, "store" | "whole">;
	limits: Pick<JobLimits, "inlineBytesMax" | "audioBytesMax" | "cancelGraceMs">;
	clock: Clock;
}

/** Fields that an attempt adds to the job's snapshot. */
export type Findings = Partial<
	Pick<Job, "text" | "artifacts" | "embeddings" | "usage" | "demo" | "runId" | "progress">
>;

export interface NewAttempt {
	scenario: StoredScenario;
	/** Aborted by the time limit, or by the caller that stops the attempt. */
	stop: AbortController;
	/** How long it is waited for once it was stopped; asked for at the stop. */
	graceMs(): number;
	/** Reports the results so far. */
	found(findings: Findings): void;
	/** Writes that commit with the run's beginning, so that the job knows its run even after a crash. */
	begins(runId: string): readonly Write[];
}

interface JobAttempt extends Pick<NewAttempt, "found" | "begins"> {
	admitted: AdmittedScenario;
	signal: AbortSignal;
}

/** Rejects with why it failed, or with the reason of its stop; what was found before stays. */
export function attempt(deps: AttemptDeps, { scenario, stop, graceMs, ...reports }: NewAttempt): Promise<void> {
	const { timeoutMs, spec } = scenario;
	const isRun = spec.kind === "text" || spec.kind === "speech";
	// A run has the same limit itself, and its log should be what says so.
	const limitMs = isRun ? timeoutMs + deps.limits.cancelGraceMs : timeoutMs;
	const work = async () => {
		const admitted = await deps.scenarios.readmit(scenario);
		stop.signal.throwIfAborted();
		await perform(deps, { ...reports, admitted, signal: stop.signal });
	};
	return bounded(work(), { clock: deps.clock, limitMs, graceMs, stop });
}

type SpecOf<Kind extends ScenarioSpec["kind"]> = Extract<ScenarioSpec, { kind: Kind }>;

async function perform(deps: AttemptDeps, attempted: JobAttempt): Promise<void> {
	const { spec } = attempted.admitted;
	switch (spec.kind) {
		case "text":
		case "speech":
			return stream(deps, attempted);
		case "image":
			return draw(deps, attempted, spec);
		case "embed":
			return embed(deps, attempted, spec);
		case "transcribe":
			return transcribe(deps, attempted, spec);
		default:
			return spec satisfies never;
	}
}

async function stream(deps: AttemptDeps, attempted: JobAttempt): Promise<void> {
	const { admitted, signal, found, begins } = attempted;
	const runId = newRunId();
	const run = await deps.scenarios.start(admitted, { patient: true, runId, begin: begins(runId) });
	found({ runId, demo: admitted.provider.demo });
	// The daemon's own stop ends runs by itself, and says so in their logs.
	const stop = () => {
		if (toNexusError(signal.reason).reason !== "STOPPING") run.abort();
	};
	if (signal.aborted) stop();
	signal.addEventListener("abort", stop, { once: true });
	try {
		// Only a text can be read from the job while it grows.
		const ended = await run.outcome(admitted.spec.kind === "text" ? () => found({}) : undefined);
		await keep(deps, attempted, ended);
		const { status, error } = ended;
		if (status === "completed") return;
		throw recordedError(error, status === "aborted" ? status : "engine_failed", `the run ended as ${status}`);
	} finally {
		signal.removeEventListener("abort", stop);
	}
}

/** Reads the text that the run has written so far from its log. Returns undefined before the first text, and when the text exceeds the size of a message. */
export async function textSoFar(
	{ scenarios, limits }: AttemptDeps,
	{ kind, runId }: Pick<Job, "kind" | "runId">,
): Promise<string | undefined> {
	if (kind !== "text" || runId === undefined) return undefined;
	// In the worst case a character is four bytes.
	return (await scenarios.textSoFar(runId, limits.inlineBytesMax / 4)) || undefined;
}

/** The text in the log of a run that was cut off by the end of its daemon. */
export async function cutText(
	deps: AttemptDeps,
	{ kind, runId, appId }: Pick<Job, "kind" | "runId" | "appId">,
): Promise<Findings> {
	if (kind !== "text" || runId === undefined) return {};
	const text = await deps.scenarios.textSoFar(runId, Number.POSITIVE_INFINITY);
	return text === undefined ? {} : kept(deps, appId, text);
}

async function keep(deps: AttemptDeps, { admitted, found }: JobAttempt, ended: ScenarioOutcome): Promise<void> {
	found({ usage: ended.usage });
	if (admitted.spec.kind === "text") found(await kept(deps, admitted.appId, ended.text));
	if (!ended.audio || ended.status !== "completed") return;
	found({ artifacts: [await storeMedia(deps, admitted.appId, "speech", ended.audio)] });
}

/** A text that is too large for a message becomes an artifact. */
async function kept({ artifacts, limits }: AttemptDeps, appId: string, text: string): Promise<Findings> {
	const bytes = Buffer.from(text);
	if (bytes.length <= limits.inlineBytesMax) return { text };
	const artifact = await artifacts.store({ appId, name: "text.txt", mimeType: "text/plain; charset=utf-8" }, bytes);
	return { text: "", artifacts: [artifact] };
}

async function draw(deps: AttemptDeps, { admitted, signal, found }: JobAttempt, spec: SpecOf<"image">): Promise<void> {
	const { provider } = admitted;
	found({ demo: provider.demo });
	const { kind: _, ...request } = spec;
	const images = await provider.image({ ...request, model: admitted.model }, signal);
	const artifacts: ArtifactInfo[] = [];
	for (const image of images) {
		signal.throwIfAborted();
		artifacts.push(await storeMedia(deps, admitted.appId, `image-${artifacts.length + 1}`, image));
		found({ artifacts: [...artifacts], progress: Math.floor((100 * artifacts.length) / images.length) });
	}
}

/** Inputs per provider call, so that progress can be reported between calls. */
const INPUTS_PER_CALL = 64;

async function embed(deps: AttemptDeps, { admitted, signal, found }: JobAttempt, spec: SpecOf<"embed">): Promise<void> {
	const { provider } = admitted;
	found({ demo: provider.demo });
	const embeddings: (readonly number[])[] = [];
	let input = 0;
	for (let from = 0; from < spec.inputs.length; from += INPUTS_PER_CALL) {
		signal.throwIfAborted();
		const inputs = spec.inputs.slice(from, from + INPUTS_PER_CALL);
		const { vectors, inputTokens } = await provider.embed({ model: admitted.model, inputs }, signal);
		embeddings.push(...vectors);
		input = input < 0 || inputTokens < 0 ? -1 : input + inputTokens;
		found({ progress: Math.floor((100 * embeddings.length) / spec.inputs.length) });
	}
	found({ usage: { input, output: 0 } });
	const json = Buffer.from(JSON.stringify(embeddings));
	if (json.length <= deps.limits.inlineBytesMax) return found({ embeddings });
	const file = { appId: admitted.appId, name: "embeddings.json", mimeType: "application/json" };
	found({ artifacts: [await deps.artifacts.store(file, json)] });
}

async function transcribe(
	deps: AttemptDeps,
	{ admitted, signal, found }: JobAttempt,
	{ artifactId, mimeType, language }: SpecOf<"transcribe">,
): Promise<void> {
	const { appId, model, provider } = admitted;
	const { artifact, data } = await deps.artifacts.whole(artifactId, appId, deps.limits.audioBytesMax);
	found({ demo: provider.demo });
	const audio = { mimeType: mimeType ?? artifact.mimeType, data };
	const { text } = await provider.transcribe({ model, audio, language }, signal);
	found(await kept(deps, appId, text));
}

const storeMedia = ({ artifacts }: AttemptDeps, appId: string, name: string, { mimeType, data }: Media) =>
	artifacts.store({ appId, name: `${name}.${extensionOf(mimeType)}`, mimeType }, data);

/** Rejects with the reason of the stop when the work does not end within its time and its grace (I12). What it does afterwards is ignored. */
function bounded<T>(
	work: Promise<T>,
	{ clock, limitMs, graceMs, stop }: Pick<NewAttempt, "graceMs" | "stop"> & { clock: Clock; limitMs: number },
): Promise<T> {
	const { promise, resolve, reject } = Promise.withResolvers<T>();
	const { signal } = stop;
	let giveUp = () => {};
	const limit = clock.after(limitMs, () => {
		stop.abort(new NexusError("timeout", `it took longer than ${limitMs} ms`));
	});
	const stopped = () => {
		giveUp = clock.after(graceMs(), () => reject(signal.reason as Error));
	};
	if (signal.aborted) stopped();
	signal.addEventListener("abort", stopped, { once: true });
	work.then(resolve, (cause: unknown) => reject(signal.aborted ? (signal.reason as Error) : toNexusError(cause)));
	return promise.finally(() => {
		limit();
		giveUp();
		signal.removeEventListener("abort", stopped);
	});
}
