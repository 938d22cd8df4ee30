/** The remote procedures of a daemon, as a program on the same machine calls them. */

import { createClient, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { RuntimeAiService } from "../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { type Daemon, dataPaths, readToken } from "../packages/daemon/src/runtime/runtime.ts";

/** gRPC with this token, by default the owner's. */
export function transportOf({ grpc, data }: Daemon, token = readToken(dataPaths(data))): Transport {
	const authorization = `Bearer ${token}`;
	return createGrpcTransport({
		baseUrl: grpc!,
		interceptors: [
			(next) => (request) => {
				request.header.set("authorization", authorization);
				return next(request);
			},
		],
	});
}

export const clientOf = (daemon: Daemon, token?: string) => createClient(RuntimeAiService, transportOf(daemon, token));

export const head = { appId: "shop", connectorId: "default" };
export const asking = (text: string) => ({
	head,
	spec: { case: "textGenerate" as const, value: { messages: [{ role: "user", text }] } },
});
