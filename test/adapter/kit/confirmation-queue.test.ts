import { expect, test } from "vitest";
import { createConfirmationQueue } from "../../../packages/adapter/src/serve/confirmation-queue.ts";

const ticks = () => new Promise((resolve) => setImmediate(resolve));

test("what becomes safe out of order is confirmed in order, and what is nothing for us in its place", async () => {
	const heard = createConfirmationQueue();
	const confirmed: number[] = [];
	const doors = [1, 2].map(() => Promise.withResolvers<void>());
	for (const [n, door] of doors.entries()) await heard.add(door.promise, () => confirmed.push(n));
	await heard.add(undefined, () => confirmed.push(2));
	doors[1]!.resolve();
	await ticks();
	expect(confirmed).toEqual([]);
	doors[0]!.resolve();
	await heard.confirmed();
	expect(confirmed).toEqual([0, 1, 2]);
});

test("I11: the next one waits for room, and nothing is confirmed behind one that never becomes safe", async () => {
	const heard = createConfirmationQueue(2);
	const confirmed: number[] = [];
	const doors = [1, 2, 3].map(() => Promise.withResolvers<void>());
	let room = 0;
	const adding = (async () => {
		for (const [n, door] of doors.entries()) {
			await heard.add(door.promise, () => confirmed.push(n));
			room++;
		}
	})();
	await ticks();
	expect(room).toBe(1);
	doors[0]!.resolve();
	await ticks();
	expect([room, confirmed]).toEqual([2, [0]]);
	doors[1]!.reject(new Error("stopped"));
	doors[2]!.resolve();
	await expect(adding).rejects.toThrow("stopped");
	await expect(heard.confirmed()).rejects.toThrow("stopped");
	expect(confirmed).toEqual([0]);
});
