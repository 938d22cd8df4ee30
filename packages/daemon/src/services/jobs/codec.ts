/** Jobs and their events as messages of the contract. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
	ScenarioJobEventType,
	type ScenarioJobSchema,
	ScenarioJobState,
	type SubscribeScenarioJobEventsResponseSchema,
} from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import type { Batch } from "../../bus/bus.ts";
import { artifactMessage } from "../artifacts/codec.ts";
import { inCapitals, reasonFields, SCENARIO_TYPE, stateNamed, timeFields } from "../kit/codec.ts";
import type { Job, JobEvent, JobState } from "./port.ts";

export const jobStateOf = (state: number): JobState => stateNamed<JobState>(ScenarioJobState, state);

type JobMessage = MessageInitShape<typeof ScenarioJobSchema>;

export const jobMessage = (job: Job): JobMessage => ({
	jobId: job.id,
	appId: job.appId,
	subjectUserId: job.userId,
	scenarioType: SCENARIO_TYPE[job.kind],
	connectorId: job.connectorId,
	modelId: job.model,
	state: ScenarioJobState[inCapitals(job.state)],
	...reasonFields(job.error),
	progressPercent: job.progress,
	attempt: job.attempt,
	retryMaxAttempts: job.attemptsMax,
	afterCrash: job.afterCrash,
	queuePosition: job.queuePosition,
	createdAt: timestampFromMs(job.createdAt),
	updatedAt: timestampFromMs(job.updatedAt),
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

type JobEventMessage = MessageInitShape<typeof SubscribeScenarioJobEventsResponseSchema>;

export const jobEventMessages = ({ first, records }: Batch): JobEventMessage[] =>
	records.map((record, n) => {
		const { type, at, job } = JSON.parse(record) as JobEvent;
		return {
			sequence: BigInt(first + n),
			eventType: ScenarioJobEventType[inCapitals(type)],
			job: jobMessage(job),
			at: timestampFromMs(at),
		};
	});
