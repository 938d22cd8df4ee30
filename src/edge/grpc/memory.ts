/** What agents have noted. */

import type { ServiceImpl } from "@connectrpc/connect";
import type { RuntimeMemoryService } from "../../gen/nexus/runtime/v1/memory_pb.ts";
import type { RpcDeps } from "./rpc.ts";

export const memoryMethods = (_: RpcDeps): Partial<ServiceImpl<typeof RuntimeMemoryService>> => ({});
