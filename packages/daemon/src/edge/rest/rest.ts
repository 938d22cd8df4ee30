/**
 * The procedures of the runtime contract over plain HTTP: JSON for a unary one, server-sent events or a file for a stream; and their part
 * of the OpenAPI document. The door of this folder.
 */

import type { ServerResponse } from "node:http";
import { create, type DescMessage, type DescMethod, type JsonValue, type Message, toJson } from "@bufbuild/protobuf";
import { createContextValues, createHandlerContext } from "@connectrpc/connect";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { NexusError } from "@nexus-stream/protocol";
import { type Context, Hono } from "hono";
import type { Described } from "../api/openapi.ts";
import type { RequestContext } from "../api/resource.ts";
import { type AppEnv, failure, honoPath, notAllowed, sendJson } from "../http/app.ts";
import { jsonReader } from "../http/body.ts";
import { principalOfCaller, requireAuth, whenEnded } from "../http/gate.ts";
import { type AdmitParts, permit } from "../rpc/admit.ts";
import { toConnectError } from "../rpc/errors.ts";
import { OpenStream } from "../rpc/fast-stream/fast-stream.ts";
import { SERVICES } from "../rpc/routes.ts";
import { BEGINS_HEADER, type Implementation, PRINCIPAL, SERVING } from "../rpc/rpc.ts";
import { type Readers, resumeAfter } from "../stream/stream.ts";
import { eventCursor, eventDialect, type RestEvent } from "./event-stream.ts";
import { type HttpRoute, httpRoutes } from "./http-rules.ts";
import { describeRoutes } from "./openapi.ts";
import { requestOf } from "./request.ts";

export interface RestParts extends AdmitParts {
	readers: Readers;
	/** A method that is not in it is not implemented. */
	methods: ReadonlyMap<DescMethod, Implementation>;
}

export type Rest = ReturnType<typeof createRest>;

export function createRest(parts: RestParts) {
	const routes = httpRoutes(SERVICES);
	return {
		fetch: createTranscoder(routes, parts).fetch,
		async openapi(): Promise<Described> {
			// Read by this document alone.
			const { COMMENTS } = await import("@nexus-stream/client/gen/nexus/runtime/v1/comments");
			return describeRoutes(routes, COMMENTS);
		},
	};
}

/** A request that was matched to a route, and who sent it. */
interface Arrival extends RequestContext {
	route: HttpRoute;
	query: URLSearchParams;
}

type Answers = AsyncIterable<Message>;

function createTranscoder(routes: readonly HttpRoute[], parts: RestParts): Hono<AppEnv> {
	const app = new Hono<AppEnv>();
	const read = jsonReader(parts.limits, parts.clock);
	for (const route of routes) app.on(route.verb, honoPath(route.path), (c) => answer(c, route, parts, read));
	for (const path of new Set(routes.map((route) => route.path))) {
		const verbs = routes.filter((route) => route.path === path).map(({ verb }) => verb);
		app.all(honoPath(path), () => {
			throw notAllowed(...verbs);
		});
	}
	app.notFound(() => failure(new NexusError("not_found", "there is nothing at this address"), parts.log));
	app.onError((cause) => failure(cause, parts.log));
	return app;
}

async function answer(
	c: Context<AppEnv>,
	route: HttpRoute,
	parts: RestParts,
	read: ReturnType<typeof jsonReader>,
): Promise<Response> {
	const { caller, outgoing } = c.env;
	const { raw } = c.req;
	requireAuth(caller);
	// hono answers HEAD with the GET handler, and a stream would never end.
	if (raw.method === "HEAD" && route.closes) throw notAllowed(route.verb);
	const arrival = {
		route,
		caller,
		outgoing,
		headers: raw.headers,
		url: raw.url,
		query: new URL(raw.url).searchParams,
	};
	const context = contextOf(arrival, parts);
	permit(context, parts.stopping());
	const body = route.hasBody && hasBody(raw.headers) ? await read(raw, outgoing.req, caller) : undefined;
	const request = requestOf(route, { params: c.req.param(), query: arrival.query, body });
	const method = parts.methods.get(route.method);
	if (!method) throw new NexusError("not_found", `${route.method.name} is not implemented here`);
	if (!route.closes) return unary(arrival, method, request, context);
	return stream(arrival, method, request, context, parts);
}

const hasBody = (headers: Headers): boolean =>
	headers.has("transfer-encoding") || Number(headers.get("content-length") ?? 0) > 0;

type OpenContext = ReturnType<typeof createHandlerContext>;

/** Aborts when the client goes away. */
function contextOf({ route, caller, outgoing, headers, url }: Arrival, { flusher, clock, log }: RestParts) {
	const { method, closes, verb } = route;
	const controller = new AbortController();
	outgoing.once("close", () => controller.abort(new NexusError("aborted", "the client went away")));
	const values = createContextValues().set(PRINCIPAL, principalOfCaller(caller));
	const context = createHandlerContext({
		service: method.parent,
		method,
		protocolName: "http",
		requestMethod: verb,
		url,
		requestSignal: controller.signal,
		requestHeader: headers,
		contextValues: values,
	});
	const established = Promise.withResolvers<void>();
	const stream = new OpenStream({
		closes,
		controller,
		establish: established.resolve,
		direct: undefined,
		shown: (cause, signal) => toConnectError(cause, log, signal),
	});
	values.set(SERVING, { flusher, clock, stream });
	return Object.assign(context, { established: established.promise, stream });
}

async function unary(
	{ route, outgoing }: Arrival,
	method: Implementation,
	request: Message,
	context: OpenContext,
): Promise<Response> {
	const { output } = route.method;
	try {
		const answered = (await method(request, context)) as Message;
		return sendJson(outgoing, route.status, answerJson(route, create(output, answered)) as object);
	} finally {
		context.abort();
	}
}

const spell = (schema: DescMessage, message: Message): JsonValue =>
	toJson(schema, message, { useProtoFieldName: true, alwaysEmitImplicit: true });

/** Lists, numbers and texts are there even when they are empty; a message is left out when it is not set. */
function answerJson({ method: { output }, answer: field }: HttpRoute, message: Message): JsonValue {
	const json = spell(output, message) as Record<string, JsonValue>;
	return field ? (json[field.name] ?? {}) : json;
}

async function stream(
	arrival: Arrival,
	method: Implementation,
	request: Message,
	context: ReturnType<typeof contextOf>,
	parts: RestParts,
): Promise<Response> {
	const { caller, outgoing, route } = arrival;
	parts.holdStream(principalOfCaller(caller), outgoing);
	parts.admitStream();
	// At once, and without a terminal.
	whenEnded(caller, outgoing, () => outgoing.destroy());
	const after = continued(route, request, arrival.headers);
	const messages = method(request, context) as Answers;
	if (route.file) return sendFile(arrival, messages, context, parts);
	return sendEvents(arrival, messages, { after, context }, parts);
}

/** Sets the request's `after` to what the client remembers, and returns it. */
function continued({ method: { input } }: HttpRoute, request: Message, headers: Headers): number | undefined {
	if (!input.fields.some(({ name }) => name === "after")) return undefined;
	const asked = request as Message & { after?: bigint };
	const after = resumeAfter(headers.get("last-event-id"), asked.after === undefined ? undefined : Number(asked.after));
	if (after !== undefined) asked.after = BigInt(after);
	return after;
}

async function sendEvents(
	{ route, outgoing }: Arrival,
	messages: Answers,
	{ after, context }: { after: number | undefined; context: ReturnType<typeof contextOf> },
	{ readers, admitStream }: RestParts,
): Promise<Response> {
	const isEndless = route.closes === "D";
	const cursor = eventCursor(
		messages,
		(message) => eventOf(route, message),
		context.established,
		() => context.abort(),
	);
	try {
		const first = await cursor.first();
		// Others may have opened meanwhile; from here on nothing waits.
		admitStream();
		const hasAll = first === undefined || (first !== "silent" && after !== undefined && first.id <= after);
		if (hasAll) {
			// The stream has ended and the reader has all of it: without this status a browser would ask again and again.
			cursor.close();
			return new Response(null, { status: 204 });
		}
		const begins = isEndless ? context.responseHeader.get(BEGINS_HEADER) : null;
		readers.open(outgoing, { cursor, dialect: eventDialect(begins), closes: isEndless ? undefined : route.closes });
		return RESPONSE_ALREADY_SENT;
	} catch (cause) {
		cursor.close();
		throw cause;
	}
}

/** A message with nothing but a sequence tells its reader a place, and has no data. */
function eventOf(route: HttpRoute, init: Message): RestEvent {
	const message = create(route.method.output, init) as Message & { sequence?: bigint; eventType?: number };
	const id = Number(message.sequence ?? 0n);
	if (message.eventType === 0) return { id, data: "" };
	return { id, data: JSON.stringify(answerJson(route, message)) };
}

/** The file ends with its stream; a body that breaks off is not whole. */
async function sendFile(
	{ route, outgoing }: Arrival,
	messages: Answers,
	context: ReturnType<typeof contextOf>,
	{ streams }: RestParts,
): Promise<Response> {
	const { output } = route.method;
	const iterator = messages[Symbol.asyncIterator]();
	const first = await iterator.next();
	const { mimeType = "application/octet-stream" } = first.done ? {} : (first.value as { mimeType?: string });
	outgoing.once("close", streams.add(context.stream));
	outgoing.writeHead(200, { "Content-Type": mimeType, "Content-Disposition": disposition(route, mimeType) });
	try {
		for (let next = first; !next.done; next = await iterator.next()) {
			const message = create(output, next.value) as unknown as Record<string, Uint8Array>;
			const piece = message[route.file!.localName]!;
			if (piece.length > 0 && !outgoing.write(piece)) await drained(outgoing, context.signal);
		}
		outgoing.end();
	} catch {
		outgoing.destroy();
	}
	context.abort();
	return RESPONSE_ALREADY_SENT;
}

/** Resolves when the client has taken what was written, or has gone. */
const drained = (outgoing: ServerResponse, signal: AbortSignal): Promise<void> =>
	new Promise((resolve) => {
		outgoing.once("drain", resolve);
		signal.addEventListener("abort", () => resolve(), { once: true });
		if (signal.aborted) resolve();
	});

const EXTENSIONS: Readonly<Record<string, string>> = {
	"application/x-ndjson": "ndjson",
	"text/csv": "csv",
	"application/gzip": "gz",
};

/** `/v1/audit/export` is saved as `audit.csv`. */
function disposition({ path }: HttpRoute, mimeType: string): string {
	const extension = EXTENSIONS[mimeType.split(";", 1)[0]!] ?? "bin";
	return `attachment; filename="${path.split("/")[2]}.${extension}"`;
}
