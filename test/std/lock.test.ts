/** Work that reads, waits and then writes what it read must not be overtaken by itself. */

import { expect, it } from "vitest";
import { createLock } from "../../packages/daemon/src/std/lock.ts";

it("lets one go on at a time, in the order of asking, also behind one that gave up", async () => {
	const lock = createLock();
	const always = new AbortController().signal;
	const begun: number[] = [];
	const ask = async (own: number, signal = always) => {
		const release = await lock(signal);
		begun.push(own);
		return release;
	};
	const gaveUp = new AbortController();
	const [first, second, third, fourth] = [ask(1), ask(2), ask(3, gaveUp.signal), ask(4)];
	(await first)();
	const release = await second;
	gaveUp.abort();
	await expect(third).rejects.toThrow("No longer waited for");
	expect(begun).toEqual([1, 2]);
	release();
	await fourth;
	expect(begun).toEqual([1, 2, 4]);
});
