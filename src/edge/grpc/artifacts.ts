/** Artifacts. */

import type { ServiceImpl } from "@connectrpc/connect";
import type { RuntimeAiService } from "../../gen/nexus/runtime/v1/ai_pb.ts";
import type { RpcDeps } from "./rpc.ts";

export const artifactMethods = (_: RpcDeps): Partial<ServiceImpl<typeof RuntimeAiService>> => ({});
