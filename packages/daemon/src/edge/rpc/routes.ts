/** Every service of the runtime contract on one router. */

import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter, ServiceImpl } from "@connectrpc/connect";
import { Health } from "@nexus-stream/client/gen/grpc/health/v1/health_pb";
import { ServerReflection } from "@nexus-stream/client/gen/grpc/reflection/v1/reflection_pb";
import { ServerReflection as ServerReflectionAlpha } from "@nexus-stream/client/gen/grpc/reflection/v1alpha/reflection_pb";
import { RuntimeAccountService } from "@nexus-stream/client/gen/nexus/runtime/v1/account_pb";
import { RuntimeAgentService } from "@nexus-stream/client/gen/nexus/runtime/v1/agent_pb";
import { RuntimeAiService } from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import { RuntimeAppService } from "@nexus-stream/client/gen/nexus/runtime/v1/app_pb";
import { RuntimeAuditService } from "@nexus-stream/client/gen/nexus/runtime/v1/audit_pb";
import { RuntimeConnectorService } from "@nexus-stream/client/gen/nexus/runtime/v1/connector_pb";
import { RuntimeLocalService } from "@nexus-stream/client/gen/nexus/runtime/v1/local_pb";
import { RuntimeMemoryService } from "@nexus-stream/client/gen/nexus/runtime/v1/memory_pb";
import { RuntimeRealtimeService } from "@nexus-stream/client/gen/nexus/runtime/v1/realtime_pb";
import { RuntimeWorkflowService } from "@nexus-stream/client/gen/nexus/runtime/v1/workflow_pb";
import { accountMethods } from "./accounts.ts";
import { agentMethods } from "./agents.ts";
import { appMethods, appRegistry } from "./apps.ts";
import { artifactMethods } from "./artifacts.ts";
import { auditMethods } from "./audit.ts";
import { connectorMethods } from "./connectors.ts";
import { healthMethods } from "./health.ts";
import { jobMethods } from "./jobs.ts";
import { memoryLists, memoryMethods } from "./memory.ts";
import { probeMethods } from "./probe.ts";
import { providerMethods } from "./providers.ts";
import { realtimeMethods } from "./realtime.ts";
import { reflectionMethods } from "./reflection.ts";
import type { RpcDeps } from "./rpc.ts";
import { scenarioMethods } from "./scenarios.ts";
import { transferMethods } from "./transfers.ts";
import { workflowMethods } from "./workflows.ts";

/** Every service that there is; reflection and health checks name them. */
export const SERVICES: readonly DescService[] = [
	RuntimeAiService,
	RuntimeLocalService,
	RuntimeRealtimeService,
	RuntimeWorkflowService,
	RuntimeAuditService,
	RuntimeAccountService,
	RuntimeMemoryService,
	RuntimeAgentService,
	RuntimeAppService,
	RuntimeConnectorService,
	Health,
	ServerReflection,
	ServerReflectionAlpha,
];

/** What is not implemented answers so by itself. */
export function addServices(router: Pick<ConnectRouter, "service">, rpc: RpcDeps): void {
	router.service(RuntimeAiService, { ...scenarioMethods(rpc), ...jobMethods(rpc), ...artifactMethods(rpc) });
	router.service(RuntimeLocalService, transferMethods(rpc));
	router.service(RuntimeRealtimeService, realtimeMethods(rpc));
	router.service(RuntimeWorkflowService, workflowMethods(rpc));
	router.service(RuntimeAuditService, { ...auditMethods(rpc), ...healthMethods(rpc), ...providerMethods(rpc) });
	router.service(RuntimeAccountService, accountMethods(rpc));
	router.service(RuntimeMemoryService, { ...memoryMethods(rpc), ...memoryLists(rpc) });
	router.service(RuntimeAgentService, agentMethods(rpc));
	router.service(RuntimeAppService, { ...appMethods(rpc), ...appRegistry(rpc) });
	router.service(RuntimeConnectorService, connectorMethods(rpc));
	const reflection = reflectionMethods(SERVICES);
	router.service(ServerReflection, reflection);
	// The same messages under an older name.
	router.service(ServerReflectionAlpha, reflection as unknown as ServiceImpl<typeof ServerReflectionAlpha>);
	router.service(Health, probeMethods(rpc, new Set(SERVICES.map(({ typeName }) => typeName))));
}
