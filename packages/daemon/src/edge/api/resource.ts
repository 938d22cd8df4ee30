/**
 * The parts that resources of the HTTP API are made of: routes as data, the types of their handlers, and shapes that several of them use. The
 * schemas are the only description of the JSON: requests are checked against them, and the OpenAPI document and the types in
 * `@nexus-stream/protocol/api` are made from them. JSON is snake_case.
 */

import type { ServerResponse } from "node:http";
import { type CloseMode, ERROR_TABLE, type ErrorCode, isIdOf, isSessionLabel } from "@nexus-stream/protocol";
import { z } from "zod";
import type { Caller } from "../http/gate.ts";

interface RouteDetails {
	/** False: open to callers without a token. Default: true. */
	auth?: boolean;
	/** An application's token reaches it, too: the answer is the application's own. */
	apps?: true;
	params?: z.ZodObject;
	query?: z.ZodObject;
	body?: z.ZodType;
	/** The handler reads the body's bytes itself, once it knows that it wants them. */
	raw?: true;
	/** The HTTP status of success; 200 when left out. */
	status?: number;
	/** The schema of a JSON answer, or the content type of any other. */
	answer: z.ZodType | string;
	/** A part of the answer may be asked for by a Range. */
	ranges?: true;
	/** Errors besides those that every route may have. */
	errors?: readonly ErrorCode[];
	/** How a stream closes; absent for everything that is not one. */
	close?: CloseMode;
}

export interface Route extends RouteDetails {
	method: "GET" | "POST" | "PUT" | "DELETE";
	/** As OpenAPI spells it: `/v1/runs/{run}`. */
	path: string;
	summary: string;
	auth: boolean;
	status: number;
	errors: readonly ErrorCode[];
}

const DEFAULTS = { auth: true, status: 200, errors: [] };

const route =
	(method: Route["method"]) =>
	<const Details extends RouteDetails>(
		path: string,
		summary: string,
		details: Details,
	): Details & Pick<Route, "method" | "path" | "summary" | "auth" | "status" | "errors"> => ({
		...DEFAULTS,
		...details,
		method,
		path,
		summary,
	});

export const get = route("GET");
export const post = route("POST");
export const put = route("PUT");
export const remove = route("DELETE");

export interface RequestContext {
	caller: Caller;
	headers: Headers;
	url: string;
	/** The raw response, for streams. */
	outgoing: ServerResponse;
}

/** Reads the body. Throws `too_large`, the reason of the signal, or what `arrived` throws, which hears of bytes as they come. */
export type RawBody = (bytesMax: number, arrived: (bytes: number) => void, signal: AbortSignal) => Promise<Buffer>;

type Parsed<R, K extends string> = R extends { [key in K]: infer S extends z.ZodType } ? z.infer<S> : undefined;

/** The input of a route's handler, already validated. */
export interface RouteInput<R> {
	params: Parsed<R, "params">;
	query: Parsed<R, "query">;
	body: R extends { raw: true } ? RawBody : Parsed<R, "body">;
}

/** The return value of a route's handler: the body that its schema describes, or a complete response. */
type RouteResponse<R> = Response | (R extends { answer: infer S extends z.ZodType } ? z.infer<S> : object);

/** One handler for each route of a table. It gets checked input and answers with JSON, a Response, or an error it throws. */
export type HandlersOf<Routes> = {
	[Id in keyof Routes]: (
		input: RouteInput<Routes[Id]>,
		context: RequestContext,
	) => Promise<RouteResponse<Routes[Id]>> | RouteResponse<Routes[Id]>;
};

/** Everything named here becomes a component of the OpenAPI document. */
export const COMPONENTS = z.registry<{ id: string }>();
/** Everything named here becomes a TypeScript type of that name. */
export const TYPES = z.registry<{ id: string }>();

/** A schema, or the fields of an object. */
type Shape = z.ZodType | z.ZodRawShape;
type SchemaOf<S extends Shape> = S extends z.ZodType ? S : S extends z.ZodRawShape ? z.ZodObject<S> : never;

/** A component of the OpenAPI document, and a type for clients: `Run` becomes `RunJson`, a request or its receipt keeps its name. */
export function component<S extends Shape>(id: string, shape: S): SchemaOf<S> {
	const schema = named(/(?:Request|Upload|Accepted)$/.test(id) ? id : `${id}Json`, shape);
	COMPONENTS.add(schema, { id });
	return schema;
}

/** A part of a component that clients need a type for. */
export function named<S extends Shape>(id: string, shape: S): SchemaOf<S> {
	const schema = (shape instanceof z.ZodType ? shape : z.object(shape)) as SchemaOf<S>;
	TYPES.add(schema, { id });
	return schema;
}

type Camel<Name extends string> = Name extends `${infer Head}_${infer Tail}`
	? `${Head}${Capitalize<Camel<Tail>>}`
	: Name;

/** The fields of a schema as rows call them: `run_id` is `runId` there. */
type RowOf<S extends z.ZodObject> = { [Key in keyof z.infer<S> as Camel<Key & string>]: z.infer<S>[Key] };

const camel = (name: string): string => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** A row as its schema spells it: these fields and no others, those without a value left out. */
export function viewOf<S extends z.ZodObject>(schema: S, row: RowOf<S>): z.infer<S> {
	const values = row as Readonly<Record<string, unknown>>;
	const fields = Object.keys(schema.shape).map((name) => [name, values[camel(name)]] as const);
	return Object.fromEntries(fields.filter(([, value]) => value !== undefined)) as z.infer<S>;
}

export const time = z.number().describe("Milliseconds since the epoch.");
export const count = z.int().min(0);
/** A name or id in a request: of a channel, an account, a run and so on. */
export const name = z.string().min(1).max(128);

export const sessionLabel = z
	.string()
	.regex(
		/^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}$/,
		"a session label is 1 to 128 letters, digits and . _ : @ + - and begins with a letter or digit",
	)
	.refine(isSessionLabel)
	.describe("1 to 128 letters, digits and . _ : @ + - beginning with a letter or digit.");

/** Digits and nothing else: `1e3`, `0x10` or an empty text would otherwise pass as numbers that the caller did not mean. */
const whole = (least: number, error: string) =>
	z
		.string()
		.regex(/^\d{1,15}$/, error)
		.transform(Number)
		.pipe(z.int().min(least, error));
export const offset = whole(0, "must be a whole number from 0 on");

export const runParams = z.object({ run: name });
export const sessionParams = z.object({ session: sessionLabel });
export const accountParams = z.object({ channel: name, account: name });

export const limit = whole(1, "must be a whole number above 0")
	.optional()
	.describe("How many at most; the daemon may give fewer.");
/** How many a list gives when its caller does not say. */
export const LIMIT_DEFAULT = 50;
/** Where a list continues: the id of one of its items. Any other text is refused, as it is not a position in the list. */
export const beforeId = (prefix: string, what: string) =>
	z
		.string()
		.refine((text) => isIdOf(prefix, text), `must be ${what}, as the list gave it`)
		.optional();

/** Where a message came from, where its author is not the owner. */
export const author = (sender: string) => ({
	account: z.string().exactOptional(),
	sender: z.string().exactOptional().describe(sender),
	sender_name: z.string().exactOptional(),
});

export const Failure = component("Error", {
	error: z.object({ code: z.enum(Object.keys(ERROR_TABLE) as [ErrorCode, ...ErrorCode[]]), message: z.string() }),
});

/** Chosen by the client, in its WebSocket messages. */
const subscriptionId = z.string().min(1).max(128);
export const WebSocketClientMessage = component(
	"WebSocketClientMessage",
	z.union([
		z.strictObject({
			type: z.literal("subscribe"),
			id: subscriptionId,
			run: runParams.shape.run,
			after: z.int().min(0).exactOptional(),
		}),
		z.strictObject({
			type: z.literal("subscribe"),
			id: subscriptionId,
			session: sessionLabel,
			after: z.union([z.literal("end"), z.int().min(0)]).exactOptional(),
		}),
		z.strictObject({ type: z.literal("unsubscribe"), id: subscriptionId }),
	]),
);
export type WebSocketClientMessage = z.infer<typeof WebSocketClientMessage>;
