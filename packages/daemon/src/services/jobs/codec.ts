/** Jobs and their events as messages of the contract. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
	ScenarioJobEventType,
	type ScenarioJobSchema,
	ScenarioJobState,
	type SubscribeScenarioJobEventsResponseSchema,
} from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import { NexusError } from "@nexus-stream/protocol";
import type { Batch } from "../../bus/bus.ts";
import { artifactMessage } from "../artifacts/codec.ts";
import { reasonFields, SCENARIO_TYPE } from "../kit/codec.ts";
import type { Job, JobEvent, JobState } from "./port.ts";

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
