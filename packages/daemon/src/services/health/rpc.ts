/** How the daemon is. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
	type RuntimeAuditService,
	type RuntimeHealthSchema,
	RuntimeStatus,
} from "@nexus-stream/client/gen/nexus/runtime/v1/audit_pb";
import { feedStream, principalOf } from "../../edge/rpc/rpc.ts";
import { requireOwner } from "../kit/principal.ts";
import type { RuntimeHealth, RuntimeHealthFeed } from "./health.ts";

export const healthMethods = ({
	health,
}: {
	health: RuntimeHealthFeed;
}): Partial<ServiceImpl<typeof RuntimeAuditService>> => ({
	async getRuntimeHealth(_, context) {
		requireOwner(principalOf(context));
		return { health: healthOf(health.current()) };
	},
	async *subscribeRuntimeHealthEvents(_, context) {
		requireOwner(principalOf(context));
		yield* feedStream(context, {
			current: () => [health.current()],
			subscribe: (listener) => health.subscribe(listener),
			// A reader that is behind misses samples of the same status, and no other status.
			key: ({ status }) => status,
			message: (state, sequence) => ({ sequence, health: healthOf(state) }),
		});
	},
});

const healthOf = (health: RuntimeHealth): MessageInitShape<typeof RuntimeHealthSchema> => ({
	...health,
	status: RuntimeStatus[health.status],
	memoryBytes: BigInt(health.memoryBytes),
	sampledAt: timestampFromMs(health.sampledAt),
});
