/** The model calls of a daemon, as a program on the same machine makes them. */

import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { RuntimeAiService } from "../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { type Daemon, dataPaths, readToken } from "../packages/daemon/src/runtime/runtime.ts";

export function clientOf({ grpc, data }: Daemon) {
	const authorization = `Bearer ${readToken(dataPaths(data))}`;
	const transport = createGrpcTransport({
		baseUrl: grpc!,
		interceptors: [
			(next) => (request) => {
				request.header.set("authorization", authorization);
				return next(request);
			},
		],
	});
	return createClient(RuntimeAiService, transport);
}

export const head = { appId: "shop", connectorId: "default" };
export const asking = (text: string) => ({
	head,
	spec: { case: "textGenerate" as const, value: { messages: [{ role: "user", text }] } },
});
