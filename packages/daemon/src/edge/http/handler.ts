/** The type of a route's handler. */

import type { ServerResponse } from "node:http";
import type { RouteId, RouteInput, RouteResponse } from "../api/routes.ts";
import type { Caller } from "./gate.ts";

export interface RequestContext {
	caller: Caller;
	headers: Headers;
	url: string;
	/** The raw response, for streams. */
	outgoing: ServerResponse;
}

export type Handlers = {
	[Id in RouteId]: (input: RouteInput<Id>, context: RequestContext) => Promise<RouteResponse<Id>> | RouteResponse<Id>;
};
