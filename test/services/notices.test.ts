/** Notices as a log: a cursor that resumes, follows, and says where it cannot begin. */

import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Cursor } from "../../packages/daemon/src/bus/bus.ts";
import { noticeLogs } from "../../packages/daemon/src/services/audit/notices.ts";
import { noticeCall, noticeWrites } from "../../packages/daemon/src/services/audit/rows.ts";
import { atEffort } from "../effort.ts";
import { openPlainStore } from "../store.ts";
import { until } from "../until.ts";
import { rejectsWith } from "./parts.ts";

function rig() {
	const { bus, rows, close } = openPlainStore(":memory:");
	/** One row each, or one for all. */
	const post = (...texts: string[]) => bus.write(texts.map((text) => noticeWrites.post("audit", text, 1)));
	const postAll = (...texts: string[]) => bus.write([noticeWrites.postAll("audit", texts, 1)]);
	return { bus, rows, logs: noticeLogs({ bus, rows }), post, postAll, close };
}

function opened() {
	const opened = rig();
	onTestFinished(opened.close);
	return opened;
}

/** Takes what comes, as the pump does: woken, one read at a time. */
function reader(cursor: Cursor) {
	const got: string[] = [];
	let busy = false;
	let again = false;
	const run = async () => {
		again = true;
		if (busy) return;
		busy = true;
		while (again) {
			again = false;
			for (let batch = await cursor.next(); batch; batch = await cursor.next()) {
				const { first, records } = batch;
				got.push(...records.map((text, n) => `${first + n}:${text}`));
			}
		}
		busy = false;
	};
	cursor.onWake(() => void run());
	void run();
	return { got, close: () => cursor.close() };
}

describe("a cursor over notices", () => {
	it("Z3: begins now without a place, at the earliest kept with 0, and strictly after any other", async () => {
		const { logs, post, bus } = opened();
		await post("a", "b", "c");
		const now = reader(await logs.cursor("audit", undefined));
		const all = reader(await logs.cursor("audit", 0));
		const later = reader(await logs.cursor("audit", 2));
		await post("d");
		await until("all of it", () => now.got.length === 1 && all.got.length === 4 && later.got.length === 2);
		expect(now.got).toEqual(["4:d"]);
		expect(all.got).toEqual(["1:a", "2:b", "3:c", "4:d"]);
		expect(later.got).toEqual(["3:c", "4:d"]);
		await bus.write([noticeWrites.forget("audit", 2, 2)]);
		const kept = reader(await logs.cursor("audit", 0));
		await until("what is kept", () => kept.got.length === 2);
		expect(kept.got).toEqual(["3:c", "4:d"]);
	});

	it("ST22: readers that are woken together ask a store that answers later once, and none misses what came since", async () => {
		const { bus, rows, post } = opened();
		let reads = 0;
		const read: typeof rows.notices.read = async (...args) => {
			reads++;
			return rows.notices.read(...args);
		};
		const logs = noticeLogs({ bus, rows: { notices: { ...rows.notices, read, range: rows.notices.range } } });
		const readers = await Promise.all(Array.from({ length: 50 }, async () => reader(await logs.cursor("audit", 0))));
		await until("the first look", () => reads > 0);
		await bus.call(noticeCall("audit"));
		await new Promise((resolve) => setImmediate(resolve));
		expect(reads).toBeLessThan(4);
		for (const text of ["a", "b", "c"]) await post(text);
		await until("all of it", () => readers.every(({ got }) => got.length === 3));
	});

	it("Z3: what retention removed is expired, what is not there yet is invalid, and none of it ends", async () => {
		const { logs, post, bus } = opened();
		await post("a", "b", "c");
		const slow = await logs.cursor("audit", 1);
		const atEnd = await logs.cursor("audit", 3);
		await bus.write([noticeWrites.forget("audit", 2, 2)]);
		await rejectsWith(logs.cursor("audit", 1), "expired");
		await rejectsWith(logs.cursor("audit", 4), "invalid");
		await rejectsWith(logs.cursor("audit", -1), "invalid");
		await rejectsWith(slow.check(), "expired");
		await rejectsWith(slow.next(), "expired");
		await atEnd.check();
		expect([await atEnd.next(), atEnd.ended]).toEqual([undefined, false]);
	});

	it("is silent once it is closed", async () => {
		const { logs, post } = opened();
		const cursor = await logs.cursor("audit", 0);
		let calls = 0;
		cursor.onWake(() => void calls++);
		await post("a");
		expect(calls).toBe(1);
		cursor.close();
		await post("b");
		expect(calls).toBe(1);
	});

	it("I4: any interleaving of posts and readers gives each reader every record once, in order", async () => {
		const step = fc.oneof(
			{
				weight: 3,
				arbitrary: fc.record({
					kind: fc.constant("post" as const),
					count: fc.integer({ min: 1, max: 5 }),
					whole: fc.boolean(),
				}),
			},
			fc.record({ kind: fc.constant("open" as const), after: fc.option(fc.nat(40), { nil: undefined }) }),
			fc.record({ kind: fc.constant("close" as const), which: fc.nat(10) }),
			fc.record({ kind: fc.constant("rest" as const) }),
		);
		await fc.assert(
			fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
				const { logs, post, postAll, close } = rig();
				const posting: Promise<void>[] = [];
				const readers: { from: number; to?: number; read: ReturnType<typeof reader> }[] = [];
				let posted = 0;
				for (const it of steps) {
					if (it.kind === "post")
						posting.push((it.whole ? postAll : post)(...Array.from({ length: it.count }, () => `n${++posted}`)));
					else if (it.kind === "open") {
						if (it.after === undefined) await Promise.all(posting);
						const from = Math.min(it.after ?? posted, posted);
						if (from > 0) await Promise.all(posting);
						readers.push({ from, read: reader(await logs.cursor("audit", it.after === undefined ? undefined : from)) });
					} else if (it.kind === "close") {
						const open = readers[it.which];
						open?.read.close();
						if (open) open.to ??= open.read.got.length;
					} else await new Promise<void>((resolve) => setImmediate(resolve));
				}
				await Promise.all(posting);
				const all = Array.from({ length: posted }, (_, n) => `${n + 1}:n${n + 1}`);
				for (const { from, to, read } of readers) {
					if (to === undefined) await until("every record", () => read.got.length >= posted - from);
					expect(read.got).toEqual(all.slice(from, from + read.got.length));
					read.close();
				}
				await close();
			}),
			{ numRuns: atEffort(40) },
		);
	});
});
