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
import type { EdgeLimits, RegisterMethods } from "../port.ts";
import { type ProbeSource, probeMethods } from "./probe.ts";
import { reflectionMethods } from "./reflection.ts";

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

export interface MethodSources {
	deps: ProbeSource;
	register: RegisterMethods;
	limits: EdgeLimits;
}

export function addServices(router: Pick<ConnectRouter, "service">, { deps, register, limits }: MethodSources): void {
	register(router, limits);
	const reflection = reflectionMethods(SERVICES);
	router.service(ServerReflection, reflection);
	// The same messages under an older name.
	router.service(ServerReflectionAlpha, reflection as unknown as ServiceImpl<typeof ServerReflectionAlpha>);
	router.service(Health, probeMethods(deps, new Set(SERVICES.map(({ typeName }) => typeName))));
}
