/** What a handler of a route is. */

import type { ServerResponse } from "node:http";
import type { Caller } from "./gate.ts";
import type { Answer, Input, RouteId } from "./routes.ts";

export interface Context {
	caller: Caller;
	headers: Headers;
	url: string;
	/** The raw response, for streams. */
	outgoing: ServerResponse;
}

export type Handlers = {
	[Id in RouteId]: (input: Input<Id>, context: Context) => Promise<Answer<Id>> | Answer<Id>;
};
