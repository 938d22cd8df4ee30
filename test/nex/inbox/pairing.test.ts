import { describe, expect, onTestFinished, test } from "vitest";
import { sqlitePairings } from "../../../src/ledger/ledger.ts";
import { createPairingDesk, PAIRING_LIMITS } from "../../../src/nex/acl/pairing.ts";
import { manualClock } from "../../../src/std/clock.ts";
import { openSqlite } from "../../../src/std/sqlite.ts";

const ann = { channel: "telegram", account: "bot", sender: "ann", senderName: "Ann", target: { to: "c1" } };

function desk(limits = PAIRING_LIMITS) {
	const file = openSqlite(":memory:", "process");
	onTestFinished(() => file.close());
	const clock = manualClock(1000);
	let seed = 0;
	// The second code is the first one again: it has to be thrown once more.
	const random = () => [0, 0.5, 0.9][Math.floor(seed++ / 12) % 3]!;
	return { clock, pairing: createPairingDesk({ pairings: sqlitePairings(file), clock, random, limits }) };
}

describe("pairing", () => {
	test("a stranger is told one code, rarely, and let in when it is approved", () => {
		const { pairing, clock } = desk();
		expect(pairing.isPaired(ann)).toBe(false);
		expect(pairing.ask(ann)).toMatchObject({ tell: "222222" });
		expect(pairing.ask(ann)).toEqual({ because: "unknown sender: waits to be paired" });
		clock.advance(PAIRING_LIMITS.pairingReplyMs);
		expect(pairing.ask(ann)).toMatchObject({ tell: "222222" });
		expect(pairing.ask(ann)).not.toHaveProperty("tell");
		expect(pairing.list()).toMatchObject([{ sender: "ann", senderName: "Ann", state: "pending", code: "222222" }]);
		expect(pairing.approve(" 222-222 ")).toMatchObject({ state: "approved", target: { to: "c1" } });
		expect(pairing.isPaired(ann)).toBe(true);
		expect(pairing.isPaired({ ...ann, account: "other" })).toBe(false);
		pairing.revoke(ann);
		expect(pairing.isPaired(ann)).toBe(false);
		expect(() => pairing.revoke(ann)).toThrow(expect.objectContaining({ code: "not_found" }));
	});

	test("codes are told apart", () => {
		const { pairing } = desk();
		const codes = ["ann", "bob"].map((sender) => pairing.ask({ ...ann, sender }).tell);
		expect(new Set(codes).size).toBe(2);
	});

	test("a code is worth nothing after its time, and the stranger gets another", () => {
		const { pairing, clock } = desk();
		const { tell } = pairing.ask(ann);
		clock.advance(PAIRING_LIMITS.pairingMs);
		expect(() => pairing.approve(tell!)).toThrow(expect.objectContaining({ code: "expired" }));
		expect(pairing.list()).toEqual([]);
		expect(pairing.ask(ann).tell).toBeDefined();
	});

	test("a code that is told again is good for its whole time again", () => {
		const { pairing, clock } = desk();
		pairing.ask(ann);
		clock.advance(PAIRING_LIMITS.pairingMs - 1);
		const { tell } = pairing.ask(ann);
		clock.advance(PAIRING_LIMITS.pairingMs - 1);
		expect(pairing.approve(tell!).state).toBe("approved");
	});

	test("those whose time is over keep nobody out", () => {
		const { pairing, clock } = desk({ ...PAIRING_LIMITS, pairingsPendingMax: 1 });
		pairing.ask(ann);
		clock.advance(PAIRING_LIMITS.pairingMs);
		expect(pairing.ask({ ...ann, sender: "bob" }).tell).toBeDefined();
	});

	test("a code that nobody was told is not found, however it is written", () => {
		const { pairing } = desk();
		expect(() => pairing.approve("zz")).toThrow(expect.objectContaining({ code: "not_found" }));
	});

	test("I11: so many wait and no more; an approved one does not count", () => {
		const { pairing } = desk({ ...PAIRING_LIMITS, pairingsPendingMax: 1 });
		const { tell } = pairing.ask(ann);
		expect(pairing.ask({ ...ann, sender: "bob" })).toEqual({ because: expect.stringContaining("too many") });
		expect(pairing.ask({ ...ann, account: "other", sender: "bob" }).tell).toBeDefined();
		pairing.approve(tell!);
		expect(pairing.ask({ ...ann, sender: "bob" }).tell).toBeDefined();
	});
});
