/** Workflows. */

import type { ServiceImpl } from "@connectrpc/connect";
import type { RuntimeWorkflowService } from "../../gen/nexus/runtime/v1/workflow_pb.ts";
import type { RpcDeps } from "./rpc.ts";

export const workflowMethods = (_: RpcDeps): Partial<ServiceImpl<typeof RuntimeWorkflowService>> => ({});
