import { expect, it } from "vitest";
import { loadOnce } from "../../packages/daemon/src/std/load-once.ts";

it("loads once for all who ask, and again after a failure", async () => {
	const loads = [Promise.withResolvers<string>(), Promise.withResolvers<string>()] as const;
	let count = 0;
	const load = loadOnce(() => loads[count++ as 0 | 1].promise);
	const first = Promise.allSettled([load(), load()]);
	expect(count).toBe(1);
	loads[0].reject(new Error("not there"));
	expect((await first).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
	const second = Promise.all([load(), load()]);
	loads[1].resolve("loaded");
	expect(await second).toEqual(["loaded", "loaded"]);
	expect(await load()).toBe("loaded");
	expect(count).toBe(2);
});
