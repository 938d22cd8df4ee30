/** The audit log. */

import type { ServiceImpl } from "@connectrpc/connect";
import type { RuntimeAuditService } from "../../gen/nexus/runtime/v1/audit_pb.ts";
import type { RpcDeps } from "./rpc.ts";

export const auditMethods = (_: RpcDeps): Partial<ServiceImpl<typeof RuntimeAuditService>> => ({});
