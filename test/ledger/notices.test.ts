/** Notices: what every store keeps of an endless log that commits with what it tells of. */

import { describe, expect, it } from "vitest";
import { type Notice, type NoticePage, noticeWrites } from "../../packages/daemon/src/services/audit/rows.ts";
import { stores } from "./rig.ts";

const { post, postAll, forget } = noticeWrites;

describe.each(stores)("notices %s", (_, open) => {
	it("counts each topic densely from 1, in the order of commits", () => {
		const { ledger, write } = open();
		expect(ledger.notices.range("audit")).toEqual({ first: 1, last: 0 });
		write(post("audit", "a", 10), post("agents", "x", 11), post("audit", "b", 12));
		write(post("audit", "c", 13));
		expect(ledger.notices.read("audit", 1, 10)).toEqual({ first: 2, count: 2, text: "b\nc" });
		expect(ledger.notices.newest("audit", 3, 1)).toEqual([{ sequence: 2, at: 12, text: "b" }]);
		expect(ledger.notices.range("agents")).toEqual({ first: 1, last: 1 });
		expect(ledger.notices.read("memory", 0, 10)).toBeUndefined();
	});

	it("takes no number for what is refused", () => {
		const { ledger, write } = open();
		write(post("audit", "a", 1));
		expect(() => write(post("audit", "never", 2), { table: "nothing", op: "at all", args: [] })).toThrow();
		write(post("audit", "b", 3));
		expect(ledger.notices.read("audit", 0, 10)).toEqual({ first: 1, count: 2, text: "a\nb" });
	});

	it("keeps records that are posted together as one row, and finds each of them", () => {
		const { ledger, write } = open();
		write(post("audit", "a", 1), postAll("audit", ["b", "c", "d"], 2), post("audit", "e", 3));
		expect(ledger.notices.range("audit")).toEqual({ first: 1, last: 5 });
		expect(ledger.notices.read("audit", 2, 10)).toEqual({ first: 2, count: 4, text: "b\nc\nd\ne" });
		const newest = (before: number, limit: number) =>
			(ledger.notices.newest("audit", before, limit) as Notice[]).map(({ sequence, text }) => `${sequence}${text}`);
		expect(newest(Number.MAX_SAFE_INTEGER, 3)).toEqual(["5e", "4d", "3c"]);
		expect(newest(4, 10)).toEqual(["3c", "2b", "1a"]);
		expect(newest(3, 1)).toEqual(["2b"]);
		expect(newest(2, 10)).toEqual(["1a"]);
		write(forget("audit", 3, 2));
		expect(ledger.notices.range("audit")).toEqual({ first: 5, last: 5 });
	});

	it("Z1: forgets the oldest of one topic, in steps, without a hole, and continues to count", () => {
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
		expect(ledger.notices.read("app:a", 0, 10)).toEqual({ first: 6, count: 1, text: "next" });
		expect(ledger.notices.range("audit")).toEqual({ first: 1, last: 1 });
	});

	it("I11: reads a bounded stretch, and lists topics by how they begin", () => {
		const { ledger, write } = open();
		for (let n = 0; n < 20; n++) write(post("app:big", "x".repeat(65_000), n));
		write(post("app:other", "y", 1), post("audit", "z", 1));
		const page = ledger.notices.read("app:big", 0, 100) as NoticePage;
		expect(page.count).toBeGreaterThan(1);
		expect(page.count).toBeLessThan(8);
		expect(ledger.notices.read("app:big", 0, 2)).toMatchObject({ first: 1, count: 2 });
		expect(ledger.notices.topics("app:")).toEqual(["app:big", "app:other"]);
	});
});
