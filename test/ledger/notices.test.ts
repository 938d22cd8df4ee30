/** Notices: what every store keeps of an endless log that commits with what it tells of. */

import { describe, expect, it } from "vitest";
import { noticeWrites } from "../../packages/daemon/src/services/audit/rows.ts";
import { stores } from "./rig.ts";

const { post, postAll, forget } = noticeWrites;

describe.each(stores)("notices %s", (_, open) => {
	it("counts each topic densely from 1, in the order of commits", async () => {
		const { ledger, write } = await open();
		expect(await ledger.notices.range("audit")).toEqual({ first: 1, last: 0 });
		await write(post("audit", "a", 10), post("agents", "x", 11), post("audit", "b", 12));
		await write(post("audit", "c", 13));
		expect(await ledger.notices.read("audit", 1, 10)).toEqual({ first: 2, count: 2, text: "b\nc" });
		expect(await ledger.notices.newest("audit", 3, 1)).toEqual([{ sequence: 2, at: 12, text: "b" }]);
		expect(await ledger.notices.range("agents")).toEqual({ first: 1, last: 1 });
		expect(await ledger.notices.read("memory", 0, 10)).toBeUndefined();
	});

	it("takes no number for what is refused", async () => {
		const { ledger, write } = await open();
		await write(post("audit", "a", 1));
		await expect(write(post("audit", "never", 2), { table: "nothing", op: "at all", args: [] })).rejects.toThrow();
		await write(post("audit", "b", 3));
		expect(await ledger.notices.read("audit", 0, 10)).toEqual({ first: 1, count: 2, text: "a\nb" });
	});

	it("keeps records that are posted together as one row, and finds each of them", async () => {
		const { ledger, write } = await open();
		await write(post("audit", "a", 1), postAll("audit", ["b", "c", "d"], 2), post("audit", "e", 3));
		expect(await ledger.notices.range("audit")).toEqual({ first: 1, last: 5 });
		expect(await ledger.notices.read("audit", 2, 10)).toEqual({ first: 2, count: 4, text: "b\nc\nd\ne" });
		const newest = async (before: number, limit: number) =>
			(await ledger.notices.newest("audit", before, limit)).map(({ sequence, text }) => `${sequence}${text}`);
		expect(await newest(Number.MAX_SAFE_INTEGER, 3)).toEqual(["5e", "4d", "3c"]);
		expect(await newest(4, 10)).toEqual(["3c", "2b", "1a"]);
		expect(await newest(3, 1)).toEqual(["2b"]);
		expect(await newest(2, 10)).toEqual(["1a"]);
		await write(forget("audit", 3, 2));
		expect(await ledger.notices.range("audit")).toEqual({ first: 5, last: 5 });
	});

	it("Z1: forgets the oldest of one topic, in steps, without a hole, and continues to count", async () => {
		const { ledger, write } = await open();
		await write(...[1, 2, 9, 3, 4].map((at) => post("app:a", `at ${at}`, at)), post("audit", "kept", 1));
		expect(await ledger.notices.isOlder("app:a", 5)).toBe(true);
		await write(forget("app:a", 5, 1));
		expect(await ledger.notices.range("app:a")).toEqual({ first: 2, last: 5 });
		await write(forget("app:a", 5, 10));
		// The one at 9 stays, and with it what came later by an earlier clock.
		expect(await ledger.notices.range("app:a")).toEqual({ first: 3, last: 5 });
		await write(forget("app:a", 5, 10), forget("app:a", 100, 10));
		expect(await ledger.notices.range("app:a")).toEqual({ first: 6, last: 5 });
		expect(await ledger.notices.isOlder("app:a", 100)).toBe(false);
		await write(post("app:a", "next", 100));
		expect(await ledger.notices.read("app:a", 0, 10)).toEqual({ first: 6, count: 1, text: "next" });
		expect(await ledger.notices.range("audit")).toEqual({ first: 1, last: 1 });
	});

	it("I11: reads a bounded stretch, and lists topics by how they begin", async () => {
		const { ledger, write } = await open();
		for (let n = 0; n < 20; n++) await write(post("app:big", "x".repeat(65_000), n));
		await write(post("app:other", "y", 1), post("audit", "z", 1));
		const page = (await ledger.notices.read("app:big", 0, 100))!;
		expect(page.count).toBeGreaterThan(1);
		expect(page.count).toBeLessThan(8);
		expect(await ledger.notices.read("app:big", 0, 2)).toMatchObject({ first: 1, count: 2 });
		expect(await ledger.notices.topics("app:")).toEqual(["app:big", "app:other"]);
	});
});
