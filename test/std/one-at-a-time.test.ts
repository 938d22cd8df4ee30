/** Work that reads, waits and then writes what it read must not be overtaken by itself. */

import { expect, it } from "vitest";
import { oneAtATime } from "../../src/std/one-at-a-time.ts";

it("begins only after the last time is over, in the order of asking, whether that failed or not", async () => {
	const waits: PromiseWithResolvers<void>[] = [];
	let begun = 0;
	const ask = oneAtATime(async () => {
		const own = ++begun;
		const wait = Promise.withResolvers<void>();
		waits.push(wait);
		await wait.promise;
		return own;
	});
	const asked = [ask(), ask(), ask()];
	await expect.poll(() => begun).toBe(1);
	waits[0]?.reject(new Error("refused"));
	await expect(asked[0]).rejects.toThrow("refused");
	await expect.poll(() => begun).toBe(2);
	waits[1]?.resolve();
	await expect(asked[1]).resolves.toBe(2);
	await expect.poll(() => begun).toBe(3);
	waits[2]?.resolve();
	await expect(asked[2]).resolves.toBe(3);
});
