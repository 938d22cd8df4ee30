/** Connectors. */

import type { ServiceImpl } from "@connectrpc/connect";
import type { RuntimeConnectorService } from "../../gen/nexus/runtime/v1/connector_pb.ts";
import type { RpcDeps } from "./rpc.ts";

export const connectorMethods = (_: RpcDeps): Partial<ServiceImpl<typeof RuntimeConnectorService>> => ({});
