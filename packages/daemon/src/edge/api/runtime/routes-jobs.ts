/** The routes about jobs and artifacts. */

import { STREAM_ENDPOINTS } from "@nexus-stream/protocol";
import { json, route } from "../route.ts";
import * as shape from "./schema-jobs.ts";

export const JOB_ROUTES = {
	listJobs: route({
		method: "GET",
		path: "/v1/jobs",
		summary: "Jobs, newest first, without their texts and embeddings; and how many wait and run.",
		auth: true,
		apps: true,
		query: shape.jobsQuery,
		status: 200,
		answer: json(shape.JobList),
		errors: [],
	}),
	getJob: route({
		method: "GET",
		path: "/v1/jobs/{job}",
		summary: "One job: how far it is, or what it has come to.",
		auth: true,
		apps: true,
		params: shape.jobParams,
		status: 200,
		answer: json(shape.JobView),
		errors: ["not_found"],
	}),
	cancelJob: route({
		method: "POST",
		path: "/v1/jobs/{job}/cancel",
		summary: "Ends a job and answers once it has ended; one that has ended before stays as it is.",
		auth: true,
		apps: true,
		params: shape.jobParams,
		body: shape.JobCancellation,
		status: 200,
		answer: json(shape.JobView),
		errors: ["not_found"],
	}),
	streamJob: route({
		method: "GET",
		path: "/v1/jobs/{job}/stream",
		summary:
			"Server-sent events of a job: id = offset, data = what happened and the job as it was then, which replaces what an earlier event said. Without `after` the newest event comes first. 204 after the end.",
		auth: true,
		apps: true,
		params: shape.jobParams,
		query: shape.jobAfterQuery,
		status: 200,
		answer: { type: "text/event-stream" },
		errors: ["not_found", "expired"],
		close: STREAM_ENDPOINTS["GET /v1/jobs/{job}/stream"].closes,
	}),
	getArtifact: route({
		method: "GET",
		path: "/v1/artifacts/{artifact}",
		summary: "An artifact as a file to be saved. A Range of bytes is answered with 206.",
		auth: true,
		apps: true,
		params: shape.artifactParams,
		status: 200,
		answer: { type: "*/*" },
		ranges: true,
		errors: ["not_found", "precondition"],
	}),
};
