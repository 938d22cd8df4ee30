/**
 * The daemon is killed -9 again and again while it delivers to many platforms at once, answers that are being written and texts that are finished.
 * What a person sees in the end is the source, exactly once; only where a platform cannot tell what became of a call under way, it is flagged.
 */

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sqliteLedger } from "../../packages/daemon/src/ledger/ledger.ts";
import { openSqlite } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import { atEffort } from "../effort.ts";
import { removeFolder } from "../runtime/folder.ts";
import { fastTime } from "../time/time.ts";
import { until } from "../until.ts";
import { call, type DaemonProcess, daemonIn } from "./daemon.ts";
import {
	CHANNELS,
	channelsConfig,
	type FakePlatform,
	listenForStatuses,
	noncesOf,
	sentencesOf,
	startPlatforms,
} from "./fake-platforms.ts";
import { drawKillPoints, type KillPoint, underWay, type Watch, watch } from "./kills.ts";
import { seededRandom } from "./random.ts";
import { emptyLine, judge, killedUnderWay, type Line, measured, printTable } from "./table.ts";

/** One kill counts for all platforms that had something under way. */
const KILLS = atEffort(20, 3);
const TIME = fastTime(5);
const ANSWER_EVERY_LIVES = 4;
const SENTENCES = 60;
const BUSY_EVERY_MS = 50;

/** Says numbered sentences: "say <count> <name>". */
const ENGINE = `export default {
	name: "counter",
	async *run({ messages }) {
		const [, count, ...name] = messages.at(-1).text.split(" ");
		for (let n = 0; n < Number(count); n++) {
			yield { type: "text", delta: "Sentence " + (n + 1) + " of " + name.join(" ") + " is here. " + (n % 3 === 2 ? "\\n\\n" : "") };
			await new Promise((resolve) => setTimeout(resolve, 4));
		}
	},
};
`;

/** Nothing is said but what is delivered. */
const QUIET = { errorText: "", acl: { unknown: "deny" } };

interface Sent {
	platform: FakePlatform;
	chat: number;
	deliveryId: string;
	/** The text of an answer is in its run. */
	source: { text: string } | { runId: string };
}

const random = seededRandom();
const folder = mkdtempSync(join(tmpdir(), "nexus-daemon-matrix-"));
const data = join(folder, "data");
const channels = random.shuffled(CHANNELS).slice(0, atEffort(CHANNELS.length, 4));
const points = drawKillPoints(random, ["arrival", "loss", "answer", "note"], KILLS);
const sent: Sent[] = [];
/** By channel, creations under way when a daemon was killed, or when the next one ended what it had left. */
const inTheAir = new Map<string, Set<string>>();
/** When WhatsApp has reported the status of a message, by its nonce. */
const told = new Map<string, number>();
let platforms: FakePlatform[];
let daemon: DaemonProcess;
let events: Watch;
let over = false;
let chats = 0;
let kills = 0;
const lines: Line[] = [];

async function deliver(platform: FakePlatform, what: { run_id: string } | { text: string }): Promise<void> {
	const chat = chats++;
	const body = { ...what, channel: platform.channel, account: "main", target: platform.target(chat) };
	const { delivery_id: deliveryId } = await call<{ delivery_id: string }>(`${daemon.url}/v1/deliveries`, body);
	sent.push({ platform, chat, deliveryId, source: "text" in what ? what : { runId: what.run_id } });
}

const textFor = ({ sentences }: FakePlatform): { text: string } => ({
	text: sentencesOf(sentences, `text ${chats}`).join(""),
});

async function activeChannels(): Promise<Set<string>> {
	const path = `${daemon.url}/v1/deliveries?limit=200&state=active`;
	const { deliveries } = await call<{ deliveries: { channel: string }[] }>(path);
	return new Set(deliveries.map(({ channel }) => channel));
}

/** Sends a text to every chat that has nothing under way. */
async function keepBusy(): Promise<void> {
	const active = await activeChannels();
	for (const platform of platforms) if (!active.has(platform.channel)) await deliver(platform, textFor(platform));
}

/** A run that is delivered to every platform while it is written. */
async function answerAll(life: number): Promise<void> {
	const path = `${daemon.url}/v1/sessions/life-${life}/messages`;
	const { run_id } = await call<{ run_id: string }>(path, { text: `say ${SENTENCES} life ${life}` });
	for (const platform of platforms) await deliver(platform, { run_id });
}

/** One life: work is given, some of it reaches the platforms, and the process is killed at the point. */
async function live(life: number, point: KillPoint): Promise<void> {
	await daemon.start();
	if (life % ANSWER_EVERY_LIVES === 1) await answerAll(life);
	await keepBusy();
	let dead = point.after === "start" ? daemon.kill() : undefined;
	if (point.after !== "start") {
		events.arm(point, () => {
			dead = daemon.kill();
		});
	}
	await until(`life ${life}: ${JSON.stringify(point)}`, async () => {
		if (dead) return true;
		// The remaining deliveries may end without another call. Asking for more may meet the kill.
		await keepBusy().catch((cause: unknown) => {
			if (!dead) throw cause;
		});
		await sleep(BUSY_EVERY_MS);
		return false;
	});
	if (await dead) kills++;
	collectDoubts();
}

function collectDoubts(): void {
	for (const { channel } of platforms) {
		const found = underWay(data, channel);
		inTheAir.set(channel, new Set([...(inTheAir.get(channel) ?? []), ...found]));
	}
}

async function textOf({ source }: Sent): Promise<string> {
	if ("text" in source) return source.text;
	const run = await call<{ messages: { role: string; text: string }[] }>(`${daemon.url}/v1/runs/${source.runId}`);
	return run.messages.flatMap((message) => (message.role === "assistant" ? [message.text] : [])).join("");
}

/** The outcome of these deliveries, from what the stopped daemon has left. */
async function judgeAll(
	all: readonly Sent[],
	fault: string,
	texts: ReadonlyMap<Sent, string>,
	doubts: typeof inTheAir,
): Promise<void> {
	const file = openSqlite(join(data, "nexus.db"), "process");
	const { deliveries } = sqliteLedger(file);
	for (const platform of platforms) {
		const nonces = doubts.get(platform.channel) ?? new Set();
		const line = emptyLine(platform, fault);
		for (const each of all.filter((one) => one.platform === platform)) {
			const row = await deliveries.get(each.deliveryId);
			if (!row) {
				line.wrong.push(`${each.deliveryId} is gone`);
				continue;
			}
			judge(line, {
				row,
				platform,
				chat: each.chat,
				source: texts.get(each) ?? "",
				inDoubt: killedUnderWay(nonces),
				toldAt: (nonce) => told.get(nonce),
			});
		}
		lines.push(Object.assign(measured(line, platform.fake.calls), { kills, inTheAir: nonces.size }));
	}
	file.close();
}

beforeAll(async () => {
	console.log(`daemon matrix: NEXUS_SEED=${random.seed}`);
	platforms = await startPlatforms(channels, TIME);
	writeFileSync(join(folder, "counter.mjs"), ENGINE);
	const quiet = Object.entries(channelsConfig(platforms, TIME)).map(([name, config]) => [
		name,
		{ ...config, ...QUIET },
	]);
	// Every JSON text is YAML.
	const config = { engine: { module: "./counter.mjs" }, channels: Object.fromEntries(quiet), log: { level: "warn" } };
	daemon = await daemonIn(folder, JSON.stringify(config));
	listenForStatuses(platforms, async ({ method, headers, body }) => {
		const request = { method, headers, body: new Uint8Array(body) };
		// WhatsApp tries for days to tell what it has to tell.
		for (;;) {
			const answer = await fetch(`${daemon.url}/v1/webhooks/whatsapp/main`, request).catch(() => undefined);
			if (answer?.status === 200) for (const nonce of noncesOf(body)) told.set(nonce, Date.now());
			if (answer?.status === 200 || over) return 200;
			await sleep(20);
		}
	});
	events = watch(platforms, data);
});

// A hook each, so that each has its own time limit.
for (const [index, point] of points.entries()) beforeAll(() => live(index + 1, point));

beforeAll(async () => {
	events.end();
	await daemon.start();
	const killed = [...sent];
	for (const platform of platforms) await deliver(platform, textFor(platform));
	await until("everything is delivered", async () => (await activeChannels()).size === 0);
	collectDoubts();
	const texts = new Map(await Promise.all(sent.map(async (each) => [each, await textOf(each)] as const)));
	await daemon.stop();
	await judgeAll(killed, "daemon killed", texts, inTheAir);
	await judgeAll(sent.slice(killed.length), "after kills", texts, new Map());
});

afterAll(async () => {
	over = true;
	printTable(`daemon killed, NEXUS_SEED=${random.seed}`, lines);
	await daemon?.stop();
	await Promise.all(platforms.map(({ fake }) => fake.close()));
	removeFolder(folder);
});

describe(`proof: ${KILLS} kills of the daemon`, () => {
	it.each(channels)(
		"I7: on %s everything is read once, in order and whole, or flagged where it cannot be known",
		(channel) => {
			const [during, after] = lines.filter((each) => each.channel === channel);
			expect(during?.wrong).toEqual([]);
			expect(after).toMatchObject({ wrong: [], deliveries: 1, exact: 1 });
			expect(kills).toBe(KILLS);
		},
	);
});
