/** Verbs that answer once: whatever fails around them, they are watched and end. */

import { expect, it } from "vitest";
import { askHealth } from "../../../packages/daemon/src/nex/accounts/one-shot.ts";
import { ONE_SHOT_LIMITS } from "../../../packages/daemon/src/nex/limits.ts";
import { systemClock } from "../../../packages/protocol/src/clock.ts";

const born = () => {
	throw new Error("ENOSPC: no space left on device");
};
const ask = (code: string, answerMs: number) =>
	askHealth(
		[process.execPath, "-e", code, "--"],
		"main",
		{},
		{
			limits: { ...ONE_SHOT_LIMITS, answerMs },
			clock: systemClock,
			signal: new AbortController().signal,
			onSpawn: born,
		},
	);

it("a verb whose process cannot be noted is answered all the same", async () => {
	expect(await ask(`console.log('{"ok":true,"detail":"fine"}')`, 20_000)).toEqual({ ok: true, detail: "fine" });
});

it("I11: and is ended after its time", async () => {
	const { ok, detail } = await ask("setInterval(() => {}, 1000)", 50);
	expect(ok).toBe(false);
	expect(detail).toMatch(/no answer within 50 ms .*could not be recorded: ENOSPC/);
});

it("an adapter that says why it ends is quoted; one that only breaks is not", async () => {
	const said = (line: string) => ask(`console.error(${JSON.stringify(line)}); process.exitCode = 2`, 20_000);
	const why = JSON.stringify({ level: "error", msg: "quorum must be a number.", code: "invalid" });
	expect(await said(why)).toEqual({ ok: false, detail: "quorum must be a number." });
	expect((await said("oops")).detail).toMatch(/gave no report\. ended by code 2 \(oops/);
});
