/** The handlers about jobs and artifacts, and how they are told as JSON. */

import { type ArtifactJson, type JobEventJson, type JobJson, NexusError, type Reason } from "@nexus-stream/protocol";
import type { Batch } from "../../../bus/bus.ts";
import type { ArtifactInfo } from "../../../services/artifacts/port.ts";
import type { Job, JobEvent } from "../../../services/jobs/port.ts";
import type { Services } from "../../../services/services.ts";
import { defined } from "../../../std/defined.ts";
import { principalOfCaller, whenEnded } from "../../http/gate.ts";
import type { Handlers } from "../../http/handler.ts";
import type { EdgeDeps, EdgeLimits } from "../../port.ts";
import { resumeAfter, SSE, type StreamFormat } from "../../stream/stream.ts";
import { sendArtifact } from "../artifact-file.ts";
import { type Streaming, sendStream } from "../send-stream.ts";
import { JOB_ROUTES } from "./routes-jobs.ts";

const LIMIT_DEFAULT = 50;

interface JobHandlerParts extends Streaming {
	deps: EdgeDeps;
	limits: EdgeLimits;
}

export function jobHandlers({ deps, limits, ...streaming }: JobHandlerParts) {
	return {
		async listJobs({ query: { app_id: appId, state, limit = LIMIT_DEFAULT, before } }, { caller }) {
			const query = { limit: Math.min(limit, limits.listItemsMax), appId, states: state && [state], before };
			const { jobs, queued, running } = await servicesOf(deps).jobs.list(query, principalOfCaller(caller));
			return { jobs: jobs.map(jobView), queued, running };
		},
		async getJob({ params: { job } }, { caller }) {
			const found = await servicesOf(deps).jobs.find(job, principalOfCaller(caller));
			if (!found) throw new NexusError("not_found", `there is no job ${job}`);
			return jobView(found);
		},
		async cancelJob({ params: { job }, body: { reason = "" } }, { caller }) {
			return jobView(await servicesOf(deps).jobs.cancel(job, reason, principalOfCaller(caller)));
		},
		async streamJob({ params: { job }, query }, { caller, headers, outgoing }) {
			streaming.admitStream();
			const after = resumeAfter(headers.get("last-event-id"), query.after);
			const cursor = await servicesOf(deps).jobs.cursor(job, after, principalOfCaller(caller));
			if (after === undefined || cursor.offset >= after)
				return sendStream(streaming, outgoing, { cursor, dialect: JOB_EVENTS, closes: JOB_ROUTES.streamJob.close });
			// It has ended and the reader has all of it: a browser asks again until it is told so.
			cursor.close();
			return new Response(null, { status: 204 });
		},
		async getArtifact({ params: { artifact } }, { caller, headers, outgoing }) {
			const { artifacts } = servicesOf(deps);
			const found = await artifacts.find(artifact, principalOfCaller(caller));
			if (!found) throw new NexusError("not_found", `there is no artifact ${artifact}`);
			whenEnded(caller, outgoing, () => outgoing.destroy());
			return sendArtifact(artifacts, found, headers.get("range"));
		},
	} satisfies Partial<Handlers>;
}

function servicesOf({ services }: EdgeDeps): Services {
	if (!services) throw new NexusError("unavailable", "this daemon has no jobs");
	return services;
}

const eventView = ({ type, at, job }: JobEvent): JobEventJson => ({ type, at, job: jobView(job) });

const eventText = ({ first, records }: Batch): string =>
	records
		.map((record, n) => {
			const event = eventView(JSON.parse(record) as JobEvent);
			return `id: ${first + n}\nevent: message\ndata: ${JSON.stringify(event)}\n\n`;
		})
		.join("");

/** A record is spelled anew, as the API spells things. */
const JOB_EVENTS: StreamFormat = { headers: SSE.headers, open: () => ({ ...SSE.open(), text: eventText }) };

const artifactView = (artifact: ArtifactInfo): ArtifactJson => ({
	artifact_id: artifact.id,
	app_id: artifact.appId,
	name: artifact.name,
	mime_type: artifact.mimeType,
	size_bytes: artifact.sizeBytes,
	sha256: artifact.complete ? artifact.sha256 : undefined,
	created_at: artifact.createdAt,
	expires_at: artifact.expiresAt,
	complete: artifact.complete,
});

const jobView = (job: Job): JobJson =>
	defined({
		job_id: job.id,
		app_id: job.appId,
		user_id: job.userId,
		kind: job.kind,
		connector_id: job.connectorId,
		model: job.model,
		state: job.state,
		error: job.error && errorView(job.error),
		progress_percent: job.progress,
		attempt: job.attempt,
		attempts_max: job.attemptsMax,
		after_crash: job.afterCrash,
		queue_position: job.queuePosition,
		created_at: job.createdAt,
		started_at: job.startedAt,
		updated_at: job.updatedAt,
		finished_at: job.finishedAt,
		usage: job.usage,
		run_id: job.runId,
		text: job.text,
		artifacts: job.artifacts.map(artifactView),
		embeddings: job.embeddings?.map((vector) => [...vector]),
		workflow_id: job.workflowId,
		node_id: job.nodeId,
		demo: job.demo,
	});

const errorView = ({ code, message, reason }: NonNullable<Job["error"]>): NonNullable<JobJson["error"]> => ({
	code,
	message,
	reason: reason as Reason | undefined,
});
