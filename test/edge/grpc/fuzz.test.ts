/** Garbage is answered with a status by every method of a whole daemon, and leaves nothing open behind. The long round is a proof's. */

import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, it } from "vitest";
import { Health } from "../../../packages/client/src/gen/grpc/health/v1/health_pb.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { atEffort } from "../../effort.ts";
import { daemonForTest } from "../../runtime/daemon.ts";
import { seed } from "../../seed.ts";
import { BEARER, TOKEN, waitFor } from "../rig.ts";
import { fuzzCalls } from "./fuzz.ts";

it("P8.2: garbage messages, envelopes and metadata are answered with a status, every one", async () => {
	const failures: unknown[] = [];
	const logger = { ...silentLog, error: (facts: object) => void failures.push(facts) };
	const daemon = await daemonForTest({ token: TOKEN, logger });
	const url = daemon.grpc!;
	const count = atEffort(3000, 300);
	const { statuses } = await fuzzCalls({ url, token: TOKEN, count, seed });
	expect([...statuses.values()].reduce((sum, each) => sum + each, 0)).toBe(count);
	expect([...statuses.keys()]).not.toContain("none");
	// 2, UNKNOWN, is a library's status for an error that the daemon did not handle.
	expect([...statuses.keys()]).not.toContain("2");
	expect(failures).toEqual([]);
	expect((await createClient(Health, createGrpcTransport({ baseUrl: url })).check({})).status).toBe(1);
	await waitFor(async () => {
		const metrics = await fetch(`${daemon.url}/metrics`, { headers: BEARER });
		return (await metrics.text()).includes('nexus_streams_open{wire="grpc"} 0');
	});
});
