/** Polling of servers that answer at once: they are polled less often, and no update is lost. */

import { expect, test } from "vitest";
import { type PollOptions, poll } from "../../../packages/platforms/src/telegram/poll.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";

/** Answers each poll at once, until there are no more answers. Waits are recorded and take no time. */
async function play(
	answers: readonly unknown[],
	take: PollOptions["take"] = async () => ({}),
	reports: (string | undefined)[] = [],
) {
	const stopping = new AbortController();
	const waits: number[] = [];
	const left = [...answers];
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
		deleteWebhook: async () => true,
		async getUpdates() {
			if (left.length > 0) return left.shift();
			stopping.abort();
			throw new Error("no more answers");
		},
	} as unknown as PollOptions["api"];
	const call: PollOptions["call"] = (_method, work) => work();
	const listening = (error?: string) => void reports.push(error);
	await poll({ api, call, take, signal: stopping.signal, clock, log: silentLog, listening });
	return waits;
}

test("a server that answers polls at once is polled with back-off, at most every ten seconds", async () => {
	expect(await play(Array.from({ length: 8 }, () => []))).toEqual([
		1000, 2000, 4000, 8000, 10_000, 10_000, 10_000, 10_000,
	]);
});

test("a backlog comes without waits; a repeated update counts as idle and is still taken", async () => {
	const update = (update_id: number) => [{ update_id }];
	const taken: unknown[] = [];
	const take = async (...given: unknown[]) => {
		taken.push(...given);
		return {};
	};
	expect(await play([update(1), update(2), update(2), update(2), update(3), []], take)).toEqual([1000, 2000, 1000]);
	expect(taken).toEqual([1, 2, 2, 2, 3].map((update_id) => ({ update_id })));
});

test("an answer that is not a list is a failure and is retried", async () => {
	const reports: (string | undefined)[] = [];
	expect(await play([{}, "page", []], async () => ({}), reports)).toEqual([1000, 2000, 1000]);
	const reason = "getUpdates: the answer is not a list of updates";
	expect(reports).toEqual([reason, reason, undefined]);
});

test("updates behind one that is not safe yet are taken up, and none is confirmed before it", async () => {
	const stopping = new AbortController();
	const asked: { offset: number; timeout: number }[] = [];
	const first = Promise.withResolvers<void>();
	const taken: number[] = [];
	const clock = {
		now: () => 0,
		after(_ms: number, callback: () => void) {
			queueMicrotask(callback);
			return () => {};
		},
	};
	const told = [[{ update_id: 1 }], [{ update_id: 1 }, { update_id: 2 }], [{ update_id: 1 }, { update_id: 2 }]];
	const api = {
		deleteWebhook: async () => true,
		async getUpdates({ offset, timeout }: { offset: number; timeout: number }) {
			asked.push({ offset, timeout });
			if (asked.length === 3) first.resolve();
			if (asked.length === 4) stopping.abort();
			return told[asked.length - 1] ?? [];
		},
	} as unknown as PollOptions["api"];
	const take: PollOptions["take"] = async ({ update_id }) => {
		taken.push(update_id);
		return update_id === 1 ? { safe: first.promise } : { safe: Promise.resolve() };
	};
	await poll({
		api,
		call: (_method, work) => work(),
		take,
		signal: stopping.signal,
		clock,
		log: silentLog,
		listening: () => {},
	});
	expect(taken).toEqual([1, 2]);
	expect(asked.map(({ offset, timeout }) => [offset, timeout])).toEqual([
		...[
			[0, 25],
			[0, 0],
			[0, 0],
			[3, 25],
		],
	]);
});
