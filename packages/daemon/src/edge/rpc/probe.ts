/** The standard health check of gRPC: whether the daemon serves, for probes and load balancers. It needs no token. */

import type { ServiceImpl } from "@connectrpc/connect";
import {
	type Health,
	HealthCheckResponse_ServingStatus as Status,
} from "@nexus-stream/client/gen/grpc/health/v1/health_pb";
import { NexusError } from "@nexus-stream/protocol";
import type { DaemonState } from "@nexus-stream/protocol/api";
import type { EdgeDeps } from "../port.ts";
import { feedStream } from "./rpc.ts";

export type ProbeSource = Pick<EdgeDeps, "health">;

type ServingStatus = (typeof Status)[keyof typeof Status];

/** Degraded is not ready, as `/readyz` says it, too. */
const statusOf = (state: DaemonState): ServingStatus => (state === "READY" ? Status.SERVING : Status.NOT_SERVING);

/** `names`: the services that there are. The empty name is the whole daemon. */
export function probeMethods(deps: ProbeSource, names: ReadonlySet<string>): ServiceImpl<typeof Health> {
	const state = () => deps.health.state();
	const isKnown = (name: string) => name === "" || names.has(name);
	return {
		async check({ service }) {
			if (!isKnown(service)) throw new NexusError("not_found", "there is no such service");
			return { status: statusOf(state()) };
		},
		async list() {
			const status = statusOf(state());
			return { statuses: Object.fromEntries(["", ...names].map((name) => [name, { status }])) };
		},
		watch: ({ service }, context) =>
			feedStream<ServingStatus, { status: ServingStatus }>(context, {
				current: () => [isKnown(service) ? statusOf(state()) : Status.SERVICE_UNKNOWN],
				subscribe(listener) {
					let last = statusOf(state());
					if (!isKnown(service)) return () => {};
					return deps.health.subscribe((next) => {
						if (statusOf(next) === last) return;
						last = statusOf(next);
						listener(last);
					});
				},
				key: () => "",
				message: (status) => ({ status }),
			}),
	};
}
