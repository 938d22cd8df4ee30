/** One platform call: what an answer, a failure and a silence mean for calls that must not happen twice, and for those that may. */

import { describe, expect, it } from "vitest";
import { PlatformError } from "../../../packages/adapter/src/platform/platform-error.ts";
import { createCaller } from "../../../packages/adapter/src/serve/context.ts";
import { manualClock } from "../../clock.ts";

function world() {
	const clock = manualClock();
	const said: object[] = [];
	const call = createCaller(clock, 1000, (status) => void said.push(status));
	return { clock, said, call };
}

const ONCE = ["create", "start", "append", "attach"];
const AGAIN = ["edit", "stop", "preview", "find", "typing"];

describe("a platform call", () => {
	it.each([...ONCE.map((name) => [name, "unknown_outcome"]), ...AGAIN.map((name) => [name, "unavailable"])])(
		"I7: %s that fails without a word of the platform is %s",
		async (name, fault) => {
			const { call, said } = world();
			const failing = (cause: Error) => call(name, { delivery: "d" }, () => Promise.reject(cause));
			await expect(failing(new Error("socket hang up"))).rejects.toMatchObject({ fault });
			await expect(failing(new PlatformError("unknown_outcome", "reset"))).rejects.toMatchObject({ fault });
			await expect(failing(new PlatformError("denied", "no"))).rejects.toMatchObject({ fault: "denied" });
			expect(said).toMatchObject([
				{ type: "call", call: name, ok: false, delivery: "d" },
				{ ok: false },
				{ ok: false },
			]);
		},
	);

	it("that is not answered in time is left, and its request with it", async () => {
		const { clock, call, said } = world();
		let left: AbortSignal | undefined;
		const asked = call("create", {}, (signal) => {
			left = signal;
			return new Promise(() => {});
		});
		clock.advance(999);
		expect(left?.aborted).toBe(false);
		clock.advance(1);
		await expect(asked).rejects.toMatchObject({
			fault: "unknown_outcome",
			message: expect.stringContaining("1000 ms"),
		});
		expect(left?.aborted).toBe(true);
		expect(said).toMatchObject([{ call: "create", ms: 1000, ok: false }]);
	});

	it("that is answered is reported with its duration", async () => {
		const { clock, call, said } = world();
		const asked = call("create", {}, async () => {
			clock.advance(7);
			return "m1";
		});
		expect(await asked).toBe("m1");
		clock.advance(10_000);
		expect(said).toEqual([{ type: "call", call: "create", ms: 7, ok: true }]);
	});
});
