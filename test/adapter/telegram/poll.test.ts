/** Polling of servers that answer at once: they are polled less often, and no update is lost. */

import { expect, test } from "vitest";
import { PlatformError } from "../../../packages/adapter/src/kit.ts";
import { type PollOptions, poll } from "../../../packages/platforms/src/telegram/poll.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";

/** Polls until there are no more answers. Waits are recorded and take no time. */
async function play(answers: readonly unknown[], { take = async () => ({}), ...more }: Partial<PollOptions> = {}) {
	const stopping = new AbortController();
	const waits: number[] = [];
	const reports: (string | undefined)[] = [];
	const asked: [offset: number, timeout: number][] = [];
	const deletedAfter: number[] = [];
	let now = 0;
	const clock = {
		now: () => now,
		after(ms: number, callback: () => void) {
			waits.push(ms);
			now += ms;
			queueMicrotask(callback);
			return () => {};
		},
	};
	const api = {
		deleteWebhook: async () => deletedAfter.push(asked.length),
		async getUpdates(params: { offset: number; timeout: number }) {
			if (asked.length === answers.length) {
				stopping.abort();
				throw new Error("no more answers");
			}
			const answer = answers[asked.length];
			asked.push([params.offset, params.timeout]);
			return typeof answer === "function" ? answer() : answer;
		},
	} as unknown as PollOptions["api"];
	const call: PollOptions["call"] = (_method, work) => work();
	const listening = (error?: string) => void reports.push(error);
	const { signal } = stopping;
	const failure = await poll({ api, call, take, signal, clock, log: silentLog, listening, ...more }).catch(
		(cause: unknown) => cause,
	);
	return { waits, reports, asked, deletedAfter, failure };
}

test("a server that answers polls at once is polled with back-off, at most every ten seconds", async () => {
	const { waits } = await play(Array.from({ length: 8 }, () => []));
	expect(waits).toEqual([1000, 2000, 4000, 8000, 10_000, 10_000, 10_000, 10_000]);
});

test("a backlog comes without waits; a repeated update counts as idle and is still taken", async () => {
	const update = (update_id: number) => [{ update_id }];
	const taken: unknown[] = [];
	const take = async (...given: unknown[]) => {
		taken.push(...given);
		return {};
	};
	const { waits } = await play([update(1), update(2), update(2), update(2), update(3), []], { take });
	expect(waits).toEqual([1000, 2000, 1000]);
	expect(taken).toEqual([1, 2, 2, 2, 3].map((update_id) => ({ update_id })));
});

test("an answer that is not a list is a failure and is retried", async () => {
	const { waits, reports } = await play([{}, "page", []]);
	expect(waits).toEqual([1000, 2000, 1000]);
	const reason = "getUpdates: the answer is not a list of updates";
	expect(reports).toEqual([reason, reason, undefined]);
});

test("updates behind one that is not safe yet are taken up, and none is confirmed before it", async () => {
	const first = Promise.withResolvers<void>();
	const taken: number[] = [];
	const take: PollOptions["take"] = async ({ update_id }) => {
		taken.push(update_id);
		return { safe: update_id === 1 ? first.promise : Promise.resolve() };
	};
	const both = [{ update_id: 1 }, { update_id: 2 }];
	const safe = () => {
		first.resolve();
		return both;
	};
	const { asked } = await play([[{ update_id: 1 }], both, safe, []], { take });
	expect(taken).toEqual([1, 2]);
	expect(asked.map(String)).toEqual(["0,25", "0,0", "0,0", "3,25"]);
});

test("a webhook is taken away once, not in every quiet round, and again when one is set meanwhile", async () => {
	const conflict = () => Promise.reject(new PlatformError("unavailable", "409 Conflict", { retryAfterMs: 0 }));
	const { deletedAfter } = await play([[], [], [], conflict, [], []]);
	expect(deletedAfter).toEqual([0, 4]);
});

test("polling that fails again and again ends with the reason, so that it can be seen", async () => {
	const faults = ["unavailable", "unavailable", "unknown_outcome", "unknown_outcome"] as const;
	const fails = faults.map((fault) => () => Promise.reject(new PlatformError(fault, "ENOTFOUND api.telegram.org")));
	const { waits, failure } = await play(fails);
	expect(failure).toMatchObject({ fault: "unavailable", message: expect.stringContaining("ENOTFOUND") });
	expect(waits).toEqual([1000, 2000, 4000]);
});
