/** One router on two ports: gRPC on its own, gRPC-web and Connect on the main one. */

import { expect, it, onTestFinished } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../../src/gen/grpc/health/v1/health_pb.ts";
import type { DaemonState } from "../../../src/protocol/protocol.ts";
import { errorOf, type GrpcKitOptions, PROTOCOLS, startGrpcKit, statusOf } from "./kit.ts";

async function start(options?: GrpcKitOptions) {
	const kit = await startGrpcKit(options);
	onTestFinished(() => kit.close());
	return kit;
}

function feed() {
	const listeners = new Set<(state: DaemonState) => void>();
	let state: DaemonState = "READY";
	return {
		listeners,
		set(next: DaemonState) {
			state = next;
			for (const listener of listeners) listener(next);
		},
		health: {
			state: () => state,
			subscribe(listener: (state: DaemonState) => void) {
				listeners.add(listener);
				return () => listeners.delete(listener);
			},
		},
	};
}

it.each(PROTOCOLS)("Z11: %s carries a unary call and a stream", async (protocol) => {
	const { set, listeners, health } = feed();
	const kit = await start({ deps: { health } });
	const client = kit.client(Health, protocol, "");
	expect((await client.check({ service: "" })).status).toBe(Status.SERVING);
	expect(statusOf(await errorOf(client.check({ service: "none" })))).toEqual({
		code: "NotFound",
		reason: "REASON_CODE_NOT_FOUND",
	});
	const abort = new AbortController();
	const seen: number[] = [];
	const reading = (async () => {
		for await (const { status } of client.watch({ service: "" }, { signal: abort.signal })) {
			seen.push(status);
			if (seen.length === 1) set("STOPPING");
			else abort.abort();
		}
	})();
	await expect(reading).rejects.toMatchObject({ code: 1 });
	expect(seen).toEqual([Status.SERVING, Status.NOT_SERVING]);
	await expect.poll(() => listeners.size).toBe(0);
});
