/** One handler for each route. A handler gets checked input and answers with JSON, a Response, or an error it throws. */

import type { ServerResponse } from "node:http";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { NexusError, toNexusError, traceIdIn } from "@nexus-stream/protocol";
import type { Auth } from "../http/auth.ts";
import { principalOfCaller } from "../http/gate.ts";
import type { Handlers } from "../http/handler.ts";
import type { EdgeDeps, EdgeLimits } from "../port.ts";
import type { Rest } from "../rest/rest.ts";
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
import { approvalHandlers } from "./approvals.ts";
import { artifactHandlers } from "./artifacts.ts";
import { channelHandlers } from "./channels.ts";
import { mcpHandlers } from "./mcp.ts";
import { type OpenApiObject, openapi } from "./openapi.ts";
import { eventView } from "./present.ts";
import { createReads } from "./reads.ts";
import { ROUTES } from "./routes.ts";
import { sessionHandlers } from "./sessions.ts";

export interface HandlerParts {
	deps: EdgeDeps;
	limits: EdgeLimits;
	auth: Auth;
	sources: Sources;
	readers: Readers;
	/** Throws `busy` when no further stream may open. */
	admitStream(): void;
	cookieName(): string;
	signIn(): { code: string; url: string };
	rest?: (() => Promise<Pick<Rest, "openapi">>) | undefined;
}

export function createHandlers(parts: HandlerParts): Handlers {
	return {
		...messageHandlers(parts),
		...readHandlers(parts),
		...sessionHandlers(parts.deps, parts.limits),
		...streamHandlers(parts),
		...approvalHandlers(parts.deps, parts.limits),
		...channelHandlers(parts.deps, parts.limits),
		...artifactHandlers(parts.deps),
		...mcpHandlers(parts.deps),
		...daemonHandlers(parts),
	};
}

function messageHandlers({ deps }: HandlerParts) {
	const { broker, ledger, submit, proceed, retry } = deps;
	return {
		async postMessage({ params, body }, { headers }) {
			const traceId = traceIdIn(headers.get("traceparent") ?? "");
			const { eventId, disposition, runId } = await submit({
				session: params.session,
				text: body.text,
				idempotencyKey: body.idempotency_key,
				traceId,
				disableStreaming: body.disable_streaming === true ? true : undefined,
				attachments: body.attachments?.map(({ name, content_type, data }) => ({
					name,
					contentType: content_type,
					data,
				})),
			});
			if ("because" in disposition) throw new NexusError("conflict", `not accepted: ${disposition.because}`);
			return { event_id: eventId, disposition: disposition.state, run_id: runId };
		},
		async cancelEvent({ params: { event } }) {
			return eventView(await deps.cancel(event));
		},
		async continueRun({ params: { run } }) {
			const { runId } = await proceed(run);
			return { run_id: runId, continues: run };
		},
		async retryRun({ params: { run } }) {
			const { runId } = await retry(run);
			return { run_id: runId, retries: run };
		},
		async abortRun({ params: { run } }, { caller }) {
			const aborting = broker.abort(run);
			if (aborting) deps.abortAsked(run, caller.address);
			const turn = (await aborting) ?? (await ledger.turns.get(run));
			if (!turn) throw new NexusError("not_found", `there is no run ${run}`);
			return { run_id: run, status: turn.status };
		},
	} satisfies Partial<Handlers>;
}

function readHandlers({ deps: { bus, ledger, broker, engine }, limits }: HandlerParts) {
	const reads = createReads(bus, ledger, broker, limits.listItemsMax);
	return {
		getEvent: ({ params }) => reads.event(params.event),
		listEvents: ({ query }) => reads.events(query),
		getRun: ({ params }) => reads.run(params.run),
		listRuns: ({ query }) => reads.runs(query),
		listSessions: async ({ query }) => ({
			...(await reads.sessions(query)),
			...(engine && { engine: engine.name, ...(engine.scripted && { scripted: true as const }) }),
		}),
		listTurns: ({ params, query }) => reads.turns(params.session, query),
	} satisfies Partial<Handlers>;
}

function streamHandlers({ deps: { bus, ledger }, limits, sources, readers, admitStream }: HandlerParts) {
	const send = (outgoing: ServerResponse, answer: StreamResponse) =>
		sendStream({ readers, admitStream }, outgoing, answer);
	return {
		async streamRun({ params, query }, { headers, outgoing }) {
			admitStream();
			const cursor = await sources.run(params.run, resumeAfter(headers.get("last-event-id"), query.after) ?? 0);
			if (!cursor.ended) return send(outgoing, { cursor, dialect: SSE, closes: ROUTES.streamRun.close });
			cursor.close();
			return new Response(null, { status: 204 });
		},
		async streamSession({ params, query }, { headers, outgoing }) {
			admitStream();
			const seen = headers.get("last-event-id");
			// A reconnect continues where it was, even when the first request asked for what is new only.
			const after = query.after === "end" ? (resumeAfter(seen, undefined) ?? "end") : resumeAfter(seen, query.after);
			const cursor = await sources.session(params.session, after);
			return send(outgoing, { cursor, dialect: SSE, closes: ROUTES.streamSession.close });
		},
		async getFrames({ params: { run }, query }, { outgoing }) {
			admitStream();
			const info = await bus.describe(run);
			if (!info) throw await framesMissing(ledger, run);
			const after = query.after ?? 0;
			const last = Math.min(info.head, after + Math.min(query.limit ?? limits.framesMax, limits.framesMax));
			const cursor = upTo(await sources.run(run, after), last);
			return send(outgoing, { cursor, dialect: NDJSON, closes: ROUTES.getFrames.close });
		},
		webSocket() {
			throw new NexusError("invalid", "this address speaks WebSocket: send an upgrade request");
		},
	} satisfies Partial<Handlers>;
}

function daemonHandlers({ deps, limits, auth, cookieName, signIn, rest }: HandlerParts) {
	let document: OpenApiObject | undefined;
	return {
		async signIn({ body }, { caller, headers }) {
			const value = await auth.signIn(body, caller.address).catch((cause: unknown) => {
				const { code, message } = toNexusError(cause);
				// Not those that are refused for being too many: they would fill the log.
				if (code === "unauthenticated") deps.log.warn({ client: caller.address, error: message }, "a sign-in failed");
				throw cause;
			});
			const secure = caller.https || headers.get("origin")?.startsWith("https:") ? "; Secure" : "";
			const attributes = `Path=/; Max-Age=${Math.floor(limits.signedInMs / 1000)}; HttpOnly; SameSite=Strict${secure}`;
			return Response.json(
				{ signed_in: true },
				{ headers: { "Set-Cookie": `${cookieName()}=${value}; ${attributes}` } },
			);
		},
		async signOut(_, { caller }) {
			const { proof } = caller;
			if (proof?.signInId === undefined)
				throw new NexusError("invalid", "a page signs out by the cookie of its sign-in; a token is not signed in");
			await auth.signOut(proof.signInId, principalOfCaller(caller));
			const gone = `${cookieName()}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict`;
			return Response.json({ signed_out: true }, { headers: { "Set-Cookie": gone } });
		},
		createSignInCode: () => signIn(),
		async openapi() {
			// Built by the first request for it: it would take a tenth of the start.
			document ??= openapi(deps.version, await rest?.().then((routes) => routes.openapi()));
			return document;
		},
		healthz: () => ({ status: "ok" }),
		readyz() {
			const readiness = deps.readiness();
			return Response.json(readiness, { status: readiness.ready ? 200 : 503 });
		},
		async metrics() {
			return new Response(await deps.metrics.render(), { headers: { "Content-Type": deps.metrics.contentType } });
		},
	} satisfies Partial<Handlers>;
}

/** Answers with a stream: a stream that cannot open has a status before the first byte (I9). */
interface Streaming {
	readers: Readers;
	/** Throws `busy` when no further stream may open. */
	admitStream(): void;
}

async function sendStream(
	{ readers, admitStream }: Streaming,
	outgoing: ServerResponse,
	answer: StreamResponse,
): Promise<Response> {
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
}
