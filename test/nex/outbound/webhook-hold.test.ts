/** A platform that asks only once may ask before its adapter listens: the request waits, within a time and a number. */

import { describe, expect, it } from "vitest";
import { FAST, onlyMessages, type Rig, rigForTest } from "./rig.ts";

let rig: Rig;

const request = { method: "POST", query: "", headers: {}, body: btoa("hello") };
const UNAVAILABLE = { code: "unavailable", message: expect.stringMatching(/is not connected/) };

describe("a webhook request before the account is listened to", () => {
	it("I10: waits, and is answered by the adapter once it listens", async () => {
		rig = rigForTest((channel) => ({ full: channel("full") }));
		const early = [rig.outbound.webhook("full", "main", request), rig.outbound.webhook("full", "main", request)];
		rig.outbound.monitor("full", "main", onlyMessages());
		for (const answer of await Promise.all(early)) expect(answer).toMatchObject({ status: 202, body: "POST hello" });
	});

	it("I11: waits for a limited time", async () => {
		rig = rigForTest((channel) => ({ full: channel("full") }), { limits: { ...FAST, webhookMs: 30 } });
		await expect(rig.outbound.webhook("full", "main", request)).rejects.toMatchObject(UNAVAILABLE);
	});

	it("I11: is refused at once when too many wait, and all are when the daemon stops", async () => {
		rig = rigForTest((channel) => ({ full: channel("full") }), { limits: { ...FAST, webhooksHeldMax: 1 } });
		const held = rig.outbound.webhook("full", "main", request);
		await expect(rig.outbound.webhook("full", "main", request)).rejects.toMatchObject(UNAVAILABLE);
		const [outcome] = await Promise.all([Promise.allSettled([held]), rig.outbound.stop(0)]);
		expect(outcome[0]).toMatchObject({ status: "rejected", reason: UNAVAILABLE });
	});

	it("is refused at once by an adapter that cannot listen", async () => {
		rig = rigForTest((channel) => ({ streamonly: channel("streamonly") }));
		await rig.outbound.info("streamonly");
		await expect(rig.outbound.webhook("streamonly", "main", request)).rejects.toMatchObject(UNAVAILABLE);
	});
});
