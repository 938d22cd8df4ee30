/** Notices: what every store keeps of an endless log that commits with what it tells of. */

import { describe, expect, it } from "vitest";
import { noticeWrites } from "../../src/ledger/ledger.ts";
import { stores } from "./rig.ts";

const { post, forget } = noticeWrites;

describe.each(stores)("notices %s", (_, open) => {
	it("counts each topic densely from 1, in the order of commits", () => {
		const { ledger, write } = open();
		expect(ledger.notices.range("audit")).toEqual({ first: 1, last: 0 });
		write(post("audit", "a", 10), post("agents", "x", 11), post("audit", "b", 12));
		write(post("audit", "c", 13));
		expect(ledger.notices.read("audit", 1, 10)).toEqual([
			{ sequence: 2, at: 12, text: "b" },
			{ sequence: 3, at: 13, text: "c" },
		]);
		expect(ledger.notices.newest("audit", 3, 1)).toEqual([{ sequence: 2, at: 12, text: "b" }]);
		expect(ledger.notices.range("agents")).toEqual({ first: 1, last: 1 });
		expect(ledger.notices.read("memory", 0, 10)).toEqual([]);
	});

	it("takes no number for what is refused", () => {
		const { ledger, write } = open();
		write(post("audit", "a", 1));
		expect(() => write(post("audit", "never", 2), { thing: "nothing", op: "at all", args: [] })).toThrow();
		write(post("audit", "b", 3));
		expect(ledger.notices.read("audit", 0, 10)).toMatchObject([{ sequence: 1 }, { sequence: 2, text: "b" }]);
	});

	it("Z1: forgets the oldest of one topic, in steps, without a hole, and goes on counting", () => {
		const { ledger, write } = open();
		write(...[1, 2, 9, 3, 4].map((at) => post("app:a", `at ${at}`, at)), post("audit", "kept", 1));
		expect(ledger.notices.isOlder("app:a", 5)).toBe(true);
		write(forget("app:a", 5, 1));
		expect(ledger.notices.range("app:a")).toEqual({ first: 2, last: 5 });
		write(forget("app:a", 5, 10));
		// The one at 9 stays, and with it what came later by an earlier clock.
		expect(ledger.notices.range("app:a")).toEqual({ first: 3, last: 5 });
		write(forget("app:a", 5, 10), forget("app:a", 100, 10));
		expect(ledger.notices.range("app:a")).toEqual({ first: 6, last: 5 });
		expect(ledger.notices.isOlder("app:a", 100)).toBe(false);
		write(post("app:a", "next", 100));
		expect(ledger.notices.read("app:a", 0, 10)).toEqual([{ sequence: 6, at: 100, text: "next" }]);
		expect(ledger.notices.range("audit")).toEqual({ first: 1, last: 1 });
	});

	it("I11: reads a bounded stretch, and lists topics by how they begin", () => {
		const { ledger, write } = open();
		for (let n = 0; n < 20; n++) write(post("app:big", "x".repeat(65_000), n));
		write(post("app:other", "y", 1), post("audit", "z", 1));
		const read = ledger.notices.read("app:big", 0, 100) as unknown[];
		expect(read.length).toBeGreaterThan(1);
		expect(read.length).toBeLessThan(12);
		expect(ledger.notices.topics("app:")).toEqual(["app:big", "app:other"]);
	});
});
