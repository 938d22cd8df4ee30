/**
 * What answers requests. The first request loads it: with WebSocket's, its libraries take an idle daemon 7 MB, which one that only
 * serves chat platforms never needs, and no start has to wait for them.
 */

import { getRequestListener, type HttpBindings, RequestError } from "@hono/node-server";
import { toNexusError } from "../protocol/protocol.ts";
import { createApp, failure } from "./app.ts";
import { isRpcPath, type Rpc } from "./grpc/grpc.ts";
import { createHandlers, type HandlerParts } from "./handlers.ts";
import type { Page } from "./page.ts";
import type { Admit, Listener } from "./server.ts";
import type { HoldStream } from "./shares.ts";

export interface ListenerParts extends HandlerParts {
	page: Page;
	/** Throws when the request is refused. */
	admit: Admit;
	holdStream: HoldStream;
	/** Lets in and answers remote procedures, where there are any. */
	rpc?: { enter: Admit; answer: Rpc["answer"] };
}

export function createListener({ page, admit, holdStream, rpc, ...parts }: ListenerParts): Listener {
	const { log } = parts.deps;
	const { bodyBytesMax } = parts.limits;
	const app = createApp({ handlers: createHandlers(parts), page, holdStream, bodyBytesMax, log });
	const answer: Listener = getRequestListener(
		(request, env) => {
			const { incoming, outgoing } = env as HttpBindings;
			return app.fetch(request, { caller: admit(incoming, outgoing), outgoing });
		},
		{
			overrideGlobalObjects: false,
			autoCleanupIncoming: false,
			errorHandler: (cause) => failure(cause instanceof RequestError ? toNexusError(cause, "invalid") : cause, log),
		},
	);
	if (!rpc) return answer;
	return async (incoming, outgoing) => {
		if (!isRpcPath(incoming.url ?? "")) return answer(incoming, outgoing);
		return rpc.answer(incoming, outgoing, rpc.enter(incoming, outgoing));
	};
}
