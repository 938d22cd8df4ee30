/**
 * A very long answer through every platform that streams: all of it, in order, once, within the platform's rate, in memory that does not grow.
 * Time passes faster for platforms and adapters, whose pace would make minutes of it.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import type { Target } from "../../packages/adapter/src/port.ts";
import { createDiscordFake } from "../../packages/lab/src/discord/discord.ts";
import type { Fake } from "../../packages/lab/src/fake.ts";
import { createSignalFake, SIGNAL_NUMBER } from "../../packages/lab/src/signal.ts";
import { createSlackFake } from "../../packages/lab/src/slack/slack.ts";
import { createTelegramFake } from "../../packages/lab/src/telegram/telegram.ts";
import { atEffort, effort, FULL_EFFORT } from "../effort.ts";
import { beginRun, createRigWith, type Rig } from "../nex/outbound/rig.ts";
import { fastTime } from "../time/time.ts";
import { until } from "../until.ts";
import { residentBytes } from "./daemon.ts";
import { adapterOn, letters } from "./fake-platforms.ts";

const TOKENS = atEffort(100_000, 5000);
const TOKENS_PER_TICK = 50;
const TICK_MS = 10;
/** The rest is written while these are shown. */
const FIRST = 500;
const SAMPLE_MS = 100;
/** Share of a window by which a call may be late on a machine that has other work, and the next one not. */
const JITTER = 0.1;
/** V8's own memory while it works; an adapter that kept its answer in every edit would need gigabytes. */
const GROWTH_BYTES_MAX = 48 * 2 ** 20;
const TIME = fastTime(10);
/** Memory is measured in a full proof only, one adapter after another. */
const isFull = effort >= FULL_EFFORT;

/** Words that count, in paragraphs of some: any loss or change of order shows. */
const tokenOf = (n: number): string => (n % 20 === 19 ? `${n}\n\n` : n % 20 === 0 ? `${n}:` : n % 4 === 0 ? " a" : "b");

interface Way {
	name: string;
	fake: Fake;
	channel: string;
	settings: Record<string, string>;
	target: Target;
	/** Calls that change what people see, and the most of them in a window of the platform's time. */
	rate: { calls: RegExp; most: number; windowMs: number };
}

const { clock } = TIME;

const WAYS: Record<string, () => Promise<Omit<Way, "name">>> = {
	async discord() {
		const fake = await createDiscordFake({ clock });
		const settings = { token: fake.token, api_url: fake.url };
		// Windows begin with their first call: the end of one and the beginning of the next may follow each other.
		const rate = { calls: /^PATCH/, most: 2 * 5, windowMs: 1000 };
		return { fake, channel: "discord", settings, target: { to: "77" }, rate };
	},
	async telegram() {
		const fake = await createTelegramFake({ privateRate: [15, 1000], accountRate: [30, 34], clock });
		const settings = { token: fake.token, api_url: fake.url };
		const rate = { calls: /^(?:sendMessage|editMessageText)$/, most: 75, windowMs: 60_000 };
		return { fake, channel: "telegram", settings, target: { to: "42", direct: true }, rate };
	},
	async "slack, edited"() {
		const fake = await createSlackFake({ rate: "off", clock });
		const rate = { calls: /^chat\.update$/, most: 50 + 2, windowMs: 60_000 };
		return { fake, channel: "slack", settings: fake.settings, target: { to: "C1" }, rate };
	},
	async "slack, streamed"() {
		const fake = await createSlackFake({ rate: "off", clock });
		const target = { to: "C1", thread_id: "1700000000.000100", user_id: "U1", team_id: "TTEAM" };
		const rate = { calls: /^chat\.appendStream$/, most: 100 + 2, windowMs: 60_000 };
		return { fake, channel: "slack", settings: fake.settings, target, rate };
	},
	async "signal, edited"() {
		const fake = await createSignalFake({ rate: [1000, 10], clock });
		const settings = { number: SIGNAL_NUMBER, api_url: fake.url, drafts: "true" };
		const rate = { calls: /^send(?: edit)?$/, most: 60, windowMs: 60_000 };
		return { fake, channel: "signal", settings, target: { to: "+15551230001", direct: true }, rate };
	},
};

const table: string[] = [];
afterAll(() =>
	console.log([`${TOKENS} tokens: platform, seconds, messages, calls, MiB early, MiB at most`, ...table].join("\n")),
);

function rigFor({ channel, settings }: Way): Rig {
	// V8 lets a heap drift far before it collects; with a small one what is measured is what is kept.
	const small: Record<string, string> = isFull
		? { NODE_OPTIONS: "--max-semi-space-size=4 --max-old-space-size=160" }
		: {};
	const { command, env } = adapterOn(channel, TIME);
	return createRigWith(() => ({ [channel]: { command, env: { ...env, ...small }, accounts: { main: { settings } } } }));
}

/** Samples the memory of the process until it is stopped. */
function watch(rig: Rig): { stop(): number[] } {
	const samples: number[] = [];
	const timer = setInterval(() => {
		const pid = rig.outbound.accounts()[0]?.processes.stream?.pid;
		if (isFull && pid !== undefined) samples.push(residentBytes(pid));
	}, SAMPLE_MS);
	return {
		stop() {
			clearInterval(timer);
			return samples;
		},
	};
}

/** The most calls in any window. */
function densest(times: readonly number[], windowMs: number): number {
	let most = 0;
	let first = 0;
	times.forEach((at, n) => {
		while (at - times[first]! > windowMs) first++;
		most = Math.max(most, n - first + 1);
	});
	return most;
}

const mib = (bytes: number): string => (bytes / 2 ** 20).toFixed(0);

describe(`proof: an answer of ${TOKENS} tokens`, { concurrent: !isFull }, () => {
	const promised = isFull ? "within the rate, in flat memory" : "within the rate";
	it.each(Object.keys(WAYS))(`I7: %s: whole, in order, ${promised}`, async (name) => {
		const way: Way = { name, ...(await WAYS[name]!()) };
		const rig = rigFor(way);
		try {
			const begun = performance.now();
			const run = await beginRun(rig.bus, "long");
			const account = { channel: way.channel, id: "main" };
			const { id } = await rig.outbound.deliver({ runId: run.runId, account, target: way.target });
			const memory = watch(rig);
			let source = "";
			for (let n = 0; n < TOKENS; n++) {
				const token = tokenOf(n);
				source += token;
				run.text(token);
				if (n === FIRST) await until("the answer has begun on the platform", () => way.fake.calls.length > 0);
				if (n % TOKENS_PER_TICK === 0) await sleep(TICK_MS);
			}
			await run.end();
			const row = await rig.outbound.settled(id);
			const samples = memory.stop();
			const early = Math.max(0, ...samples.slice(0, Math.ceil(samples.length / 4)));
			const late = Math.max(0, ...samples);
			const shown = way.fake.visible(way.target.to);
			const seconds = ((performance.now() - begun) / 1000).toFixed(0);
			table.push([name, seconds, shown.length, way.fake.calls.length, mib(early), mib(late)].join("\t"));

			expect(row.state).toBe("complete");
			expect(letters(shown.join(""))).toBe(letters(source));
			expect(rig.outbound.accounts()[0]?.restarts).toBe(0);
			if (isFull) {
				expect(samples.length).toBeGreaterThan(0);
				expect(late - early).toBeLessThan(GROWTH_BYTES_MAX);
			}
			const { calls, most, windowMs } = way.rate;
			const times = way.fake.calls.filter((call) => calls.test(call.name)).map(({ at }) => at);
			expect(densest(times, windowMs * (1 - JITTER))).toBeLessThanOrEqual(most);
			expect(way.fake.calls.flatMap(({ status, name, at }) => (status === 429 ? [[name, at]] : []))).toEqual([]);
		} finally {
			await rig.close();
			await way.fake.close();
		}
	});
});
