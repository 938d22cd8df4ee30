/** Messages between applications. */

import type { ServiceImpl } from "@connectrpc/connect";
import type { RuntimeAppService } from "../../gen/nexus/runtime/v1/app_pb.ts";
import type { RpcDeps } from "./rpc.ts";

export const appMethods = (_: RpcDeps): Partial<ServiceImpl<typeof RuntimeAppService>> => ({});
