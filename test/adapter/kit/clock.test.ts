/** The wall clock is set back while an adapter writes: no account is silent for the time that was taken away. */

import { describe, expect, it } from "vitest";
import { type AdapterContextOptions, createAdapterContext } from "../../../packages/adapter/src/serve/context.ts";
import * as discord from "../../../packages/platforms/src/discord/pace.ts";
import { createActivity } from "../../../packages/platforms/src/slack/pace.ts";
import * as telegram from "../../../packages/platforms/src/telegram/pace.ts";
import * as whatsapp from "../../../packages/platforms/src/whatsapp/pace.ts";
import type { Clock } from "../../../packages/protocol/src/clock.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { manualClock } from "../../clock.ts";

const HOUR_MS = 3_600_000;
const NOW = 10 * HOUR_MS;
const BEFORE = NOW - HOUR_MS;

describe("a clock that is set back by an hour", () => {
	it("I7: calls that wait for their turn go on", async () => {
		const timers = manualClock(NOW);
		let back = 0;
		const clock: Clock = { now: () => timers.now() - back, after: (ms, callback) => timers.after(ms, callback) };
		const options = {
			account: "a",
			clock,
			random: () => 0,
			log: silentLog,
			say() {},
			ready: async () => {},
			platform: { pace: () => ({ targetIntervalMs: 500, accountIntervalMs: 50 }) },
			session: {},
		};
		const { gated } = createAdapterContext(options as unknown as AdapterContextOptions);
		const done: string[] = [];
		const call = (name: string) => gated({ to: "42" }, "edit", async () => void done.push(name));
		await call("one");
		const next = call("two");
		back = HOUR_MS;
		timers.advance(1000);
		await next;
		expect(done).toEqual(["one", "two"]);
	});

	it("a chat is not slower than its platform wants it", () => {
		const spent = telegram.spend(undefined, true, NOW);
		expect(telegram.paceOf(spent, true, BEFORE).targetIntervalMs).toBe(500);
		const taken = whatsapp.spend(whatsapp.FULL, NOW);
		expect(whatsapp.paceOf(taken, BEFORE).targetIntervalMs).toBe(1000);
		const headers = new Headers({ "x-ratelimit-remaining": "4", "x-ratelimit-reset-after": "3" });
		const bucket = discord.readBucket(headers, NOW);
		expect(discord.paceOf(bucket, undefined, BEFORE).targetIntervalMs).toBe(1000);
		const activity = createActivity();
		activity.touch("a", NOW);
		expect(activity.count("b", BEFORE)).toBe(1);
	});
});
