/** How the daemon is. */

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
	GetRuntimeHealthResponseSchema,
	type RuntimeAuditService,
	RuntimeHealthSchema,
	RuntimeStatus,
	SubscribeRuntimeHealthEventsResponseSchema,
} from "@nexus-stream/client/gen/nexus/runtime/v1/audit_pb";
import { feedStream, principalOf } from "../../edge/rpc/rpc.ts";
import { requireOwner } from "../kit/principal.ts";
import type { RuntimeHealth, RuntimeHealthFeed } from "./port.ts";

export const healthMethods = ({
	health,
}: {
	health: RuntimeHealthFeed;
}): Partial<ServiceImpl<typeof RuntimeAuditService>> => ({
	async getRuntimeHealth(_, context) {
		requireOwner(principalOf(context));
		return create(GetRuntimeHealthResponseSchema, { health: healthOf(health.current()) });
	},
	async *subscribeRuntimeHealthEvents(_, context) {
		requireOwner(principalOf(context));
		yield* feedStream(context, {
			...healthFeed(health),
			message: (state, sequence) =>
				create(SubscribeRuntimeHealthEventsResponseSchema, { sequence, health: healthOf(state) }),
		});
	},
});

const healthOf = ({ status, reason = "", memoryBytes, sampledAt, ...counts }: RuntimeHealth) =>
	create(RuntimeHealthSchema, {
		status: RuntimeStatus[status],
		reason,
		queueDepth: counts.queueDepth,
		activeWorkflows: counts.activeWorkflows,
		activeInferenceJobs: counts.activeInferenceJobs,
		activeRuns: counts.activeRuns,
		cpuMilli: counts.cpuMilli,
		memoryBytes: BigInt(memoryBytes),
		sampledAt: timestampFromMs(sampledAt),
	});

/** A reader that is behind misses samples of the same status, and no other status. */
const healthFeed = (health: RuntimeHealthFeed) => ({
	current: () => [health.current()],
	subscribe: (listener: (state: RuntimeHealth) => void) => health.subscribe(listener),
	key: ({ status }: RuntimeHealth) => status,
});
