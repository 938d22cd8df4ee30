/** One route of the HTTP API, as data. */

import type { CloseMode, ErrorCode } from "@nexus-stream/protocol";
import type { z } from "zod";

export interface Route {
	method: "GET" | "POST" | "PUT" | "DELETE";
	/** As OpenAPI spells it: `/v1/runs/{run}`. */
	path: string;
	summary: string;
	/** False: open to who has no token. */
	auth: boolean;
	/** An application's token reaches it, too: what it answers is the application's own. */
	apps?: true;
	params?: z.ZodObject;
	query?: z.ZodObject;
	body?: z.ZodType;
	/** The handler reads the body itself, as the bytes it is, once it knows that it wants it. */
	raw?: true;
	/** The HTTP status of success. */
	status: number;
	answer: { type: string; schema?: z.ZodType };
	/** The content type of a file that was requested in another format. */
	otherType?: string;
	/** A part of the answer may be asked for by a Range. */
	ranges?: true;
	/** Errors besides those that every route may have. */
	errors: readonly ErrorCode[];
	/** How a stream closes; absent for everything that is not one. */
	close?: CloseMode;
}

export const json = <S extends z.ZodType>(schema: S) => ({ type: "application/json", schema });
export const route = <const R extends Route>(definition: R): R => definition;
