/** The HTTP routes of the runtime contract, as the options of its procedures name them. */

import {
	type DescField,
	type DescMessage,
	type DescMethod,
	type DescService,
	getOption,
	hasOption,
	ScalarType,
} from "@bufbuild/protobuf";
import { type HttpRule, http } from "@nexus-stream/client/gen/nexus/http/v1/http_pb";
import type { CloseMode } from "@nexus-stream/protocol";
import { closeModeOf } from "../rpc/admit.ts";

export type Verb = "GET" | "POST" | "PUT" | "DELETE";

export interface HttpRoute {
	method: DescMethod;
	verb: Verb;
	/** As OpenAPI spells it: `/v1/jobs/{job_id}`. */
	path: string;
	/** The request's fields that the path names, in its order. */
	params: readonly DescField[];
	/** The request is the JSON body; otherwise its fields are query parameters. */
	hasBody: boolean;
	/** The field of the response that is the answer; undefined: the whole response. */
	answer: DescField | undefined;
	/** The answer is a file: the bytes of this field of every message of the stream. */
	file: DescField | undefined;
	/** The HTTP status of success. */
	status: number;
	/** How a stream closes; undefined for a unary procedure. */
	closes: CloseMode | undefined;
}

const VERBS = { get: "GET", post: "POST", put: "PUT", delete: "DELETE" } as const;

/** Throws for a rule that names a field which is not there: a mistake in `proto/`. */
export const httpRoutes = (services: readonly DescService[]): HttpRoute[] =>
	services
		.flatMap(({ methods }) => methods)
		.filter((method) => hasOption(method, http))
		.map((method) => routeOf(method, getOption(method, http)));

function routeOf(method: DescMethod, { pattern, responseBody, status }: HttpRule): HttpRoute {
	if (pattern.case === undefined) throw new Error(`${method.name}: its HTTP rule has no path`);
	if (method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming")
		throw new Error(`${method.name}: HTTP carries one request`);
	const path = pattern.value;
	const verb = VERBS[pattern.case];
	const answer = responseBody === "" ? undefined : fieldOf(method.output, responseBody);
	const isFile = method.methodKind === "server_streaming" && answer?.scalar === ScalarType.BYTES;
	return {
		method,
		verb,
		path,
		params: namesIn(path).map((name) => fieldOf(method.input, name)),
		hasBody: verb === "POST" || verb === "PUT",
		answer: isFile ? undefined : answer,
		file: isFile ? answer : undefined,
		status: status === 0 ? 200 : status,
		closes: method.methodKind === "unary" ? undefined : closesOf(method),
	};
}

const namesIn = (path: string): string[] => [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);

function fieldOf(message: DescMessage, name: string): DescField {
	const found = message.fields.find((field) => field.name === name);
	if (found) return found;
	throw new Error(`${message.typeName}: the HTTP rule names ${name}, which is not one of its fields`);
}

function closesOf({ parent, name }: DescMethod): CloseMode {
	const procedure = `${parent.typeName}/${name}`;
	const mode = closeModeOf(procedure);
	if (mode) return mode;
	throw new Error(`${procedure} is not in the table of close modes`);
}
