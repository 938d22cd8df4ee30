/** Accounts and sign-ins. */

import type { ServiceImpl } from "@connectrpc/connect";
import type { RuntimeAccountService } from "../../gen/nexus/runtime/v1/account_pb.ts";
import type { RpcDeps } from "./rpc.ts";

export const accountMethods = (_: RpcDeps): Partial<ServiceImpl<typeof RuntimeAccountService>> => ({});
