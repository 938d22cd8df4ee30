/** Jobs, artifacts and transfers as messages: the one place that knows both spellings. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
	ScenarioJobEventType,
	type ScenarioJobSchema,
	ScenarioJobState,
	type SubscribeScenarioJobEventsResponseSchema,
} from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import type { ArtifactSchema } from "@nexus-stream/client/gen/nexus/runtime/v1/common_pb";
import {
	LocalTransferKind,
	type LocalTransferSchema,
	LocalTransferState,
} from "@nexus-stream/client/gen/nexus/runtime/v1/local_pb";
import { NexusError, reasonOfFailure } from "@nexus-stream/protocol";
import type { Batch } from "../../bus/bus.ts";
import type { ArtifactInfo, TransferInfo } from "../../services/artifacts/port.ts";
import type { Job, JobEvent, JobState } from "../../services/jobs/port.ts";
import { reasonCodeOf, SCENARIO_TYPE } from "./scenario-codec.ts";

const STATE: Readonly<Record<JobState, ScenarioJobState>> = {
	submitted: ScenarioJobState.SUBMITTED,
	queued: ScenarioJobState.QUEUED,
	running: ScenarioJobState.RUNNING,
	completed: ScenarioJobState.COMPLETED,
	failed: ScenarioJobState.FAILED,
	canceled: ScenarioJobState.CANCELED,
	timeout: ScenarioJobState.TIMEOUT,
};

const EVENT_TYPE: Readonly<Record<JobEvent["type"], ScenarioJobEventType>> = {
	submitted: ScenarioJobEventType.SUBMITTED,
	queued: ScenarioJobEventType.QUEUED,
	running: ScenarioJobEventType.RUNNING,
	progress: ScenarioJobEventType.PROGRESS,
	retrying: ScenarioJobEventType.RETRYING,
	completed: ScenarioJobEventType.COMPLETED,
	failed: ScenarioJobEventType.FAILED,
	canceled: ScenarioJobEventType.CANCELED,
	timeout: ScenarioJobEventType.TIMEOUT,
};

export function jobStateOf(state: ScenarioJobState): JobState {
	for (const [name, value] of Object.entries(STATE)) if (value === state) return name as JobState;
	throw new NexusError("invalid", "states: name those that ScenarioJobState has");
}

export const artifactMessage = (artifact: ArtifactInfo): MessageInitShape<typeof ArtifactSchema> => ({
	artifactId: artifact.id,
	appId: artifact.appId,
	name: artifact.name,
	mimeType: artifact.mimeType,
	sizeBytes: BigInt(artifact.sizeBytes),
	sha256: artifact.complete ? (artifact.sha256 ?? "") : "",
	createdAt: timestampFromMs(artifact.createdAt),
	expiresAt: timestampFromMs(artifact.expiresAt),
	complete: artifact.complete,
});

type JobMessage = MessageInitShape<typeof ScenarioJobSchema>;

export const jobMessage = (job: Job): JobMessage => ({
	jobId: job.id,
	appId: job.appId,
	subjectUserId: job.userId,
	scenarioType: SCENARIO_TYPE[job.kind],
	connectorId: job.connectorId,
	modelId: job.model,
	state: STATE[job.state],
	...reasonFields(job.error),
	progressPercent: job.progress,
	attempt: job.attempt,
	retryMaxAttempts: job.attemptsMax,
	afterCrash: job.afterCrash,
	queuePosition: job.queuePosition,
	...timeFields(job),
	usage: job.usage && { inputTokens: BigInt(job.usage.input), outputTokens: BigInt(job.usage.output) },
	runId: job.runId ?? "",
	text: job.text ?? "",
	artifacts: job.artifacts.map(artifactMessage),
	embeddings: (job.embeddings ?? []).map((values) => ({ values: [...values] })),
	workflowId: job.workflowId ?? "",
	nodeId: job.nodeId ?? "",
	demo: job.demo,
});

const timeFields = ({ createdAt, startedAt, updatedAt, finishedAt }: Job) => ({
	createdAt: timestampFromMs(createdAt),
	updatedAt: timestampFromMs(updatedAt),
	startedAt: startedAt === undefined ? undefined : timestampFromMs(startedAt),
	finishedAt: finishedAt === undefined ? undefined : timestampFromMs(finishedAt),
});

/** The last failure, also while the next attempt waits. */
export function reasonFields(error: { code: string; message: string; reason?: string } | undefined) {
	if (!error) return {};
	return { reasonCode: reasonCodeOf(reasonOfFailure(error)), reason: error.message };
}

type JobEventMessage = MessageInitShape<typeof SubscribeScenarioJobEventsResponseSchema>;

export const jobEventMessages = ({ first, records }: Batch): JobEventMessage[] =>
	records.map((record, n) => {
		const { type, at, job } = JSON.parse(record) as JobEvent;
		return {
			sequence: BigInt(first + n),
			eventType: EVENT_TYPE[type],
			job: jobMessage(job),
			at: timestampFromMs(at),
		};
	});

const TRANSFER_KIND: Readonly<Record<TransferInfo["kind"], LocalTransferKind>> = {
	upload: LocalTransferKind.UPLOAD,
	download: LocalTransferKind.DOWNLOAD,
	fetch: LocalTransferKind.FETCH,
	attachment: LocalTransferKind.ATTACHMENT,
};

const TRANSFER_STATE: Readonly<Record<TransferInfo["state"], LocalTransferState>> = {
	running: LocalTransferState.RUNNING,
	paused: LocalTransferState.PAUSED,
	completed: LocalTransferState.COMPLETED,
	failed: LocalTransferState.FAILED,
	canceled: LocalTransferState.CANCELED,
};

export const transferMessage = (transfer: TransferInfo): MessageInitShape<typeof LocalTransferSchema> => ({
	transferId: transfer.id,
	appId: transfer.appId,
	kind: TRANSFER_KIND[transfer.kind],
	state: TRANSFER_STATE[transfer.state],
	artifactId: transfer.artifactId ?? "",
	name: transfer.name,
	transferredBytes: BigInt(transfer.transferredBytes),
	totalBytes: BigInt(transfer.totalBytes),
	sha256: transfer.sha256 ?? "",
	...reasonFields(transfer.error),
	startedAt: timestampFromMs(transfer.startedAt),
	updatedAt: timestampFromMs(transfer.updatedAt),
});

/** A number of bytes that a request names. */
export function bytesOf(value: bigint, name: string): number {
	if (value >= 0n && value <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(value);
	throw new NexusError("invalid", `${name} is a number of bytes from 0 on`);
}
