import { expect, test } from "vitest";
import { once } from "../../packages/daemon/src/services/kit/once.ts";
import type { Write } from "../../packages/daemon/src/std/write.ts";
import { storeForTest } from "../store.ts";
import { rejectsWith } from "./parts.ts";

function rig() {
	const { bus, rows } = storeForTest();
	const begun: string[] = [];
	const request = (result: string, body: unknown = { a: 1, b: [2] }, key = "k") =>
		once(
			{ rows, clock: { now: () => 1000 } },
			{ appId: "shop", key, body, result },
			async (claim: readonly Write[]) => {
				if (claim.length > 0) await bus.write(claim);
				begun.push(result);
			},
		);
	return { request, begun };
}

test("R4-58, Z15: the same key and body give what the first request made; nothing begins again", async () => {
	const { request, begun } = rig();
	expect(await request("run_1", { a: 1, b: [2] })).toEqual({ id: "run_1", isFirst: true });
	expect(await request("run_2", { b: [2], a: 1 })).toEqual({ id: "run_1", isFirst: false });
	expect(begun).toEqual(["run_1"]);
});

test("Z15: another body under the same key is invalid", async () => {
	const { request, begun } = rig();
	await request("run_1");
	const conflict = { code: "invalid", reason: "IDEMPOTENCY_CONFLICT" };
	await expect(request("run_2", { a: 2 })).rejects.toMatchObject(conflict);
	expect(begun).toEqual(["run_1"]);
});

test("Z15: of two at once one begins, and both get its id", async () => {
	const { request, begun } = rig();
	const both = await Promise.all([request("run_1"), request("run_2")]);
	expect(begun).toHaveLength(1);
	expect(both.map(({ id }) => id)).toEqual([begun[0], begun[0]]);
	expect(both.filter(({ isFirst }) => isFirst)).toHaveLength(1);
});

test("without a key every request begins", async () => {
	const { request, begun } = rig();
	await request("run_1", {}, "");
	await request("run_2", {}, "");
	expect(begun).toEqual(["run_1", "run_2"]);
	await rejectsWith(request("run_3", {}, "x".repeat(257)), "invalid");
});
