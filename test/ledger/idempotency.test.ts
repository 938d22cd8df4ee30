import { describe, expect, test } from "vitest";
import { IDEMPOTENCY_KEPT_MS, idempotencyWrites } from "../../packages/daemon/src/services/kit/rows.ts";
import { stores } from "./rig.ts";

const { claim, forget } = idempotencyWrites;
const first = { appId: "shop", key: "k", digest: "d1", result: "run_1", at: 1000 };

describe.each(stores)("Z15: idempotency keys %s", (_name, open) => {
	test("a key belongs to its application, and the first claim stays", async () => {
		const { ledger, write } = await open();
		await write(claim(first), claim({ ...first, appId: "desk", result: "run_2" }));
		expect(await ledger.idempotency.find("shop", "k", 1001)).toEqual(first);
		expect(await ledger.idempotency.find("desk", "k", 1001)).toMatchObject({ result: "run_2" });
		expect(await ledger.idempotency.find("shop", "other", 1001)).toBeUndefined();
		await expect(write(claim({ ...first, result: "run_3", at: 2000 }))).rejects.toThrow(
			expect.objectContaining({ refusal: "duplicate" }),
		);
		expect(await ledger.idempotency.find("shop", "k", 2000)).toEqual(first);
	});

	test("after a day the key is a new one", async () => {
		const { ledger, write } = await open();
		await write(claim(first));
		const later = first.at + IDEMPOTENCY_KEPT_MS;
		expect(await ledger.idempotency.find("shop", "k", later - 1)).toEqual(first);
		expect(await ledger.idempotency.find("shop", "k", later)).toBeUndefined();
		const second = { ...first, result: "run_2", at: later };
		await write(claim(second));
		expect(await ledger.idempotency.find("shop", "k", later)).toEqual(second);
	});

	test("I11: the oldest are forgotten first, so many at a time", async () => {
		const { ledger, write } = await open();
		for (const [n, key] of ["c", "a", "b"].entries()) await write(claim({ ...first, key, at: 1000 + n }));
		expect(await ledger.idempotency.isOlder(1000)).toBe(false);
		expect(await ledger.idempotency.isOlder(1002)).toBe(true);
		await write(forget(1002, 1));
		expect(await ledger.idempotency.find("shop", "c", 1003)).toBeUndefined();
		expect(await ledger.idempotency.find("shop", "a", 1003)).toBeDefined();
		await write(forget(1002, 9));
		expect(await ledger.idempotency.find("shop", "a", 1003)).toBeUndefined();
		expect(await ledger.idempotency.find("shop", "b", 1003)).toBeDefined();
	});
});
