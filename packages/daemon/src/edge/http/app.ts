/** The route table as a hono app: checks input, calls the handler, and turns every error into its status and body. */

import type { ServerResponse } from "node:http";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { httpStatusOf, NexusError, toNexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { Hono } from "hono";
import type { z } from "zod";
import { storeFailure } from "../../std/store-failure.ts";
import { type Handlers, ROUTES, type RouteId } from "../api/api.ts";
import type { RequestContext, Route } from "../api/resource.ts";
import type { EdgeLimits } from "../port.ts";
import { jsonReader, rawBody } from "./body.ts";
import { type Caller, principalOfCaller, requireAuth, requireReach, whenEnded } from "./gate.ts";
import type { Page } from "./page.ts";
import { jsonHeaders } from "./server.ts";
import type { HoldStream } from "./strangers.ts";

export type AppEnv = { Bindings: { caller: Caller; outgoing: ServerResponse } };

export interface AppParts {
	handlers: Handlers;
	page: Page;
	holdStream: HoldStream;
	/** The routes of the runtime contract, loaded by the first request for one of them. */
	rest(): Promise<Pick<Hono<AppEnv>, "fetch">>;
	limits: EdgeLimits;
	clock: Clock;
	log: Log;
}

export function createApp({ handlers, page, holdStream, rest, limits, clock, log }: AppParts): Hono<AppEnv> {
	const app = new Hono<AppEnv>();
	const read = jsonReader(limits, clock);
	for (const [id, route] of Object.entries<Route>(ROUTES)) {
		// The table ties each id to its input; over the union of all of them the compiler cannot follow.
		const handle = handlers[id as RouteId] as (input: object, context: RequestContext) => Promise<object> | object;
		app.on(route.method, honoPath(route.path), async (c) => {
			const { caller, outgoing } = c.env;
			if (route.auth) {
				requireAuth(caller);
				requireReach(caller, route.apps);
			}
			if (route.close) {
				holdStream(principalOfCaller(caller), outgoing);
				// At once, and without a terminal.
				whenEnded(caller, outgoing, () => outgoing.destroy());
			}
			// hono answers HEAD with the GET handler, and a stream would never end.
			if (c.req.raw.method === "HEAD" && !hasFixedAnswer(route)) throw notAllowed(route.method);
			const input = {
				params: route.params && check(route.params, c.req.param(), "path"),
				query: route.query && check(route.query, c.req.query(), "query"),
				body: route.raw
					? rawBody(c.req.raw, outgoing.req)
					: route.body && check(route.body, await read(c.req.raw, outgoing.req, caller), "body"),
			};
			const answer = await handle(input, { caller, outgoing, headers: c.req.raw.headers, url: c.req.raw.url });
			return answer instanceof Response ? answer : sendJson(outgoing, route.status, answer);
		});
	}
	for (const path of new Set(Object.values<Route>(ROUTES).map(({ path }) => path))) {
		const allowed = Object.values<Route>(ROUTES).filter((route) => route.path === path);
		app.all(honoPath(path), () => {
			throw notAllowed(...allowed.map(({ method }) => method));
		});
	}
	app.all("/v1/*", async (c) => (await rest()).fetch(c.req.raw, c.env));
	app.notFound((c) => page(c.req.raw) ?? failure(new NexusError("not_found", "there is nothing at this address"), log));
	app.onError((cause) => failure(cause, log));
	return app;
}

/** Straight to the socket: a Response would make a stream of the text first, which costs more than all the rest of an answer. */
export function sendJson(outgoing: ServerResponse, status: number, answer: object): Response {
	// First: what cannot be spelled is still answered as a failure.
	const text = JSON.stringify(answer);
	outgoing.writeHead(status, jsonHeaders(text));
	outgoing.end(text);
	return RESPONSE_ALREADY_SENT;
}

export const honoPath = (path: string): string => path.replace(/\{(\w+)\}/g, ":$1");
const hasFixedAnswer = (route: Route): boolean => route.close === undefined && route.answer !== "application/x-ndjson";

class MethodNotAllowed extends NexusError {
	readonly allow: string;
	constructor(methods: readonly string[]) {
		super("method_not_allowed", `this address answers ${methods.join(" and ")} only`);
		this.allow = methods.join(", ");
	}
}
export const notAllowed = (...methods: string[]): MethodNotAllowed => new MethodNotAllowed(methods);

function check(schema: z.ZodType, value: unknown, where: string): unknown {
	const parsed = schema.safeParse(value);
	if (parsed.success) return parsed.data;
	const issue = parsed.error.issues[0];
	const at = [where, ...(issue?.path ?? [])].join(".");
	throw new NexusError("invalid", `${at}: ${issue?.message ?? "is not as documented"}; see /openapi.json`);
}

/** The one way from an error to an answer, for hono and for the gate before it. */
export function failure(cause: unknown, log: Log): Response {
	const refused = refusalOf(cause);
	const known = refused !== undefined || cause instanceof NexusError;
	const error = refused ?? toNexusError(cause);
	const status = httpStatusOf(error.code);
	if (status >= 500 && error.code !== "unavailable") log.error({ err: cause, code: error.code }, "a request failed");
	const shown = known ? error : new NexusError("internal", "the daemon failed at this request; its log says why");
	return Response.json(shown.toJSON(), { status, headers: failureHeaders(error) });
}

/** A full or unwritable store is a temporary condition and not the request's fault: the client may try again. */
function refusalOf(cause: unknown): NexusError | undefined {
	for (let inner = cause; inner instanceof Error; inner = inner.cause) {
		const kind = storeFailure(inner)?.kind;
		if (kind !== "full" && kind !== "unwritable") continue;
		const why = kind === "full" ? "the disk is full or failing. Free some space" : "the database cannot be written";
		return new NexusError("unavailable", `nothing can be saved now: ${why}, then try again`, { cause });
	}
	return undefined;
}

function failureHeaders(error: NexusError): Record<string, string> {
	if (error instanceof MethodNotAllowed) return { Allow: error.allow };
	if (error.code === "unauthenticated") return { "WWW-Authenticate": "Bearer" };
	if (error.code === "busy" || error.code === "unavailable") return { "Retry-After": "1" };
	return {};
}
