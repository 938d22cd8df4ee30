/**
 * A very long answer through every platform that streams: all of it, in order, once, within the platform's rate, in memory that does not grow.
 * Platforms whose pace would make minutes of it are given adapters whose time passes faster, and limits that are as much narrower.
 */

import "./compiled.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import type { Target } from "../../src/adapter/port.ts";
import { createDiscordFake } from "../fakes/discord.ts";
import type { Fake } from "../fakes/fake.ts";
import { createSignalFake, SIGNAL_NUMBER } from "../fakes/signal.ts";
import { createSlackFake } from "../fakes/slack.ts";
import { createTelegramFake } from "../fakes/telegram.ts";
import { beginRun, createRigWith, type Rig } from "../nex/outbound/rig.ts";
import { residentBytes } from "./daemon.ts";
import { letters } from "./fake-platforms.ts";

const TOKENS = 100_000;
const TOKENS_PER_TICK = 50;
const TICK_MS = 10;
const SAMPLE_MS = 100;
/** What V8 keeps for itself while it works; an adapter that kept its answer in every edit would need gigabytes. */
const GROWTH_BYTES_MAX = 48 * 2 ** 20;
const FAST_TIME = new URL("./fast-time.ts", import.meta.url).href;

/** Words that count, in paragraphs of some: any loss or change of order shows. */
const tokenOf = (n: number): string => (n % 20 === 19 ? `${n}\n\n` : n % 20 === 0 ? `${n}:` : n % 4 === 0 ? " a" : "b");

interface Way {
	name: string;
	fake: Fake;
	channel: string;
	settings: Record<string, string>;
	target: Target;
	/** How much faster the adapter's time passes. */
	speed: number;
	/** Calls that change what people see, and the most of them in a window of the platform's time. */
	rate: { calls: RegExp; most: number; windowMs: number };
}

const WAYS: Record<string, () => Promise<Omit<Way, "name">>> = {
	async discord() {
		// Five in a second instead of five in five: the adapter learns it from the headers.
		const fake = await createDiscordFake({ createRate: [5, 1000], editRate: [5, 1000] });
		const settings = { token: fake.token, api_url: fake.url };
		const rate = { calls: /^PATCH/, most: 5, windowMs: 1000 };
		return { fake, channel: "discord", settings, target: { to: "77" }, speed: 1, rate };
	},
	async telegram() {
		const speed = 4;
		const fake = await createTelegramFake({ privateRate: [15, 1000 / speed], accountRate: [30, 34 / speed] });
		const settings = { token: fake.token, api_url: fake.url };
		const rate = { calls: /^(?:sendMessage|editMessageText)$/, most: 75, windowMs: 60_000 };
		return { fake, channel: "telegram", settings, target: { to: "42", direct: true }, speed, rate };
	},
	async "slack, edited"() {
		const fake = await createSlackFake({ rate: "off" });
		const rate = { calls: /^chat\.update$/, most: 50 + 2, windowMs: 60_000 };
		return { fake, channel: "slack", settings: fake.settings, target: { to: "C1" }, speed: 4, rate };
	},
	async "slack, streamed"() {
		const fake = await createSlackFake({ rate: "off" });
		const target = { to: "C1", thread_id: "1700000000.000100", user_id: "U1", team_id: "TTEAM" };
		const rate = { calls: /^chat\.appendStream$/, most: 100 + 2, windowMs: 60_000 };
		return { fake, channel: "slack", settings: fake.settings, target, speed: 4, rate };
	},
	async "signal, edited"() {
		const fake = await createSignalFake({ rate: [1000, 10] });
		const settings = { number: SIGNAL_NUMBER, api_url: fake.url, drafts: "true" };
		const rate = { calls: /^send(?: edit)?$/, most: 60, windowMs: 60_000 };
		return { fake, channel: "signal", settings, target: { to: "+15551230001", direct: true }, speed: 10, rate };
	},
};

const table: string[] = [];
afterAll(() =>
	console.log(["100,000 tokens: platform, seconds, messages, calls, MiB early, MiB at most", ...table].join("\n")),
);

function rigFor({ channel, settings, speed }: Way): Rig {
	// V8 lets a heap drift far before it collects; with a small one what is measured is what is kept.
	const options = ["--max-semi-space-size=4", "--max-old-space-size=160", `--import=${FAST_TIME}`];
	const env = { NODE_OPTIONS: options.join(" "), NODE_FAST_TIME: String(speed) };
	return createRigWith(() => ({ [channel]: { env, accounts: { main: { settings } } } }));
}

/** Samples the memory of the process until told to stop. */
function watch(rig: Rig): { stop(): number[] } {
	const samples: number[] = [];
	const timer = setInterval(() => {
		const pid = rig.outbound.accounts()[0]?.processes.stream?.pid;
		if (pid !== undefined) samples.push(residentBytes(pid));
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

describe("proof: a 100,000 token answer", () => {
	it.each(Object.keys(WAYS))(
		"I7: %s: whole, in order, within the rate, in flat memory",
		{ timeout: 300_000 },
		async (name) => {
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
					if (n % TOKENS_PER_TICK === 0) await sleep(TICK_MS);
				}
				await run.end();
				const row = await rig.outbound.settled(id);
				const samples = memory.stop();
				const early = Math.max(...samples.slice(0, Math.ceil(samples.length / 4)));
				const late = Math.max(...samples);
				const shown = way.fake.visible(way.target.to);
				const seconds = ((performance.now() - begun) / 1000).toFixed(0);
				table.push([name, seconds, shown.length, way.fake.calls.length, mib(early), mib(late)].join("\t"));

				expect(row.state).toBe("complete");
				expect(letters(shown.join(""))).toBe(letters(source));
				expect(rig.outbound.accounts()[0]?.restarts).toBe(0);
				expect(late - early).toBeLessThan(GROWTH_BYTES_MAX);
				const { calls, most, windowMs } = way.rate;
				const times = way.fake.calls.filter((call) => calls.test(call.name)).map(({ at }) => at);
				expect(densest(times, windowMs / way.speed)).toBeLessThanOrEqual(most);
				expect(way.fake.calls.flatMap(({ status, name, at }) => (status === 429 ? [[name, at]] : []))).toEqual([]);
			} finally {
				await rig.close();
				await way.fake.close();
			}
		},
	);
});
