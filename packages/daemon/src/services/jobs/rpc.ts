/** Jobs: submitted, looked up, cancelled, listed and watched (close mode B). */

import { createHash } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
	type RuntimeAiService,
	ScenarioJobEventType,
	type ScenarioJobSchema,
	ScenarioJobState,
	type SubmitScenarioJobRequest,
	type SubscribeScenarioJobEventsResponseSchema,
} from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import { LOG_KINDS } from "@nexus-stream/protocol";
import type { Batch } from "../../bus/bus.ts";
import { afterOf, checkedReason, logStream, pageSizeOf, pageTokenOf, principalOf } from "../../edge/rpc/rpc.ts";
import { artifactMessage } from "../artifacts/codec.ts";
import type { Artifacts } from "../artifacts/port.ts";
import { inCapitals, reasonFields, SCENARIO_TYPE, stateNamed, timeOf, usageMessage } from "../kit/codec.ts";
import { scenarioRequestOf } from "../scenarios/codec.ts";
import type { AdmittedScenario, ScenarioRequest, Scenarios } from "../scenarios/port.ts";
import type { Job, JobState, Jobs } from "./port.ts";
import { noJob } from "./reads.ts";
import { jobEventOf } from "./snapshot.ts";

export interface JobRpcParts {
	jobs: Jobs;
	scenarios: Pick<Scenarios, "admit">;
	artifacts: Pick<Artifacts, "store">;
	limits: { listItemsMax: number };
}

export const jobMethods = (parts: JobRpcParts): Partial<ServiceImpl<typeof RuntimeAiService>> => ({
	async submitScenarioJob(request, context) {
		return { job: jobMessage(await submit(parts, request, context)) };
	},
	async getScenarioJob({ jobId }, context) {
		const job = await parts.jobs.find(jobId, principalOf(context));
		if (!job) throw noJob(jobId);
		return { job: jobMessage(job) };
	},
	async cancelScenarioJob({ jobId, reason }, context) {
		return { job: jobMessage(await parts.jobs.cancel(jobId, checkedReason(reason), principalOf(context))) };
	},
	async listScenarioJobs({ appId, states, pageSize, pageToken }, context) {
		const limit = pageSizeOf(pageSize, parts.limits.listItemsMax);
		const query = {
			limit,
			states: states.map(jobStateOf),
			appId: appId || undefined,
			...pageTokenOf(pageToken, "job"),
		};
		const { jobs, queued, running } = await parts.jobs.list(query, principalOf(context));
		const nextPageToken = jobs.length === limit ? jobs.at(-1)!.id : "";
		return { jobs: jobs.map(jobMessage), queued, running, nextPageToken };
	},
	async *subscribeScenarioJobEvents({ jobId, after }, context) {
		const cursor = await parts.jobs.cursor(jobId, afterOf(after), principalOf(context));
		yield* logStream(context, { cursor, messages: jobEventMessages, closes: LOG_KINDS.job.closes });
	},
});

async function submit(parts: JobRpcParts, request: SubmitScenarioJobRequest, context: HandlerContext): Promise<Job> {
	const { idempotencyKey, retryMaxAttempts, retryBackoffMs } = request;
	const metadata = (name: string) => context.requestHeader.get(name) ?? undefined;
	const asked = { ...scenarioRequestOf(request.scenario, metadata), idempotencyKey, durable: true };
	const admitted = await parts.scenarios.admit(asked, principalOf(context));
	return parts.jobs.submit(await withArtifact(parts, asked, admitted), {
		idempotencyKey,
		attemptsMax: retryMaxAttempts || undefined,
		backoffMs: retryBackoffMs || undefined,
	});
}

/** Audio that came in the body has to be there when the job runs. The same audio is the same artifact, so a repeated request is the same. */
async function withArtifact(
	{ artifacts }: JobRpcParts,
	{ audio }: ScenarioRequest,
	admitted: AdmittedScenario,
): Promise<AdmittedScenario> {
	const { spec, appId } = admitted;
	if (spec.kind !== "transcribe" || !audio) return admitted;
	const name = `audio-${createHash("sha256").update(audio.data).digest("hex").slice(0, 16)}`;
	const { id } = await artifacts.store({ appId, name, mimeType: audio.mimeType }, audio.data);
	return { ...admitted, spec: { ...spec, artifactId: id } };
}

export const jobStateOf = (state: number): JobState => stateNamed<JobState>(ScenarioJobState, state);

export const jobMessage = (job: Job): MessageInitShape<typeof ScenarioJobSchema> => ({
	...job,
	...reasonFields(job.error),
	jobId: job.id,
	subjectUserId: job.userId,
	scenarioType: SCENARIO_TYPE[job.kind],
	modelId: job.model,
	state: ScenarioJobState[inCapitals(job.state)],
	progressPercent: job.progress,
	retryMaxAttempts: job.attemptsMax,
	createdAt: timestampFromMs(job.createdAt),
	updatedAt: timestampFromMs(job.updatedAt),
	startedAt: timeOf(job.startedAt),
	finishedAt: timeOf(job.finishedAt),
	usage: job.usage && usageMessage(job.usage),
	artifacts: job.artifacts.map(artifactMessage),
	embeddings: job.embeddings?.map((values) => ({ values: [...values] })),
});

type JobEventMessage = MessageInitShape<typeof SubscribeScenarioJobEventsResponseSchema>;

export const jobEventMessages = ({ first, records }: Batch): JobEventMessage[] =>
	records.map((record, n) => {
		const { type, at, job } = jobEventOf(record);
		return {
			sequence: BigInt(first + n),
			eventType: ScenarioJobEventType[inCapitals(type)],
			job: jobMessage(job),
			at: timestampFromMs(at),
		};
	});
