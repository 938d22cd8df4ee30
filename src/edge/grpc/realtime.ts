/** Conversations in turns. */

import type { ServiceImpl } from "@connectrpc/connect";
import type { RuntimeRealtimeService } from "../../gen/nexus/runtime/v1/realtime_pb.ts";
import type { RpcDeps } from "./rpc.ts";

export const realtimeMethods = (_: RpcDeps): Partial<ServiceImpl<typeof RuntimeRealtimeService>> => ({});
