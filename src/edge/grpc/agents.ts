/** Agents, and the runs of all sessions. */

import type { ServiceImpl } from "@connectrpc/connect";
import type { RuntimeAgentService } from "../../gen/nexus/runtime/v1/agent_pb.ts";
import type { RpcDeps } from "./rpc.ts";

export const agentMethods = (_: RpcDeps): Partial<ServiceImpl<typeof RuntimeAgentService>> => ({});
