/** A daemon process with its gRPC port, and plain clients of the runtime contract: they see every status as it is. */

import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport, type GrpcTransportOptions } from "@connectrpc/connect-node";
import { Health } from "../../packages/client/src/gen/grpc/health/v1/health_pb.ts";
import { RuntimeAccountService } from "../../packages/client/src/gen/nexus/runtime/v1/account_pb.ts";
import { RuntimeAgentService } from "../../packages/client/src/gen/nexus/runtime/v1/agent_pb.ts";
import { RuntimeAiService } from "../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { RuntimeAppService } from "../../packages/client/src/gen/nexus/runtime/v1/app_pb.ts";
import { RuntimeAuditService } from "../../packages/client/src/gen/nexus/runtime/v1/audit_pb.ts";
import { RuntimeConnectorService } from "../../packages/client/src/gen/nexus/runtime/v1/connector_pb.ts";
import { RuntimeLocalService } from "../../packages/client/src/gen/nexus/runtime/v1/local_pb.ts";
import { RuntimeMemoryService } from "../../packages/client/src/gen/nexus/runtime/v1/memory_pb.ts";
import { RuntimeRealtimeService } from "../../packages/client/src/gen/nexus/runtime/v1/realtime_pb.ts";
import { RuntimeWorkflowService } from "../../packages/client/src/gen/nexus/runtime/v1/workflow_pb.ts";
import { ownPort } from "../port.ts";
import { call, type DaemonProcess, daemonIn, TOKEN } from "./daemon.ts";

export interface RuntimeProcess extends DaemonProcess {
	/** Address of the gRPC port. */
	readonly grpc: string;
}

/** With the demo engine; `config` is what else its file says. */
export async function runtimeIn(
	folder: string,
	config = "",
	nodeFlags: readonly string[] = [],
): Promise<RuntimeProcess> {
	const port = await ownPort();
	const text = `engine: demo\nlog: { level: warn }\ngrpc: { port: ${port} }\n${config}`;
	return Object.assign(await daemonIn(folder, text, nodeFlags), { grpc: `http://127.0.0.1:${port}` });
}

/** Their messages need applications that are there. */
export async function addApps(url: string, ...ids: string[]): Promise<void> {
	for (const app_id of ids) await call(`${url}/v1/apps`, { app_id });
}

/** Over a connection of their own. */
export function clientsOf(grpc: string, token = TOKEN, options: Partial<GrpcTransportOptions> = {}) {
	const named: Interceptor = (next) => (request) => {
		request.header.set("authorization", `Bearer ${token}`);
		return next(request);
	};
	const transport = createGrpcTransport({ ...options, baseUrl: grpc, interceptors: [named] });
	const client = <S extends DescService>(service: S): Client<S> => createClient(service, transport);
	return {
		transport,
		ai: client(RuntimeAiService),
		realtime: client(RuntimeRealtimeService),
		workflows: client(RuntimeWorkflowService),
		audit: client(RuntimeAuditService),
		accounts: client(RuntimeAccountService),
		memory: client(RuntimeMemoryService),
		agents: client(RuntimeAgentService),
		apps: client(RuntimeAppService),
		local: client(RuntimeLocalService),
		connectors: client(RuntimeConnectorService),
		health: client(Health),
	};
}

export type Clients = ReturnType<typeof clientsOf>;

export const textOf = (text: string, { appId = "proof", connectorId = "default", timeoutMs = 0 } = {}) => ({
	head: { appId, connectorId, timeoutMs },
	spec: { case: "textGenerate" as const, value: { messages: [{ role: "user", text }] } },
});

export const speechOf = (text: string, { appId = "proof", connectorId = "default", timeoutMs = 0 } = {}) => ({
	head: { appId, connectorId, timeoutMs },
	spec: { case: "speechSynthesize" as const, value: { text } },
});
