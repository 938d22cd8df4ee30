/**
 * The fault matrix: every platform against every way in which it or its adapter can fail. What a person sees is the source, exactly once; where
 * the platform cannot tell what became of a message, the delivery is flagged and nothing is repeated. The daemon's kills are in daemon-matrix.test.ts.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FakeCall } from "../../packages/lab/src/fake.ts";
import { atEffort, effort, FULL_EFFORT } from "../effort.ts";
import { strike } from "../nex/outbound/rig.ts";
import { fastTime } from "../time/time.ts";
import { until } from "../until.ts";
import { CHANNELS, type Channel, type FakePlatform } from "./fake-platforms.ts";
import { drawKillPoints, type KillPoint, underWay, type Watch, watch } from "./kills.ts";
import { type Matrix, startMatrix } from "./matrix.ts";
import { seededRandom } from "./random.ts";
import { brokenCreate, type Doubt, killedUnderWay, type Line, printTable } from "./table.ts";

const KILLS = atEffort(30, 3);
/** Answers at the same time while adapters are killed, and while platforms fail. */
const CHATS = { killed: 3, failing: atEffort(6, 4) };
const TIME = fastTime(5);
/** Hanging calls cost their whole limit, and nothing but time: in a small dose it is shorter, and only creations hang. */
const CALL_MS = effort < FULL_EFFORT ? 6000 : 30_000;

/** How many creations and other calls go wrong. A storm refuses whatever comes. */
const FAULTS = {
	"429": { name: "429 storm", creates: 3, others: 3, any: 12 },
	"5xx": { name: "5xx", creates: 3, others: 3, any: 0 },
	hang: { name: "hanging call", creates: 1, others: effort < FULL_EFFORT ? 0 : 1, any: 0 },
	reset_before: { name: "reset before", creates: 2, others: 3, any: 0 },
	reset_after_accept: { name: "reset after accept", creates: 2, others: 3, any: 0 },
};
type Kind = keyof typeof FAULTS;

const random = seededRandom();
const lines: Line[] = [];
const watches = new Map<string, Watch>();
let matrix: Matrix;
/** Calls hang on platforms of their own, meanwhile. */
let elsewhere: Matrix;
let hanging: Promise<Line[]>;

/** A small dose kills the adapters of half of the platforms, has one fault on each of the others, and hanging calls on two. */
const quick: readonly Kind[] = ["429", "5xx", "reset_before", "reset_after_accept"];
const order = random.shuffled(CHANNELS);
const killed = order.slice(0, atEffort(CHANNELS.length, 4));
const failing = effort < FULL_EFFORT ? order.slice(killed.length) : order;
const hung = random.shuffled(CHANNELS).slice(0, atEffort(CHANNELS.length, 2));
const faults = new Map(failing.map((channel) => [channel, random.shuffled(quick).slice(0, atEffort(quick.length, 1))]));
const points = new Map(
	killed.map((channel, index) => {
		const from = ["arrival", "loss", "answer", "line", "note"] as const;
		return [channel, drawKillPoints(random, from, KILLS, index * KILLS)];
	}),
);

beforeAll(async () => {
	console.log(`fault matrix: NEXUS_SEED=${random.seed}`);
	const onCall = ({ channel }: { channel: string }) => watches.get(channel)?.line();
	const patient = { ...TIME, env: { ...TIME.env, NODE_NEXUS_CALL_MS: String(CALL_MS) } };
	[matrix, elsewhere] = await Promise.all([
		startMatrix({ channels: CHANNELS, time: TIME, onCall }),
		startMatrix({ channels: hung, time: patient }),
	]);
	hanging = Promise.all(elsewhere.platforms.map((platform) => deliverThrough(elsewhere, platform, "hang")));
	// Looked at by its test.
	hanging.catch(() => {});
});

afterAll(async () => {
	printTable(`fault matrix, NEXUS_SEED=${random.seed}`, lines);
	await Promise.all([matrix?.close(), elsewhere?.close()]);
});

/**
 * A refusal says that nothing happened; a broken or hanging creation says nothing, and signal-cli does not explain its 500. Platforms that can be
 * asked clear it up.
 */
const silent = ({ channel }: FakePlatform): FakeCall["fault"][] => [
	"hang",
	"reset_before",
	"reset_after_accept",
	...(channel === "signal" ? (["5xx"] as const) : []),
];

async function deliverThrough(where: Matrix, platform: FakePlatform, kind: Kind): Promise<Line> {
	const { name, creates, others, any } = FAULTS[kind];
	const { fake } = platform;
	for (const call of platform.creates) fake.fault({ kind, count: creates, call, ms: 1000 });
	for (const call of platform.others) fake.fault({ kind, count: others, call, ms: 1000 });
	// Neither WhatsApp nor a relay says how long to wait, so every wait is twice the one before.
	const tellsTime = platform.channel !== "whatsapp" && platform.channel !== "nostr";
	if (any > 0) fake.fault({ kind, count: tellsTime ? any : 2, ms: 1000 });
	const inDoubt = brokenCreate(platform, silent(platform));
	const line = await where.deliver(platform, name, { chats: CHATS.failing, more: () => false, inDoubt });
	fake.fault(undefined);
	return line;
}

const CHOICES = [
	{ id: "approve", label: "Approve", reply: "approve K7Q2" },
	{ id: "deny", label: "Deny", reply: "deny K7Q2", danger: true },
];

/** A question whose call fails, and the end of it, whose call fails too. */
async function askThrough({ rig }: Matrix, platform: FakePlatform, kind: Kind, chat: number): Promise<void> {
	const { channel, fake, creates, others } = platform;
	const name = `${channel}, question ${chat}, ${kind}`;
	const target = platform.target(chat);
	const shown = () => fake.visible(target.to);
	for (const call of creates) fake.fault({ kind, count: 1, call, ms: 1000 });
	const question = { id: `${channel}-${chat}`, text: "Run it?", choices: CHOICES };
	const { id } = await rig.outbound.ask({ account: { channel, id: "main" }, target, ...question });
	const { state } = await rig.outbound.settled(id);
	fake.fault(undefined);
	if (state !== "complete") {
		expect([state, platform.tells, silent(platform).includes(kind)], name).toEqual(["unknown", false, true]);
		expect(shown().length, name).toBeLessThanOrEqual(1);
		return;
	}
	expect(shown(), name).toHaveLength(1);
	if (fake.buttons) expect(fake.buttons(target.to), name).toEqual([["Approve", "Deny"]]);
	for (const call of others) fake.fault({ kind, count: 1, call, ms: 1000 });
	await rig.outbound.settleQuestion(`${channel}-${chat}`, "Denied by Ada.");
	fake.fault(undefined);
	await until(`${name}: it is settled`, () => shown().at(-1) === "Denied by Ada.");
	expect(shown(), name).toHaveLength(fake.buttons ? 1 : 2);
	if (fake.buttons) expect(fake.buttons(target.to), name).toEqual([[]]);
}

const platformsOf = (channels: readonly Channel[]): FakePlatform[] =>
	matrix.platforms.filter(({ channel }) => channels.includes(channel));

function check(line: Line): void {
	const name = `${line.channel}, ${line.fault}`;
	expect(line.wrong, name).toEqual([]);
	expect(line.exact + line.unknown, name).toBe(line.deliveries);
}

/** Kills the process that delivers at each of these points; `killed` is called when it is gone and the next has not begun. */
async function kill(platform: FakePlatform, plan: readonly KillPoint[], killed: () => void): Promise<void> {
	const { channel } = platform;
	const pids = () => {
		const { processes } = matrix.rig.outbound.accounts().find((status) => status.channel === channel) ?? {};
		return [processes?.stream?.pid, processes?.send?.pid].filter((pid) => pid !== undefined);
	};
	const events = watch([platform], matrix.rig.dir);
	watches.set(channel, events);
	/** The processes that were there at the point. */
	const hit = async (point: KillPoint): Promise<readonly number[]> => {
		await until(`${channel}: a process is there`, () => pids().length > 0);
		let struck: number[] | undefined;
		const now = () => {
			struck = pids();
			struck.forEach(strike);
		};
		if (point.after === "start") now();
		else events.arm(point, now);
		await until(`${channel}: ${JSON.stringify(point)}`, () => struck !== undefined);
		return struck ?? [];
	};
	for (const point of plan) {
		let struck: readonly number[] = [];
		// A point between two processes kills neither, and comes again.
		while (struck.length === 0) struck = await hit(point);
		await until(`${channel}: the process is gone`, () => !pids().some((pid) => struck.includes(pid)));
		killed();
	}
	watches.delete(channel);
	events.end();
}

async function deliverThroughKills(platform: FakePlatform, plan: readonly KillPoint[]): Promise<Line> {
	let kills = 0;
	const inTheAir = new Set<string>();
	const collect = () => {
		for (const nonce of underWay(matrix.rig.dir, platform.channel)) inTheAir.add(nonce);
	};
	const killing = kill(platform, plan, () => {
		kills++;
		collect();
	});
	const inDoubt: Doubt = (...record) => {
		// It may be flagged before the kill is noticed here.
		collect();
		return killedUnderWay(inTheAir)(...record);
	};
	const work = { chats: CHATS.killed, more: () => kills < plan.length, inDoubt };
	const [line] = await Promise.all([matrix.deliver(platform, "adapter killed", work), killing]);
	return Object.assign(line, { kills, inTheAir: inTheAir.size });
}

// In a small dose no platform has two of them.
describe("proof: fault matrix", { concurrent: effort < FULL_EFFORT }, () => {
	it(`I7: adapters are killed ${KILLS} times each, at any point, and then deliver as ever`, async () => {
		const found = await Promise.all(
			platformsOf(killed).map(async (platform) => {
				const during = await deliverThroughKills(platform, points.get(platform.channel)!);
				const work = { chats: 1, more: () => false, inDoubt: () => false };
				return { during, after: await matrix.deliver(platform, "after kills", work) };
			}),
		);
		lines.push(...found.flatMap(({ during, after }) => [during, after]));
		for (const { during, after } of found) {
			check(during);
			check(after);
			expect(during.kills, during.channel).toBe(KILLS);
			expect(after.exact, after.channel).toBe(1);
		}
	});

	it("I7: platforms refuse, fail and break connections", async () => {
		const found = await Promise.all(
			platformsOf(failing).map(async (platform) => {
				const rows: Line[] = [];
				for (const kind of faults.get(platform.channel)!) rows.push(await deliverThrough(matrix, platform, kind));
				return rows;
			}),
		);
		lines.push(...found.flat());
		for (const line of found.flat()) check(line);
	});

	it("I7: calls hang", async () => {
		const found = await hanging;
		lines.push(...found);
		for (const line of found) check(line);
	});

	it("I7 A9: a question is there once with its buttons, or flagged, and is settled whatever fails", async () => {
		// Its own faults, on its own platforms.
		const own = await startMatrix({ channels: ["telegram", "slack", "discord", "sms"], time: TIME });
		try {
			await Promise.all(
				own.platforms.map(async (platform) => {
					for (const [nth, kind] of quick.entries()) await askThrough(own, platform, kind, nth + 1);
				}),
			);
		} finally {
			await own.close();
		}
	});
});
