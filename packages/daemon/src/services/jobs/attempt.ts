/** One attempt of a job: calls the provider and stores output that is not text as artifacts. */

import { decodeFrame, type ErrorCode, isErrorCode, NexusError, newRunId, toNexusError } from "@nexus-stream/protocol";
import { type Batch, follow } from "../../bus/bus.ts";
import { extensionOf } from "../../std/content-type.ts";
import type { Write } from "../../std/write.ts";
import type { ArtifactInfo, Artifacts } from "../artifacts/port.ts";
import type { Media } from "../connectors/port.ts";
import type { Principal } from "../kit/principal.ts";
import type { AdmittedScenario, ScenarioOutcome, ScenarioSpec, Scenarios } from "../scenarios/port.ts";
import type { JobLimits } from "./limits.ts";
import type { Job } from "./port.ts";

export interface AttemptDeps {
	scenarios: Pick<Scenarios, "start" | "provider" | "facts" | "cursor" | "abort">;
	artifacts: Pick<Artifacts, "store" | "whole">;
	limits: Pick<JobLimits, "inlineBytesMax" | "audioBytesMax">;
}

/** Fields that an attempt adds to the job's snapshot. */
export type Findings = Partial<
	Pick<Job, "text" | "artifacts" | "embeddings" | "usage" | "demo" | "runId" | "progress">
>;

export interface JobAttempt {
	admitted: AdmittedScenario;
	signal: AbortSignal;
	/** Reports the results so far. */
	found(findings: Findings): void;
	/** Writes that commit with the run's beginning, so that the job knows its run even after a crash. */
	begins(runId: string): readonly Write[];
}

/** The daemon itself: what it asks for was admitted when the job was submitted. */
export const DAEMON: Principal = { owner: true, address: "local", isPrivate: true };

type SpecOf<Kind extends ScenarioSpec["kind"]> = Extract<ScenarioSpec, { kind: Kind }>;

/** Rejects with why it failed; what was found before stays. */
export async function perform(deps: AttemptDeps, attempt: JobAttempt): Promise<void> {
	const { spec } = attempt.admitted;
	switch (spec.kind) {
		case "text":
		case "speech":
			return stream(deps, attempt);
		case "image":
			return draw(deps, attempt, spec);
		case "embed":
			return embed(deps, attempt, spec);
		case "transcribe":
			return transcribe(deps, attempt, spec);
		default:
			return spec satisfies never;
	}
}

async function stream(deps: AttemptDeps, attempt: JobAttempt): Promise<void> {
	const { scenarios } = deps;
	const { admitted, signal, found } = attempt;
	const id = newRunId();
	const { runId, outcome } = await scenarios.start(admitted, { patient: true, runId: id, begin: attempt.begins(id) });
	const { demo } = await scenarios.facts(runId, DAEMON);
	found({ runId, demo });
	// The daemon's own stop ends runs by itself, and says so in their logs.
	const stop = () => {
		if (toNexusError(signal.reason).reason !== "STOPPING") void scenarios.abort(runId, DAEMON);
	};
	if (signal.aborted) stop();
	signal.addEventListener("abort", stop, { once: true });
	try {
		const over = new AbortController();
		const told = admitted.spec.kind === "text" ? tellText(deps, attempt, runId, over.signal) : undefined;
		const ended = await outcome.finally(() => over.abort());
		await told;
		await keep(deps, attempt, ended);
		if (ended.status !== "completed") throw failureOf(ended);
	} finally {
		signal.removeEventListener("abort", stop);
	}
}

/** Reports that the text grows; the text itself is in the run's log. An unreadable log does not fail the job: the outcome has the whole text. */
async function tellText({ scenarios }: AttemptDeps, { found }: JobAttempt, runId: string, over: AbortSignal) {
	try {
		for await (const _ of follow(await scenarios.cursor(runId, 0, DAEMON), over)) found({});
	} catch (cause) {
		if (!(cause instanceof NexusError)) throw cause;
	}
}

/** The text so far, from its run's log; undefined when there is none yet, or when it is longer than a message may be. */
export async function textSoFar(deps: AttemptDeps, job: Pick<Job, "kind" | "runId">): Promise<string | undefined> {
	// In the worst case a character is four bytes.
	const text = await loggedText(deps, job, deps.limits.inlineBytesMax / 4);
	return text === "" ? undefined : text;
}

/** Keeps what the log has of a text whose run was cut off by the end of its daemon. */
export async function keepCutText(
	deps: AttemptDeps,
	job: Pick<Job, "kind" | "runId" | "appId">,
	found: JobAttempt["found"],
): Promise<void> {
	const text = await loggedText(deps, job, Number.POSITIVE_INFINITY);
	if (text !== undefined) await keepText(deps, job.appId, text, found);
}

async function loggedText(
	{ scenarios }: AttemptDeps,
	{ kind, runId }: Pick<Job, "kind" | "runId">,
	charsMax: number,
): Promise<string | undefined> {
	if (kind !== "text" || runId === undefined) return undefined;
	const cursor = await scenarios.cursor(runId, 0, DAEMON).catch(() => undefined);
	if (!cursor) return undefined;
	const text = new TextOf();
	try {
		for (let batch = await cursor.next(); batch; batch = await cursor.next())
			if (text.take(batch) > charsMax) return undefined;
	} finally {
		cursor.close();
	}
	return text.text;
}

class TextOf {
	text = "";
	readonly #streams = new Set<string>();

	/** Returns how many characters there are. */
	take({ records }: Batch): number {
		for (const record of records) {
			const frame = decodeFrame(record);
			if (frame.type === "stream.begin" && frame.modality === "text") this.#streams.add(frame.message_id);
			else if (frame.type === "stream.chunk" && this.#streams.has(frame.message_id)) this.text += frame.payload;
		}
		return this.text.length;
	}
}

async function keep(deps: AttemptDeps, { admitted, found }: JobAttempt, ended: ScenarioOutcome): Promise<void> {
	found({ usage: ended.usage });
	if (admitted.spec.kind === "text") await keepText(deps, admitted.appId, ended.text, found);
	if (!ended.audio || ended.status !== "completed") return;
	found({ artifacts: [await storeMedia(deps, admitted.appId, "speech", ended.audio)] });
}

async function keepText(
	{ artifacts, limits }: AttemptDeps,
	appId: string,
	text: string,
	found: JobAttempt["found"],
): Promise<void> {
	const bytes = Buffer.from(text);
	if (bytes.length <= limits.inlineBytesMax) return found({ text });
	const artifact = await artifacts.store({ appId, name: "text.txt", mimeType: "text/plain; charset=utf-8" }, bytes);
	found({ text: "", artifacts: [artifact] });
}

const failureOf = ({ status, error }: ScenarioOutcome): NexusError => {
	const { code = "", message = `the run ended as ${status}`, reason } = error ?? {};
	const known: ErrorCode = isErrorCode(code) ? code : status === "aborted" ? "aborted" : "engine_failed";
	return new NexusError(known, message, reason === undefined ? {} : { reason });
};

async function draw(deps: AttemptDeps, { admitted, signal, found }: JobAttempt, spec: SpecOf<"image">): Promise<void> {
	const provider = await deps.scenarios.provider(admitted);
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
	const provider = await deps.scenarios.provider(admitted);
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
	const json = Buffer.from(JSON.stringify(embeddings));
	const { appId } = admitted;
	found({
		usage: { input, output: 0 },
		...(json.length <= deps.limits.inlineBytesMax
			? { embeddings }
			: {
					artifacts: [
						await deps.artifacts.store({ appId, name: "embeddings.json", mimeType: "application/json" }, json),
					],
				}),
	});
}

async function transcribe(
	deps: AttemptDeps,
	{ admitted, signal, found }: JobAttempt,
	{ artifactId, mimeType, language }: SpecOf<"transcribe">,
): Promise<void> {
	const { appId, model } = admitted;
	const { artifact, data } = await deps.artifacts.whole(artifactId, appId, deps.limits.audioBytesMax);
	const provider = await deps.scenarios.provider(admitted);
	found({ demo: provider.demo });
	const audio = { mimeType: mimeType ?? artifact.mimeType, data };
	const { text } = await provider.transcribe({ model, audio, language }, signal);
	await keepText(deps, appId, text, found);
}

const storeMedia = ({ artifacts }: AttemptDeps, appId: string, name: string, { mimeType, data }: Media) =>
	artifacts.store({ appId, name: `${name}.${extensionOf(mimeType)}`, mimeType }, data);
