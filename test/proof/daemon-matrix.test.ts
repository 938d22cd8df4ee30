/**
 * The daemon is killed -9 again and again while it delivers to every platform at once, answers that are being written and texts that are finished.
 * What a person sees in the end is the source, exactly once; only where a platform cannot tell what became of a call under way, it is flagged.
 */

import "./compiled.ts";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DeliveryInfo } from "../../src/nex/nex.ts";
import { removeFolder } from "../runtime/folder.ts";
import { call, type DaemonProcess, daemonIn, until } from "./daemon.ts";
import { channelsConfig, type FakePlatform, listenForStatuses, sentencesOf, startPlatforms } from "./fake-platforms.ts";
import { emptyLine, type Line, measured, note, printTable, underWay } from "./matrix.ts";
import { seededRandom } from "./random.ts";

/** For every platform; one kill counts for all that had something under way. */
const KILLS = 20;

/** Says numbered sentences: "say <count> <name>". */
const ENGINE = `export default {
	name: "counter",
	async *run({ messages }) {
		const [, count, ...name] = messages.at(-1).text.split(" ");
		for (let n = 0; n < Number(count); n++) {
			yield { type: "text", delta: "Sentence " + (n + 1) + " of " + name.join(" ") + " is here. " + (n % 3 === 2 ? "\\n\\n" : "") };
			await new Promise((resolve) => setTimeout(resolve, 20));
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
	/** Absent: what was said is in the run. */
	text?: string;
}

interface DeliveryView extends Pick<DeliveryInfo, "state" | "error"> {
	delivery_id: string;
	run_id: string;
	channel: string;
	messages: object[];
}

const random = seededRandom();
const folder = mkdtempSync(join(tmpdir(), "nexus-daemon-matrix-"));
const sent: Sent[] = [];
/** By channel, creations under way when a daemon was killed, or when the next one ended what it had left. */
const inTheAir = new Map<string, Set<string>>();
const kills = new Map<string, number>();
let platforms: FakePlatform[];
let daemon: DaemonProcess;
let over = false;
let chats = 0;
let lines: Line[] = [];

async function deliver(platform: FakePlatform, what: { run_id: string } | { text: string }): Promise<void> {
	const chat = chats++;
	const body = { ...what, channel: platform.channel, account: "main", target: platform.target(chat) };
	const { delivery_id: deliveryId } = await call<{ delivery_id: string }>(`${daemon.url}/v1/deliveries`, body);
	sent.push({ platform, chat, deliveryId, ...("text" in what ? { text: what.text } : {}) });
}

const deliveries = async (query: string) =>
	(await call<{ deliveries: DeliveryView[] }>(`${daemon.url}/v1/deliveries?limit=200&${query}`)).deliveries;

/** Whatever has nothing under way gets a text. */
async function keepBusy(): Promise<void> {
	const active = new Set((await deliveries("state=active")).map(({ channel }) => channel));
	for (const platform of platforms.filter(({ channel }) => !active.has(channel))) {
		await deliver(platform, { text: sentencesOf(platform.sentences, `text ${chats}`).join("") });
	}
}

/** A run that is delivered to every platform while it is written. */
async function answerAll(life: number): Promise<void> {
	const path = `${daemon.url}/v1/sessions/life-${life}/messages`;
	const { run_id } = await call<{ run_id: string }>(path, { text: `say 60 life ${life}` });
	for (const platform of platforms) await deliver(platform, { run_id });
}

/** One life: work is given, some of it reaches the platforms, then the process is killed at any moment. */
async function live(life: number): Promise<void> {
	await daemon.start();
	const calls = () => platforms.reduce((sum, { fake }) => sum + fake.calls.length, 0);
	const before = calls();
	if (life % 4 === 1) await answerAll(life);
	await keepBusy();
	const wanted = random.between(0, 12);
	const limit = Date.now() + 8000;
	while (calls() - before < wanted && Date.now() < limit) await sleep(2);
	await sleep(random.between(0, 300));
	await keepBusy();
	for (const { channel } of platforms) kills.set(channel, (kills.get(channel) ?? 0) + 1);
	await daemon.kill();
	collectDoubts();
}

function collectDoubts(): void {
	for (const { channel } of platforms) {
		const found = underWay(join(folder, "data"), channel);
		inTheAir.set(channel, new Set([...(inTheAir.get(channel) ?? []), ...found]));
	}
}

async function sourceOf({ text }: Sent, { run_id }: DeliveryView): Promise<string> {
	if (text !== undefined) return text;
	const run = await call<{ messages: { role: string; text: string }[] }>(`${daemon.url}/v1/runs/${run_id}`);
	return run.messages.flatMap((message) => (message.role === "assistant" ? [message.text] : [])).join("");
}

async function lineOf(platform: FakePlatform): Promise<Line> {
	const line = emptyLine(platform, "daemon killed");
	const rows = await deliveries(`channel=${platform.channel}`);
	for (const each of sent.filter((one) => one.platform === platform)) {
		const row = rows.find(({ delivery_id }) => delivery_id === each.deliveryId);
		if (!row) line.wrong.push(`${each.deliveryId} is gone`);
		else note(line, row, platform, each.chat, await sourceOf(each, row));
	}
	const facts = { kills: kills.get(platform.channel) ?? 0, inTheAir: inTheAir.get(platform.channel)?.size ?? 0 };
	return Object.assign(measured(line, platform.fake.calls), facts);
}

beforeAll(async () => {
	console.log(`daemon matrix: NEXUS_SEED=${random.seed}`);
	platforms = await startPlatforms();
	writeFileSync(join(folder, "counter.mjs"), ENGINE);
	const channels = Object.fromEntries(
		Object.entries(channelsConfig(platforms)).map(([name, config]) => [name, { ...config, ...QUIET }]),
	);
	// Every JSON text is YAML.
	const config = { engine: { module: "./counter.mjs" }, channels, log: { level: "warn" } };
	daemon = await daemonIn(folder, JSON.stringify(config));
	listenForStatuses(platforms, async ({ method, headers, body }) => {
		const request = { method, headers, body: new Uint8Array(body) };
		// WhatsApp tries for days to tell what it has to tell.
		for (;;) {
			const answer = await fetch(`${daemon.url}/v1/webhooks/whatsapp/main`, request).catch(() => undefined);
			if (answer?.status === 200 || over) return 200;
			await sleep(100);
		}
	});
	for (let life = 1; life <= KILLS; life++) await live(life);
	await daemon.start();
	await until("everything is delivered", async () => (await deliveries("state=active")).length === 0, 480_000);
	collectDoubts();
	lines = await Promise.all(platforms.map(lineOf));
}, 900_000);

afterAll(async () => {
	over = true;
	printTable(`daemon killed, NEXUS_SEED=${random.seed}`, lines);
	await daemon?.stop();
	await Promise.all(platforms.map(({ fake }) => fake.close()));
	removeFolder(folder);
}, 120_000);

describe(`proof: ${KILLS} kills of the daemon`, () => {
	it.each(["discord", "telegram", "slack", "whatsapp", "sms", "signal", "imessage", "gmail"])(
		"I7: on %s everything is read once, in order and whole, or flagged where nobody can tell",
		(channel) => {
			const line = lines.find((each) => each.channel === channel)!;
			const { tells } = platforms.find((each) => each.channel === channel)!;
			expect(line.wrong).toEqual([]);
			expect(line.exact + line.unknown).toBe(line.deliveries);
			expect(line.unknown).toBeLessThanOrEqual(tells ? 0 : line.inTheAir);
			if (channel === "whatsapp") expect(line.unknownShown).toBe(0);
			expect(line.exact).toBeGreaterThan(0);
			expect(line.kills).toBeGreaterThanOrEqual(KILLS);
		},
	);
});
