/** The routes about the audit log and the events of agents. */

import { STREAM_ENDPOINTS } from "@nexus-stream/protocol";
import { json, route } from "../route.ts";
import * as shape from "./schema-audit.ts";

export const AUDIT_ROUTES = {
	listAudit: route({
		method: "GET",
		path: "/v1/audit",
		summary: "What happened, newest first: ids and numbers, never what somebody said.",
		auth: true,
		query: shape.auditQuery,
		status: 200,
		answer: json(shape.AuditList),
		errors: [],
	}),
	exportAudit: route({
		method: "GET",
		path: "/v1/audit/export",
		summary: "The audit log as a file, up to what is on record at the call. A body that breaks off is not whole.",
		auth: true,
		query: shape.auditExportQuery,
		status: 200,
		answer: { type: "application/x-ndjson" },
		otherType: "text/csv",
		errors: ["expired"],
		close: STREAM_ENDPOINTS["GET /v1/audit/export"].closes,
	}),
	streamAgents: route({
		method: "GET",
		path: "/v1/agents/stream",
		summary: "Server-sent events of the runs of all sessions: ids and states; id = sequence. Resume by Last-Event-ID.",
		auth: true,
		query: shape.agentEventsQuery,
		status: 200,
		answer: { type: "text/event-stream" },
		errors: ["expired"],
		close: STREAM_ENDPOINTS["GET /v1/agents/stream"].closes,
	}),
};
