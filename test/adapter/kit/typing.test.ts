/** Typing through the gate: only the last word of a chat counts, whatever waits and however long a call takes. */

import { expect, it } from "vitest";
import type { Session } from "../../../packages/adapter/src/platform/session.ts";
import { createTyping } from "../../../packages/adapter/src/serve/context.ts";
import { manualClock } from "../../clock.ts";
import { kitContext, turn } from "./context.ts";

const target = { to: "c" };

function world() {
	const clock = manualClock();
	const calls: { on: boolean; done(): void }[] = [];
	const session = {
		typing: (_target: object, on: boolean) => new Promise<void>((done) => void calls.push({ on, done })),
	} as unknown as Session;
	const context = kitContext({ session, clock, pace: { targetIntervalMs: 0, accountIntervalMs: 100 } });
	const end = async () => {
		calls.at(-1)!.done();
		await turn();
		clock.advance(100);
		await turn();
	};
	const show = createTyping(context);
	const typing = (to: typeof target, on: boolean) => show({ type: "typing", target: to, on });
	return { clock, calls, end, typing };
}

it("what waits for its turn is one call, with the last word", async () => {
	const { clock, calls, typing, end } = world();
	typing(target, true);
	await turn();
	await end();
	typing(target, true);
	await turn();
	for (const on of [true, false]) typing({ to: "other" }, on);
	await end();
	expect(calls.map(({ on }) => on)).toEqual([true, true, false]);
	await end();
	clock.advance(1000);
	await turn();
	expect(calls).toHaveLength(3);
});

it("a word that comes while a call is under way is not lost with it", async () => {
	const { calls, typing, end } = world();
	typing(target, false);
	await turn();
	for (const on of [true, false]) typing(target, on);
	await end();
	expect(calls.map(({ on }) => on)).toEqual([false, false]);
});
