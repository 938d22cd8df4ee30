/** Uploads and transfers. */

import type { ServiceImpl } from "@connectrpc/connect";
import type { RuntimeLocalService } from "../../gen/nexus/runtime/v1/local_pb.ts";
import type { RpcDeps } from "./rpc.ts";

export const transferMethods = (_: RpcDeps): Partial<ServiceImpl<typeof RuntimeLocalService>> => ({});
