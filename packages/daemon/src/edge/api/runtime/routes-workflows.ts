/** The routes about workflows. */

import { STREAM_ENDPOINTS } from "@nexus-stream/protocol";
import { json, route } from "../route.ts";
import * as shape from "./schema-workflows.ts";

export const WORKFLOW_ROUTES = {
	submitWorkflow: route({
		method: "POST",
		path: "/v1/workflows",
		summary: "Submits a workflow: it is checked whole, then it runs and survives the daemon.",
		auth: true,
		apps: true,
		body: shape.WorkflowSubmission,
		status: 202,
		answer: json(shape.WorkflowView),
		errors: ["precondition"],
	}),
	listWorkflows: route({
		method: "GET",
		path: "/v1/workflows",
		summary: "Workflows, newest first, without their outputs.",
		auth: true,
		apps: true,
		query: shape.workflowsQuery,
		status: 200,
		answer: json(shape.WorkflowList),
		errors: [],
	}),
	getWorkflow: route({
		method: "GET",
		path: "/v1/workflows/{workflow}",
		summary: "One workflow: the states and outputs of its nodes, and its definition.",
		auth: true,
		apps: true,
		params: shape.workflowParams,
		status: 200,
		answer: json(shape.WorkflowWhole),
		errors: ["not_found"],
	}),
	cancelWorkflow: route({
		method: "POST",
		path: "/v1/workflows/{workflow}/cancel",
		summary: "Ends a workflow and stops what it has under way; one that has ended stays as it is.",
		auth: true,
		apps: true,
		params: shape.workflowParams,
		body: shape.WorkflowCancellation,
		status: 200,
		answer: json(shape.WorkflowView),
		errors: ["not_found"],
	}),
	streamWorkflow: route({
		method: "GET",
		path: "/v1/workflows/{workflow}/stream",
		summary:
			"Server-sent events of a workflow: id = offset, data = what happened and the workflow as it was then, which replaces what an earlier event said. Without `after` the newest event comes first. 204 after the end.",
		auth: true,
		apps: true,
		params: shape.workflowParams,
		query: shape.workflowAfterQuery,
		status: 200,
		answer: { type: "text/event-stream" },
		errors: ["not_found", "expired"],
		close: STREAM_ENDPOINTS["GET /v1/workflows/{workflow}/stream"].closes,
	}),
};
