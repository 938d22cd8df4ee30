/** The runtime contract as REST: its routes, and its part of the OpenAPI document. The door of this folder. */

import type { Hono } from "hono";
import type { Described } from "../api/openapi.ts";
import type { AppEnv } from "../http/app.ts";
import { SERVICES } from "../rpc/routes.ts";
import { httpRoutes } from "./http-rules.ts";
import { describeRoutes } from "./openapi.ts";
import { createTranscoder, type TranscodeParts } from "./transcode.ts";

export interface Rest {
	fetch: Hono<AppEnv>["fetch"];
	openapi(): Promise<Described>;
}

export function createRest(parts: TranscodeParts): Rest {
	const routes = httpRoutes(SERVICES);
	return {
		fetch: createTranscoder(routes, parts).fetch,
		async openapi() {
			// Read by this document alone.
			const { COMMENTS } = await import("@nexus-stream/client/gen/nexus/runtime/v1/comments");
			return describeRoutes(routes, COMMENTS);
		},
	};
}
