/** The methods of the runtime contract, collected from the slices that implement them. Loaded by the first call. */

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
import type { RegisterMethods } from "../../edge/edge.ts";
import { accountMethods } from "../../services/accounts/rpc.ts";
import { type AgentRpcParts, agentMethods } from "../../services/agents/rpc.ts";
import { appMethods, appRegistry } from "../../services/apps/rpc.ts";
import { artifactMethods, transferMethods } from "../../services/artifacts/rpc.ts";
import { auditMethods } from "../../services/audit/rpc.ts";
import { connectorMethods, providerMethods } from "../../services/connectors/rpc.ts";
import { healthMethods } from "../../services/health/rpc.ts";
import { jobMethods } from "../../services/jobs/rpc.ts";
import { type MemoryRpcParts, memoryLists, memoryMethods } from "../../services/memory/rpc.ts";
import { realtimeMethods } from "../../services/realtime/rpc.ts";
import { scenarioMethods } from "../../services/scenarios/rpc.ts";
import { workflowMethods } from "../../services/workflows/rpc.ts";
import type { Services } from "./port.ts";

export type MethodParts = Services & Omit<AgentRpcParts & MemoryRpcParts, "limits">;

export const methodsOf =
	(services: MethodParts): RegisterMethods =>
	(router, limits) => {
		const parts = { ...services, limits };
		router.service(RuntimeAiService, { ...scenarioMethods(parts), ...jobMethods(parts), ...artifactMethods(parts) });
		router.service(RuntimeLocalService, transferMethods(parts));
		router.service(RuntimeRealtimeService, realtimeMethods(parts));
		router.service(RuntimeWorkflowService, workflowMethods(parts));
		router.service(RuntimeAuditService, { ...auditMethods(parts), ...healthMethods(parts), ...providerMethods(parts) });
		router.service(RuntimeAccountService, accountMethods(parts));
		router.service(RuntimeMemoryService, { ...memoryMethods(parts), ...memoryLists(parts) });
		router.service(RuntimeAgentService, agentMethods(parts));
		router.service(RuntimeAppService, { ...appMethods(parts), ...appRegistry(parts) });
		router.service(RuntimeConnectorService, connectorMethods(parts));
	};
