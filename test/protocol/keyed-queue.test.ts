/** Work of one key runs in the order of the calls, one piece at a time. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createKeyedQueue } from "../../packages/protocol/src/keyed-queue.ts";

const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

function world() {
	const queue = createKeyedQueue();
	const begun: string[] = [];
	const ends = new Map<string, (cause?: Error) => void>();
	const run = (name: string, key = "a", signal?: AbortSignal) => {
		const work = () => {
			begun.push(name);
			return new Promise<string>((resolve, reject) => {
				ends.set(name, (cause) => (cause ? reject(cause) : resolve(name)));
			});
		};
		return queue.run(key, work, signal);
	};
	return { queue, run, begun, ends };
}

describe("a keyed queue", () => {
	it("runs one piece of work per key at a time, also after a failure, and other keys do not wait", async () => {
		const { queue, run, begun, ends } = world();
		const all = [run("one"), run("two"), run("three")];
		void run("other", "b");
		await tick();
		expect(begun).toEqual(["one", "other"]);
		expect([queue.size("a"), queue.size("b"), queue.size("c")]).toEqual([3, 1, 0]);
		const failed = expect(all[0]).rejects.toThrow("odd");
		ends.get("one")!(new Error("odd"));
		await failed;
		await tick();
		expect(begun).toEqual(["one", "other", "two"]);
		ends.get("two")!();
		expect(await all[1]).toBe("two");
		await tick();
		expect([begun.at(-1), queue.size("a")]).toEqual(["three", 1]);
	});

	it("rejects at once when the signal aborts before the turn; the next still waits for those before", async () => {
		const { run, begun, ends } = world();
		const stop = new AbortController();
		void run("one");
		const gone = expect(run("two", "a", stop.signal)).rejects.toThrow("enough");
		void run("three");
		stop.abort(new Error("enough"));
		await gone;
		await expect(run("four", "a", stop.signal)).rejects.toThrow("enough");
		expect(begun).toEqual(["one"]);
		ends.get("one")!();
		await tick();
		expect(begun).toEqual(["one", "three"]);
	});

	it("work that has begun gives its result in its turn, and a turn can be held until it is released", async () => {
		const { queue, run, ends } = world();
		const stop = new AbortController();
		const first = run("one");
		const failed = expect(queue.run("a", Promise.reject(new Error("odd")))).rejects.toThrow("odd");
		const held = queue.hold("a");
		const gone = expect(queue.hold("a", stop.signal)).rejects.toThrow("enough");
		const last = queue.run("a", Promise.resolve("last"));
		stop.abort(new Error("enough"));
		await gone;
		await tick();
		ends.get("one")!();
		expect(await first).toBe("one");
		await failed;
		const release = await held;
		expect(queue.size("a")).toBe(3);
		release();
		expect(await last).toBe("last");
	});

	it("an abort after the turn does not end the work", async () => {
		const { run, ends } = world();
		const stop = new AbortController();
		const running = run("one", "a", stop.signal);
		await tick();
		stop.abort();
		ends.get("one")!();
		expect(await running).toBe("one");
	});

	it("is idle when nothing is queued, also of work that was added meanwhile", async () => {
		const { queue, run, ends } = world();
		let isIdle = false;
		void run("one");
		void queue.idle().then(() => {
			isIdle = true;
		});
		await tick();
		void run("two", "b");
		ends.get("one")!();
		await tick();
		expect(isIdle).toBe(false);
		ends.get("two")!();
		await tick();
		expect(isIdle).toBe(true);
	});

	it("keeps the order of every key, whatever fails or takes longer", async () => {
		const works = fc.array(fc.record({ key: fc.constantFrom("a", "b", "c"), ticks: fc.nat(3), fails: fc.boolean() }));
		await fc.assert(
			fc.asyncProperty(works, async (all) => {
				const queue = createKeyedQueue();
				const active = new Map<string, number>();
				const done: { key: string; n: number }[] = [];
				const work = (n: number) => async () => {
					const { key, ticks, fails } = all[n]!;
					active.set(key, (active.get(key) ?? 0) + 1);
					expect(active.get(key)).toBe(1);
					for (let left = ticks; left > 0; left--) await Promise.resolve();
					active.set(key, 0);
					done.push({ key, n });
					if (fails) throw new Error(String(n));
				};
				const results = await Promise.allSettled(all.map(({ key }, n) => queue.run(key, work(n))));
				expect(results.map(({ status }) => status === "rejected")).toEqual(all.map(({ fails }) => fails));
				for (const key of ["a", "b", "c"]) {
					const order = done.filter((one) => one.key === key).map(({ n }) => n);
					expect(order).toEqual(order.toSorted((a, b) => a - b));
				}
				await queue.idle();
				expect(["a", "b", "c"].map((key) => queue.size(key))).toEqual([0, 0, 0]);
			}),
		);
	});
});
