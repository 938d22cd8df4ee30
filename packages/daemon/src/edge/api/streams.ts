/** Endpoints that stream the frames of runs and sessions. */

import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { NexusError, STREAM_ENDPOINTS } from "@nexus-stream/protocol";
import { z } from "zod";
import type { EdgeDeps, EdgeLimits } from "../port.ts";
import {
	framesMissing,
	NDJSON,
	type Readers,
	resumeAfter,
	type Sources,
	SSE,
	type StreamResponse,
	upTo,
} from "../stream/stream.ts";
import {
	get,
	type HandlersOf,
	limit,
	offset,
	type RequestContext,
	runParams,
	sessionParams,
	WebSocketClientMessage,
} from "./resource.ts";

export const STREAM_ROUTES = {
	getFrames: get("/v1/runs/{run}/frames", "The frames so far, one a line; line k has offset after + k.", {
		params: runParams,
		query: z.object({ after: offset.optional(), limit }),
		answer: "application/x-ndjson",
		errors: ["not_found", "expired"],
		close: STREAM_ENDPOINTS["GET /v1/runs/{run}/frames"].closes,
	}),
	streamRun: get(
		"/v1/runs/{run}/stream",
		"Server-sent events of a run: id = offset, event = frame type, data = frame. 204 after the end.",
		{
			params: runParams,
			query: z.object({
				after: offset
					.optional()
					.describe("Continue strictly after this offset; the larger of it and Last-Event-ID counts."),
			}),
			answer: "text/event-stream",
			errors: ["not_found", "expired"],
			close: STREAM_ENDPOINTS["GET /v1/runs/{run}/stream"].closes,
		},
	),
	streamSession: get("/v1/sessions/{session}/stream", "Server-sent events of all runs of a session, without an end.", {
		params: sessionParams,
		query: z.object({
			after: z
				.union([z.literal("end"), offset], "must be a whole number from 0 on, or end")
				.optional()
				.describe(
					"Continue strictly after this offset; `end` = only what is new; absent = from the earliest kept record.",
				),
		}),
		answer: "text/event-stream",
		errors: ["expired"],
		close: STREAM_ENDPOINTS["GET /v1/sessions/{session}/stream"].closes,
	}),
	webSocket: get(
		"/v1/ws",
		"WebSocket: many runs and sessions over one connection, with subscribe, unsubscribe and resume.",
		{ status: 101, answer: WebSocketClientMessage, close: STREAM_ENDPOINTS["GET /v1/ws"].closes },
	),
};

export interface StreamHandlerParts {
	deps: EdgeDeps;
	limits: EdgeLimits;
	sources: Sources;
	readers: Readers;
	/** Throws `busy` when no further stream may open. */
	admitStream(): void;
}

export function streamHandlers(parts: StreamHandlerParts): HandlersOf<typeof STREAM_ROUTES> {
	const { deps, limits, sources, readers, admitStream } = parts;
	/** Answers with a stream: a stream that cannot open has a status before the first byte (I9). */
	const send = async ({ outgoing }: RequestContext, answer: StreamResponse): Promise<Response> => {
		const { cursor } = answer;
		try {
			await cursor.check();
			// Others may have opened meanwhile; from here on nothing waits.
			admitStream();
		} catch (cause) {
			cursor.close();
			throw cause;
		}
		readers.open(outgoing, answer);
		return RESPONSE_ALREADY_SENT;
	};
	return {
		async streamRun({ params, query }, context) {
			admitStream();
			const after = resumeAfter(context.headers.get("last-event-id"), query.after) ?? 0;
			const cursor = await sources.run(params.run, after);
			if (!cursor.ended) return send(context, { cursor, dialect: SSE, closes: STREAM_ROUTES.streamRun.close });
			cursor.close();
			return new Response(null, { status: 204 });
		},
		async streamSession({ params, query }, context) {
			admitStream();
			const seen = context.headers.get("last-event-id");
			// A reconnect continues where it was, even when the first request asked for what is new only.
			const after = query.after === "end" ? (resumeAfter(seen, undefined) ?? "end") : resumeAfter(seen, query.after);
			const cursor = await sources.session(params.session, after);
			return send(context, { cursor, dialect: SSE, closes: STREAM_ROUTES.streamSession.close });
		},
		async getFrames({ params: { run }, query }, context) {
			admitStream();
			const info = await deps.bus.describe(run);
			if (!info) throw await framesMissing(deps.ledger, run);
			const after = query.after ?? 0;
			const last = Math.min(info.head, after + Math.min(query.limit ?? limits.framesMax, limits.framesMax));
			const cursor = upTo(await sources.run(run, after), last);
			return send(context, { cursor, dialect: NDJSON, closes: STREAM_ROUTES.getFrames.close });
		},
		webSocket() {
			throw new NexusError("invalid", "this address speaks WebSocket: send an upgrade request");
		},
	};
}
