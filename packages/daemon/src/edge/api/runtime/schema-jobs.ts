/** The shapes of the API about jobs and artifacts. */

import type * as wire from "@nexus-stream/protocol";
import { z } from "zod";
import { beforeId, component, count, type Fields, limit, offset, time } from "../schema.ts";

const id = z.string().min(1).max(128);
const state = z.enum(["submitted", "queued", "running", "completed", "failed", "canceled", "timeout"]);

export const jobParams = z.object({ job: id });
export const jobsQuery = z.object({
	app_id: z.string().min(1).max(128).optional().describe("Only this application's."),
	state: state.optional(),
	limit,
	before: beforeId("job", "the id of a job").describe("A job's id: only older ones."),
});
export const jobAfterQuery = z.object({
	after: offset
		.optional()
		.describe(
			"Continue strictly after this offset; 0 = from the beginning; absent = the newest event first. The larger of it and Last-Event-ID counts.",
		),
});
export const artifactParams = z.object({ artifact: id });

const ArtifactView = component(
	"Artifact",
	z.object({
		artifact_id: z.string(),
		app_id: z.string(),
		name: z.string(),
		mime_type: z.string(),
		size_bytes: count,
		sha256: z.string().exactOptional().describe("In hex, once it is whole."),
		created_at: time,
		expires_at: time,
		complete: z.boolean(),
	} satisfies Fields<wire.ArtifactJson>),
);

export const JobView = component(
	"Job",
	z.object({
		job_id: z.string(),
		app_id: z.string(),
		user_id: z.string(),
		kind: z.enum(["text", "speech", "image", "embed", "transcribe"]),
		connector_id: z.string(),
		model: z.string(),
		state,
		error: z
			.object({
				code: z.string(),
				message: z.string(),
				reason: z.custom<wire.Reason>((value) => typeof value === "string").exactOptional(),
			})
			.exactOptional()
			.describe("Of the last attempt, also while the next one waits."),
		progress_percent: z.int().min(-1).max(100).describe("-1 = not known."),
		attempt: count.describe("The first is 1."),
		attempts_max: count,
		after_crash: z
			.boolean()
			.describe(
				"This attempt was begun because the daemon died during the one before: the call may have been made twice.",
			),
		queue_position: count.describe("How many are before it, while it is queued."),
		created_at: time,
		started_at: time.exactOptional(),
		updated_at: time,
		finished_at: time.exactOptional(),
		usage: z
			.object({ input: z.int(), output: z.int() })
			.exactOptional()
			.describe("Tokens; -1 = the model did not say."),
		run_id: z.string().exactOptional().describe("The run of a text or of speech."),
		text: z.string().exactOptional(),
		artifacts: z.array(ArtifactView),
		embeddings: z.array(z.array(z.number())).exactOptional(),
		workflow_id: z.string().exactOptional(),
		node_id: z.string().exactOptional(),
		demo: z.boolean().describe("No model answered, but the built-in demonstration."),
	} satisfies Fields<wire.JobJson>),
);

export const JobList = component(
	"JobList",
	z.object({ jobs: z.array(JobView), queued: count, running: count } satisfies Fields<wire.JobListJson>),
);

export const JobCancellation = component(
	"JobCancellation",
	z.object({ reason: z.string().max(1000).exactOptional() } satisfies Fields<wire.JobCancellation>),
);
