/** The stages of a run, with everything around them played by the test. */

import { expect, it, vi } from "vitest";
import type { RunStart } from "../../../src/broker/broker.ts";
import { Runs } from "../../../src/nex/inbound/runs.ts";
import { systemClock } from "../../../src/std/clock.ts";
import { silentLog } from "../../../src/std/log.ts";

it("I7: two addresses of one chat are one delivery, which is launched once", () => {
	const outbound = { open: () => ({ id: "dlv_1" }), launch: vi.fn() };
	const hooks = () => ({ has: () => false });
	const deps = { outbound, hooks, clock: systemClock, log: silentLog, ledger: {} };
	const runs = new Runs(deps as unknown as ConstructorParameters<typeof Runs>[0]);
	const event = (to: string) => ({
		...{ eventId: to, session: "s", text: "hi", attachments: [], receivedAt: 0 },
		origin: { channel: "telegram", account: "bot", sender: "ann" },
		facts: {
			...{ sender: { id: "ann", owner: false }, chat: { id: "c1", type: "direct" }, timings: [], agent: "main" },
			...{ hooks: { context: {}, attached: [], calls: [] }, target: { to }, queuedAt: 0 },
		},
	});
	const start = { runId: "run_1", events: [event("@ann"), event("1001")] } as unknown as RunStart;
	void runs.prepare(start);
	runs.starting(start);
	runs.started(start);
	expect(outbound.launch.mock.calls).toEqual([["dlv_1"]]);
});
