/** The HTTP API as data: what is served and what the OpenAPI document says are both made from this table. */

import { STREAM_ENDPOINTS } from "@nexus-stream/protocol";
import type { z } from "zod";
import { ARTIFACT_ROUTES } from "./artifacts.ts";
import { json, type Route, route } from "./route.ts";
import { APPROVAL_ROUTES } from "./routes-approvals.ts";
import { CHANNEL_ROUTES } from "./routes-channels.ts";
import { MCP_ROUTES } from "./routes-mcp.ts";
import * as shape from "./schema.ts";
import * as work from "./schema-sessions.ts";

export type { Route } from "./route.ts";

export const ROUTES = {
	postMessage: route({
		method: "POST",
		path: "/v1/sessions/{session}/messages",
		summary: "Sends a message to a session: it starts a run, or waits its turn behind the active one.",
		auth: true,
		params: shape.sessionParams,
		body: shape.MessageRequest,
		status: 202,
		answer: json(shape.MessageAccepted),
		errors: ["conflict", "engine_failed"],
	}),
	getEvent: route({
		method: "GET",
		path: "/v1/events/{event}",
		summary: "What became of an inbound message.",
		auth: true,
		params: shape.eventParams,
		status: 200,
		answer: json(shape.EventView),
		errors: ["not_found"],
	}),
	cancelEvent: route({
		method: "DELETE",
		path: "/v1/events/{event}",
		summary: "Takes back a message that waits; 409 once it has started.",
		auth: true,
		params: shape.eventParams,
		status: 200,
		answer: json(shape.EventView),
		errors: ["not_found", "conflict"],
	}),
	listEvents: route({
		method: "GET",
		path: "/v1/events",
		summary: "Inbound messages, newest first.",
		auth: true,
		query: shape.eventsQuery,
		status: 200,
		answer: json(shape.EventList),
		errors: [],
	}),
	listRuns: route({
		method: "GET",
		path: "/v1/runs",
		summary: "Runs, newest first, live ones included.",
		auth: true,
		query: shape.runsQuery,
		status: 200,
		answer: json(shape.RunList),
		errors: [],
	}),
	getRun: route({
		method: "GET",
		path: "/v1/runs/{run}",
		summary: "One run: the settled turn, or how far it is.",
		auth: true,
		params: shape.runParams,
		status: 200,
		answer: json(shape.RunView),
		errors: ["not_found"],
	}),
	getFrames: route({
		method: "GET",
		path: "/v1/runs/{run}/frames",
		summary: "The frames so far, one a line; line k has offset after + k.",
		auth: true,
		params: shape.runParams,
		query: shape.framesQuery,
		status: 200,
		answer: { type: "application/x-ndjson" },
		errors: ["not_found", "expired"],
		close: STREAM_ENDPOINTS["GET /v1/runs/{run}/frames"].closes,
	}),
	continueRun: route({
		method: "POST",
		path: "/v1/runs/{run}/continue",
		summary: "Goes on with a run that was stopped, failed or crashed, as a new run; asked twice, it is the same one.",
		auth: true,
		params: shape.runParams,
		status: 202,
		answer: json(work.RunContinued),
		errors: ["not_found", "conflict"],
	}),
	retryRun: route({
		method: "POST",
		path: "/v1/runs/{run}/retry",
		summary: "Answers the messages of a run that was stopped, failed or crashed with a new run, from the start.",
		auth: true,
		params: shape.runParams,
		status: 202,
		answer: json(work.RunRetried),
		errors: ["not_found", "conflict"],
	}),
	abortRun: route({
		method: "POST",
		path: "/v1/runs/{run}/abort",
		summary: "Stops a run and answers once it has settled; what was said so far is kept.",
		auth: true,
		params: shape.runParams,
		status: 200,
		answer: json(shape.RunStatus),
		errors: ["not_found"],
	}),
	streamRun: route({
		method: "GET",
		path: "/v1/runs/{run}/stream",
		summary: "Server-sent events of a run: id = offset, event = frame type, data = frame. 204 after the end.",
		auth: true,
		params: shape.runParams,
		query: shape.afterQuery,
		status: 200,
		answer: { type: "text/event-stream" },
		errors: ["not_found", "expired"],
		close: STREAM_ENDPOINTS["GET /v1/runs/{run}/stream"].closes,
	}),
	listSessions: route({
		method: "GET",
		path: "/v1/sessions",
		summary: "Sessions, most recently used first.",
		auth: true,
		query: shape.sessionsQuery,
		status: 200,
		answer: json(shape.SessionList),
		errors: [],
	}),
	listTurns: route({
		method: "GET",
		path: "/v1/sessions/{session}/turns",
		summary: "A session's turns, what is live and queued, and where its stream continues.",
		auth: true,
		params: shape.sessionParams,
		query: shape.turnsQuery,
		status: 200,
		answer: json(shape.SessionTurns),
		errors: [],
	}),
	getPhase: route({
		method: "GET",
		path: "/v1/sessions/{session}/phase",
		summary: "What a session works on, since when, and what was done in it.",
		auth: true,
		params: shape.sessionParams,
		status: 200,
		answer: json(work.SessionPhase),
		errors: [],
	}),
	setPhase: route({
		method: "PUT",
		path: "/v1/sessions/{session}/phase",
		summary: "Sets a session's phase; a name that the engine does not know is refused with those it knows.",
		auth: true,
		params: shape.sessionParams,
		body: work.PhaseRequest,
		status: 200,
		answer: json(work.SessionPhase),
		errors: [],
	}),
	getSettings: route({
		method: "GET",
		path: "/v1/sessions/{session}/settings",
		summary: "What the owner has set for a session, by this or in the configuration.",
		auth: true,
		params: shape.sessionParams,
		status: 200,
		answer: json(work.SessionSettings),
		errors: [],
	}),
	setSettings: route({
		method: "PUT",
		path: "/v1/sessions/{session}/settings",
		summary:
			"Sets whether a session's history is trusted; it holds for the next runs, and is stronger than the configuration.",
		auth: true,
		params: shape.sessionParams,
		body: work.SessionSettingsRequest,
		status: 200,
		answer: json(work.SessionSettings),
		errors: [],
	}),
	listLog: route({
		method: "GET",
		path: "/v1/sessions/{session}/log",
		summary: "The execution log of a session: tools, routing, phases, attempts; the newest entries, oldest first.",
		auth: true,
		params: shape.sessionParams,
		query: work.logQuery,
		status: 200,
		answer: json(work.SessionLog),
		errors: [],
	}),
	streamSession: route({
		method: "GET",
		path: "/v1/sessions/{session}/stream",
		summary: "Server-sent events of all runs of a session, without an end.",
		auth: true,
		params: shape.sessionParams,
		query: shape.sessionAfterQuery,
		status: 200,
		answer: { type: "text/event-stream" },
		errors: ["expired"],
		close: STREAM_ENDPOINTS["GET /v1/sessions/{session}/stream"].closes,
	}),
	webSocket: route({
		method: "GET",
		path: "/v1/ws",
		summary: "WebSocket: many runs and sessions over one connection, with subscribe, unsubscribe and resume.",
		auth: true,
		status: 101,
		answer: { type: "application/json", schema: shape.WebSocketClientMessage },
		errors: [],
		close: STREAM_ENDPOINTS["GET /v1/ws"].closes,
	}),
	...APPROVAL_ROUTES,
	...CHANNEL_ROUTES,
	...ARTIFACT_ROUTES,
	...MCP_ROUTES,
	signIn: route({
		method: "POST",
		path: "/v1/sign-in",
		summary: "Exchanges a one-time code, or the token, for a cookie.",
		auth: false,
		body: shape.SignInRequest,
		status: 200,
		answer: json(shape.SignedIn),
		errors: ["unauthenticated"],
	}),
	signOut: route({
		method: "POST",
		path: "/v1/sign-out",
		summary: "Signs the page out: its cookie is worth nothing any more, and its streams end.",
		auth: true,
		status: 200,
		answer: json(shape.SignedOut),
		errors: [],
	}),
	createSignInCode: route({
		method: "POST",
		path: "/v1/sign-in-codes",
		summary: "A fresh one-time sign-in code and the address that carries it.",
		auth: true,
		status: 201,
		answer: json(shape.SignInCode),
		errors: [],
	}),
	openapi: route({
		method: "GET",
		path: "/openapi.json",
		summary: "This document.",
		auth: false,
		status: 200,
		answer: { type: "application/json" },
		errors: [],
	}),
	healthz: route({
		method: "GET",
		path: "/healthz",
		summary: "The process lives.",
		auth: false,
		status: 200,
		answer: json(shape.Health),
		errors: [],
	}),
	readyz: route({
		method: "GET",
		path: "/readyz",
		summary: "The daemon takes work: 200, or 503 with its state.",
		auth: false,
		status: 200,
		answer: json(shape.ReadinessView),
		errors: [],
	}),
	metrics: route({
		method: "GET",
		path: "/metrics",
		summary: "Metrics in the Prometheus text format.",
		auth: true,
		status: 200,
		answer: { type: "text/plain" },
		errors: [],
	}),
} as const satisfies Record<string, Route>;

export type RouteId = keyof typeof ROUTES;

type Parsed<R, K extends string> = R extends { [key in K]: infer S extends z.ZodType } ? z.infer<S> : undefined;

/** What a handler of the route answers with: what its schema says, or a response of its own making. */
export type RouteResponse<Id extends RouteId> =
	| Response
	| ((typeof ROUTES)[Id] extends { answer: { schema: infer S extends z.ZodType } } ? z.infer<S> : object);

/** Reads the body. Throws `too_large`, the reason of the signal, or what `arrived` throws, which hears of bytes as they come. */
export type RawBody = (bytesMax: number, arrived: (bytes: number) => void, signal: AbortSignal) => Promise<Buffer>;

/** What a handler of the route is given: already checked. */
export interface RouteInput<Id extends RouteId> {
	params: Parsed<(typeof ROUTES)[Id], "params">;
	query: Parsed<(typeof ROUTES)[Id], "query">;
	body: (typeof ROUTES)[Id] extends { raw: true } ? RawBody : Parsed<(typeof ROUTES)[Id], "body">;
}
