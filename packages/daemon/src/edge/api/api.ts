/** The HTTP API: all routes in one table, and all handlers. What is served and what the OpenAPI document says are both made from them. */

import { ACCOUNT_ROUTES, accountHandlers } from "./accounts.ts";
import { APPROVAL_ROUTES, approvalHandlers } from "./approvals.ts";
import { ARTIFACT_ROUTES, artifactHandlers } from "./artifacts.ts";
import { DAEMON_ROUTES, type DaemonHandlerParts, daemonHandlers } from "./daemon.ts";
import { DELIVERY_ROUTES, deliveryHandlers } from "./deliveries.ts";
import { LAB_ROUTES, labHandlers } from "./lab.ts";
import { MCP_ROUTES, mcpHandlers } from "./mcp.ts";
import { MESSAGE_ROUTES, messageHandlers } from "./messages.ts";
import { type Described, openapi } from "./openapi.ts";
import type { HandlersOf, Route } from "./resource.ts";
import { RUN_ROUTES, runHandlers } from "./runs.ts";
import { SESSION_ROUTES, sessionHandlers } from "./sessions.ts";
import { STREAM_ROUTES, type StreamHandlerParts, streamHandlers } from "./streams.ts";
import { WEBHOOK_ROUTES, webhookHandlers } from "./webhooks.ts";

export const ROUTES = {
	...MESSAGE_ROUTES,
	...RUN_ROUTES,
	...SESSION_ROUTES,
	...STREAM_ROUTES,
	...APPROVAL_ROUTES,
	...ACCOUNT_ROUTES,
	...DELIVERY_ROUTES,
	...WEBHOOK_ROUTES,
	...LAB_ROUTES,
	...ARTIFACT_ROUTES,
	...MCP_ROUTES,
	...DAEMON_ROUTES,
} satisfies Record<string, Route>;

export type RouteId = keyof typeof ROUTES;
export type Handlers = HandlersOf<typeof ROUTES>;

export interface HandlerParts extends StreamHandlerParts, Omit<DaemonHandlerParts, "openapi"> {
	/** The routes of the runtime contract. */
	rest(): Promise<{ openapi(): Promise<Described> }>;
}

export function createHandlers(parts: HandlerParts): Handlers {
	const { deps, limits, rest } = parts;
	const document = async () => openapi(ROUTES, deps.version, await (await rest()).openapi());
	return {
		...messageHandlers(deps, limits),
		...runHandlers(deps, limits),
		...sessionHandlers(deps, limits),
		...streamHandlers(parts),
		...approvalHandlers(deps, limits),
		...accountHandlers(deps),
		...deliveryHandlers(deps, limits),
		...webhookHandlers(deps, limits),
		...labHandlers(deps),
		...artifactHandlers(deps),
		...mcpHandlers(deps),
		...daemonHandlers({ ...parts, openapi: document }),
	};
}
