/** The routes about approvals and questions. */

import { json, route } from "./route.ts";
import * as shape from "./schema-approvals.ts";

export const APPROVAL_ROUTES = {
	listApprovals: route({
		method: "GET",
		path: "/v1/approvals",
		summary: "What runs wait for a person to decide or answer, and what was decided, newest first.",
		auth: true,
		query: shape.approvalsQuery,
		status: 200,
		answer: json(shape.ApprovalList),
		errors: [],
	}),
	decideApproval: route({
		method: "POST",
		path: "/v1/runs/{run}/approvals/{id}",
		summary:
			"Approves or denies a tool call. The first decision counts: a later one is a conflict that says who decided.",
		auth: true,
		params: shape.questionParams,
		body: shape.ApprovalRequest,
		status: 200,
		answer: json(shape.ApprovalView),
		errors: ["not_found", "conflict"],
	}),
	answerQuestion: route({
		method: "POST",
		path: "/v1/runs/{run}/questions/{id}",
		summary: "Answers what a run asks.",
		auth: true,
		params: shape.questionParams,
		body: shape.AnswerRequest,
		status: 200,
		answer: json(shape.ApprovalView),
		errors: ["not_found", "conflict"],
	}),
	listGrants: route({
		method: "GET",
		path: "/v1/grants",
		summary: "Calls that are allowed for the rest of their session, newest first.",
		auth: true,
		status: 200,
		answer: json(shape.GrantList),
		errors: [],
	}),
	revokeGrant: route({
		method: "DELETE",
		path: "/v1/grants/{grant}",
		summary: "Asks a person again from now on.",
		auth: true,
		params: shape.grantParams,
		status: 200,
		answer: json(shape.GrantRevoked),
		errors: ["not_found"],
	}),
};
