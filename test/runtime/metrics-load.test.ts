/** The library of `/metrics` is loaded by the first scrape. */

import { expect, it, vi } from "vitest";
import { call, daemonForTest } from "./daemon.ts";

const failures = vi.hoisted(() => ({ left: 1 }));
vi.mock("../../packages/daemon/src/runtime/observe/metrics.ts", async (original) => {
	const actual = await original<typeof import("../../packages/daemon/src/runtime/observe/metrics.ts")>();
	return {
		...actual,
		createMetrics: (...args: Parameters<typeof actual.createMetrics>) => {
			if (failures.left-- > 0) throw new Error("it cannot be loaded");
			return actual.createMetrics(...args);
		},
	};
});

it("P6.13: a load that failed once does not fail the scrapes after it", async () => {
	const daemon = await daemonForTest();
	const scrape = () => call(daemon, "/metrics");
	expect((await scrape()).status).toBe(500);
	const second = await scrape();
	expect([second.status, await second.text()]).toEqual([200, expect.stringContaining("nexus_")]);
});
