/** R4: garbage is answered with a status, and leaves nothing behind. The long round is a proof's. */

import { expect, it, onTestFinished } from "vitest";
import { Health } from "../../../src/gen/grpc/health/v1/health_pb.ts";
import { silentLog } from "../../../src/std/log.ts";
import { atEffort } from "../../effort.ts";
import { seed } from "../../seed.ts";
import { TOKEN, waitFor } from "../rig.ts";
import { fuzzCalls } from "./fuzz.ts";
import { startGrpcKit } from "./kit.ts";

it("garbage messages, envelopes and metadata are answered with a status, every one", async () => {
	const failures: unknown[] = [];
	const log = { ...silentLog, error: (facts: object) => void failures.push(facts) };
	const kit = await startGrpcKit({ deps: { log } });
	onTestFinished(() => kit.close());
	const count = atEffort(3000, 300);
	const { statuses } = await fuzzCalls({ url: kit.grpcUrl, token: TOKEN, count, seed });
	expect([...statuses.values()].reduce((sum, each) => sum + each, 0)).toBe(count);
	expect([...statuses.keys()].filter((status) => status === "none")).toEqual([]);
	// 2, UNKNOWN, is what a library says when nobody thought of it.
	expect([...statuses.keys()]).not.toContain("2");
	expect(failures).toEqual([]);
	expect((await kit.client(Health).check({})).status).toBe(1);
	await waitFor(() => kit.rig.edge.stats().grpcStreams === 0 && kit.rig.bus.stats.cursors === 0);
});
