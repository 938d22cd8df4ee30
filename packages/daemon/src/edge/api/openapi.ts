/** The OpenAPI 3.1 document, made from the route table and the schemas. */

import { type ErrorCode, httpStatusOf } from "@nexus-stream/protocol";
import { z } from "zod";
import { COMPONENTS, Failure, type Route } from "./resource.ts";

export type OpenApiObject = Record<string, unknown>;

/** The routes that are derived from the runtime contract. */
export interface Described {
	paths: Record<string, OpenApiObject>;
	schemas: Record<string, OpenApiObject>;
}

export const refTo = (id: string) => `#/components/schemas/${id}`;

export function openapi(routes: Readonly<Record<string, Route>>, version: string, derived: Described): OpenApiObject {
	const paths: Record<string, OpenApiObject> = { ...derived.paths };
	for (const [id, route] of Object.entries(routes)) {
		paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(id, route) };
	}
	return {
		openapi: "3.1.0",
		info: {
			title: "Nexus",
			version,
			description: "Sends messages to agents and streams their answers, durable and resumable.",
			license: { name: "MIT", identifier: "MIT" },
		},
		paths,
		components: {
			schemas: { ...derived.schemas, ...components() },
			securitySchemes: {
				bearer: { type: "http", scheme: "bearer" },
				cookie: { type: "apiKey", in: "cookie", name: "nexus_{port}" },
			},
		},
	};
}

/** As a client has to write them: what has a default may be left out. */
export const schemasIn = (registry: typeof COMPONENTS, uri: (id: string) => string) =>
	z.toJSONSchema(registry, { uri, unrepresentable: "any", io: "input" }).schemas;

function components(): OpenApiObject {
	const schemas = schemasIn(COMPONENTS, refTo);
	return Object.fromEntries(Object.entries(schemas).map(([id, { $schema, $id, ...schema }]) => [id, schema]));
}

function operation(id: string, route: Route): OpenApiObject {
	return {
		operationId: id,
		summary: route.summary,
		...(route.close ? { "x-close-mode": route.close } : {}),
		security: route.auth ? SECURITY : [],
		parameters: [
			...parameters(route.params, "path"),
			...parameters(route.query, "query"),
			...(route.answer === "text/event-stream" ? [LAST_EVENT_ID] : []),
			...(id === "postMessage" ? [TRACEPARENT] : []),
		],
		...(route.raw && route.method === "POST"
			? { requestBody: { required: true, content: { "*/*": { schema: {} } } } }
			: {}),
		...(route.body
			? { requestBody: { required: true, content: { "application/json": { schema: schemaOf(route.body) } } } }
			: {}),
		responses: responses(route),
	};
}

export const SECURITY: OpenApiObject[] = [{ bearer: [] }, { cookie: [] }];

export const LAST_EVENT_ID = {
	name: "Last-Event-ID",
	in: "header",
	required: false,
	description: "The last offset that was seen; EventSource sends it when it reconnects.",
	schema: { type: "integer", minimum: 0 },
};

const TRACEPARENT = {
	name: "traceparent",
	in: "header",
	required: false,
	description: "W3C Trace Context: the run's frames carry this trace's id as `trace_id`.",
	schema: { type: "string" },
};

/** A wrong request, a foreign Host or Origin, too many connections, a fault of ours, a daemon that is stopping. */
const ANYWHERE = ["invalid", "forbidden", "busy", "internal", "unavailable"] as const satisfies ErrorCode[];

function responses(route: Route): OpenApiObject {
	const { answer } = route;
	const body =
		typeof answer === "string" ? { [answer]: { schema: {} } } : { "application/json": { schema: schemaOf(answer) } };
	const content = route.status === 101 ? {} : { content: body };
	const answers: OpenApiObject = { [route.status]: { description: route.summary, ...content } };
	if (route.close === "A" || route.close === "B")
		answers[204] = { description: "The stream has ended and everything was sent before." };
	if (route.ranges) {
		answers[206] = { description: "The part that a Range asked for.", ...content };
		answers[416] = { description: "The Range lies beyond the end." };
	}
	if (route.path === "/readyz") answers[503] = { ...(answers[200] as OpenApiObject), description: "Not ready." };
	return describeFailures(answers, [
		...route.errors,
		...(route.body ? (["too_large"] as const) : []),
		...(route.auth ? (["unauthenticated"] as const) : []),
	]);
}

/** Adds the statuses of these errors, and of those that every route may have. */
export function describeFailures(answers: OpenApiObject, codes: readonly ErrorCode[]): OpenApiObject {
	for (const code of [...codes, ...ANYWHERE]) {
		answers[httpStatusOf(code)] ??= {
			description: code,
			content: { "application/json": { schema: schemaOf(Failure) } },
		};
	}
	return answers;
}

function parameters(schema: z.ZodObject | undefined, place: "path" | "query"): OpenApiObject[] {
	return Object.entries(schema?.shape ?? {}).map(([name, field]) => {
		const { $schema, description, ...rest } = z.toJSONSchema(field as z.ZodType, { unrepresentable: "any" });
		const required = place === "path" || !(field as z.ZodType).safeParse(undefined).success;
		return { name, in: place, required, description: description || undefined, schema: rest };
	});
}

function schemaOf(schema: z.ZodType): OpenApiObject {
	const id = COMPONENTS.get(schema)?.id;
	if (id !== undefined) return { $ref: refTo(id) };
	const { $schema, ...rest } = z.toJSONSchema(schema, { unrepresentable: "any" });
	return rest;
}
