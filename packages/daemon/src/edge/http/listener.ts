/**
 * The request listener, loaded by the first request: its libraries and those of WebSocket cost an idle daemon 7 MB, which a daemon that
 * only serves chat platforms never needs, and no start has to wait for them.
 */

import { getRequestListener, type HttpBindings, RequestError } from "@hono/node-server";
import { toNexusError } from "@nexus-stream/protocol";
import { sleep } from "@nexus-stream/protocol/retry";
import { createHandlers, type HandlerParts } from "../api/api.ts";
import { isRpcPath, type RpcServer } from "../rpc/grpc.ts";
import { createApp, failure } from "./app.ts";
import type { Page } from "./page.ts";
import type { Admit, HttpListener } from "./server.ts";
import type { HoldStream } from "./strangers.ts";

export interface ListenerParts extends Omit<HandlerParts, "rest"> {
	page: Page;
	/** Throws when the request is refused. */
	admit: Admit;
	holdStream: HoldStream;
	/** Admits remote procedures. */
	enterRpc: Admit;
	rpc: Pick<RpcServer, "answer" | "rest">;
}

export function createListener({ page, admit, holdStream, enterRpc, rpc, ...parts }: ListenerParts): HttpListener {
	const { log, clock } = parts.deps;
	const { limits } = parts;
	const { rest } = rpc;
	const app = createApp({ handlers: createHandlers({ ...parts, rest }), page, holdStream, rest, limits, clock, log });
	const answer: HttpListener = getRequestListener(
		(request, env) => {
			const { incoming, outgoing } = env as HttpBindings;
			const caller = admit(incoming, outgoing);
			const answer = () => app.fetch(request, { caller, outgoing });
			// The request counts as open meanwhile, so few of one client are held at a time.
			return caller.heldMs === undefined ? answer() : sleep(clock, caller.heldMs).then(answer);
		},
		{
			overrideGlobalObjects: false,
			autoCleanupIncoming: false,
			errorHandler: (cause) => failure(cause instanceof RequestError ? toNexusError(cause, "invalid") : cause, log),
		},
	);
	return async (incoming, outgoing) => {
		if (!isRpcPath(incoming.url ?? "")) return answer(incoming, outgoing);
		const caller = enterRpc(incoming, outgoing);
		if (caller.heldMs !== undefined) await sleep(clock, caller.heldMs);
		return rpc.answer(incoming, outgoing, caller);
	};
}
