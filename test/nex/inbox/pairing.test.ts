import { describe, expect, test } from "vitest";
import { createPairingService, PAIRING_LIMITS } from "../../../packages/daemon/src/nex/access/pairing.ts";
import { manualClock } from "../../clock.ts";
import { storeForTest } from "../../store.ts";

const ann = { channel: "telegram", account: "bot", sender: "ann", senderName: "Ann", target: { to: "c1" } };

function desk(limits = PAIRING_LIMITS) {
	const { bus, ledger } = storeForTest();
	const clock = manualClock(1000);
	let seed = 0;
	// The second code is the first one again: it has to be thrown once more.
	const random = () => [0, 0.5, 0.9][Math.floor(seed++ / 12) % 3]!;
	return { clock, pairing: createPairingService({ bus, pairings: ledger.pairings, clock, random, limits }) };
}

describe("pairing", () => {
	test("a stranger gets one code, rarely, and is admitted when it is approved", async () => {
		const { pairing, clock } = desk();
		expect(await pairing.isPaired(ann)).toBe(false);
		expect(await pairing.ask(ann)).toMatchObject({ code: "222222" });
		expect(await pairing.ask(ann)).toEqual({ because: "unknown sender: waits to be paired" });
		clock.advance(PAIRING_LIMITS.pairingReplyMs);
		expect(await pairing.ask(ann)).toMatchObject({ code: "222222" });
		expect(await pairing.ask(ann)).not.toHaveProperty("code");
		expect(await pairing.list()).toMatchObject([
			{ sender: "ann", senderName: "Ann", state: "pending", code: "222222" },
		]);
		expect(await pairing.approve(" 222-222 ")).toMatchObject({ state: "approved", target: { to: "c1" } });
		expect(await pairing.isPaired(ann)).toBe(true);
		expect(await pairing.isPaired({ ...ann, account: "other" })).toBe(false);
		await pairing.revoke(ann);
		expect(await pairing.isPaired(ann)).toBe(false);
		await expect(pairing.revoke(ann)).rejects.toMatchObject({ code: "not_found" });
	});

	test("codes are distinct", async () => {
		const { pairing } = desk();
		const told = await Promise.all(["ann", "bob"].map((sender) => pairing.ask({ ...ann, sender })));
		const codes = told.map(({ code }) => code);
		expect(new Set(codes).size).toBe(2);
	});

	test("a code is worth nothing after its time, and the stranger gets another", async () => {
		const { pairing, clock } = desk();
		const { code } = await pairing.ask(ann);
		clock.advance(PAIRING_LIMITS.pairingMs);
		await expect(pairing.approve(code!)).rejects.toMatchObject({ code: "expired" });
		expect(await pairing.list()).toEqual([]);
		expect((await pairing.ask(ann)).code).toBeDefined();
	});

	test("a code that is sent again gets its whole lifetime again", async () => {
		const { pairing, clock } = desk();
		await pairing.ask(ann);
		clock.advance(PAIRING_LIMITS.pairingMs - 1);
		const { code } = await pairing.ask(ann);
		clock.advance(PAIRING_LIMITS.pairingMs - 1);
		expect((await pairing.approve(code!)).state).toBe("approved");
	});

	test("expired codes do not count at the limit", async () => {
		const { pairing, clock } = desk({ ...PAIRING_LIMITS, pairingsPendingMax: 1 });
		await pairing.ask(ann);
		clock.advance(PAIRING_LIMITS.pairingMs);
		expect((await pairing.ask({ ...ann, sender: "bob" })).code).toBeDefined();
	});

	test("an unknown code is not found", async () => {
		const { pairing } = desk();
		await expect(pairing.approve("zz")).rejects.toMatchObject({ code: "not_found" });
	});

	test("I11: so many wait and no more; an approved one does not count", async () => {
		const { pairing } = desk({ ...PAIRING_LIMITS, pairingsPendingMax: 1 });
		const { code } = await pairing.ask(ann);
		expect(await pairing.ask({ ...ann, sender: "bob" })).toEqual({ because: expect.stringContaining("too many") });
		expect((await pairing.ask({ ...ann, account: "other", sender: "bob" })).code).toBeDefined();
		await pairing.approve(code!);
		expect((await pairing.ask({ ...ann, sender: "bob" })).code).toBeDefined();
	});
});
