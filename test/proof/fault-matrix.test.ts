/**
 * The fault matrix: every platform against every way in which it or its adapter can fail. What a person sees is the source, exactly once; where
 * the platform cannot tell what became of a message, the delivery is flagged and nothing is repeated. The daemon's kills are in daemon-matrix.test.ts.
 */

import "./compiled.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FakeFault } from "../fakes/fake.ts";
import { strike } from "../nex/outbound/rig.ts";
import type { FakePlatform } from "./fake-platforms.ts";
import { type Line, type Matrix, printTable, startMatrix, underWay } from "./matrix.ts";
import { seededRandom } from "./random.ts";

const KILLS = 30;
/** Answers at the same time. */
const CHATS = 6;
const TOKEN_EVERY_MS = 20;

const random = seededRandom();
const lines: Line[] = [];
let matrix: Matrix;
/** Hanging calls take 30 seconds each, and nothing but time: they hang on platforms of their own meanwhile. */
let elsewhere: Matrix;
let hanging: Promise<Line[]>;

beforeAll(async () => {
	console.log(`fault matrix: NEXUS_SEED=${random.seed}`);
	[matrix, elsewhere] = await Promise.all([startMatrix(), startMatrix()]);
	hanging = Promise.all(elsewhere.platforms.map((platform) => deliverThrough(elsewhere, platform, "hang")));
	// Looked at by its test.
	hanging.catch(() => {});
});

afterAll(async () => {
	printTable(`fault matrix, NEXUS_SEED=${random.seed}`, lines);
	await Promise.all([matrix?.close(), elsewhere?.close()]);
}, 120_000);

/** How many creations and other calls go wrong. A storm refuses whatever comes. */
const FAULTS: Record<
	Exclude<FakeFault["kind"], "slow" | "foreign">,
	{ name: string; creates: number; others: number; any: number }
> = {
	"429": { name: "429 storm", creates: 3, others: 3, any: 12 },
	"5xx": { name: "5xx", creates: 3, others: 3, any: 0 },
	hang: { name: "hanging call", creates: 1, others: 1, any: 0 },
	reset_before: { name: "reset before", creates: 2, others: 3, any: 0 },
	reset_after_accept: { name: "reset after accept", creates: 2, others: 3, any: 0 },
};
type Kind = keyof typeof FAULTS;

async function deliverThrough(where: Matrix, platform: FakePlatform, kind: Kind): Promise<Line> {
	const { name, creates, others, any } = FAULTS[kind];
	const { fake } = platform;
	for (const call of platform.creates) fake.fault({ kind, count: creates, call, ms: 1000 });
	for (const call of platform.others) fake.fault({ kind, count: others, call, ms: 1000 });
	// WhatsApp does not say how long to wait, so every wait is twice the one before.
	if (any > 0) fake.fault({ kind, count: platform.channel === "whatsapp" ? 2 : any, ms: 1000 });
	const line = await where.deliver(platform, name, { chats: CHATS, more: () => false, tokenEveryMs: TOKEN_EVERY_MS });
	fake.fault(undefined);
	return line;
}

/**
 * Deliveries that may be flagged. A refusal says that nothing happened; a broken or hanging creation says nothing, and only platforms that can be
 * asked clear it up. WhatsApp tells of what it took. signal-cli does not explain its 500.
 */
function doubtsMax({ channel, tells }: FakePlatform, kind: Kind): number {
	if (tells || kind === "429") return 0;
	if (kind === "5xx") return channel === "signal" ? FAULTS[kind].creates : 0;
	return kind === "reset_after_accept" && channel === "whatsapp" ? 0 : FAULTS[kind].creates;
}

function check(line: Line, unknownMax: number): void {
	const name = `${line.channel}, ${line.fault}`;
	expect(line.wrong, name).toEqual([]);
	expect(line.unknown, `flagged: ${name}`).toBeLessThanOrEqual(unknownMax);
	expect(line.exact + line.unknown, name).toBe(line.deliveries);
	expect(line.exact, `delivered: ${name}`).toBeGreaterThan(0);
	// What it took it tells of.
	if (line.channel === "whatsapp") expect(line.unknownShown, name).toBe(0);
}

/** Kills the process that delivers, again and again; `killed` is called when it is gone and the next has not begun. */
async function kill(platform: FakePlatform, over: () => boolean, killed: () => void): Promise<void> {
	const { fake, channel } = platform;
	const running = () => {
		const account = matrix.rig.outbound.accounts().find((status) => status.channel === channel);
		const { stream, send } = account?.processes ?? {};
		return (account?.deliveries ?? 0) > 0 ? (stream?.pid ?? send?.pid) : undefined;
	};
	while (!over()) {
		const pid = running();
		await sleep(pid === undefined ? 5 : 0);
		if (pid === undefined) continue;
		await moment(() => fake.calls.length, over);
		if (running() !== pid) continue;
		strike(pid);
		while (running() === pid) await sleep(1);
		killed();
	}
}

/** One of five kills may come while the process starts; the others come once it works: right after a call, or some time later. */
async function moment(calls: () => number, over: () => boolean): Promise<void> {
	const way = random.between(1, 5);
	if (way === 1) return sleep(random.between(0, 400));
	const before = calls();
	const limit = Date.now() + 10_000;
	while (calls() === before && Date.now() < limit && !over()) await sleep(1);
	await sleep(way === 2 ? random.between(0, 15) : random.between(15, 800));
}

describe("proof: fault matrix", () => {
	it(`I7: every adapter is killed ${KILLS} times, at any point`, { timeout: 900_000 }, async () => {
		const killed = async (platform: FakePlatform) => {
			const kills = { count: 0 };
			const inTheAir = new Set<string>();
			let delivered = false;
			const over = () => delivered || kills.count >= KILLS;
			const killing = kill(platform, over, () => {
				kills.count++;
				for (const nonce of underWay(matrix.rig.dir, platform.channel)) inTheAir.add(nonce);
			});
			const work = { chats: 3, more: () => !over(), tokenEveryMs: TOKEN_EVERY_MS };
			const line = await matrix.deliver(platform, "adapter killed", work);
			delivered = true;
			await killing;
			return Object.assign(line, { kills: kills.count, inTheAir: inTheAir.size });
		};
		const found = await Promise.all(matrix.platforms.map(killed));
		lines.push(...found);
		for (const [n, line] of found.entries()) {
			check(line, matrix.platforms[n]!.tells ? 0 : line.inTheAir);
			expect(line.kills, line.channel).toBeGreaterThanOrEqual(KILLS);
		}
	});

	it.each(["429", "5xx", "reset_before", "reset_after_accept"] as const)(
		"I7: %s",
		{ timeout: 300_000 },
		async (kind) => {
			const found = await Promise.all(matrix.platforms.map((platform) => deliverThrough(matrix, platform, kind)));
			lines.push(...found);
			for (const [n, line] of found.entries()) check(line, doubtsMax(matrix.platforms[n]!, kind));
		},
	);

	it("I7: hanging calls", { timeout: 300_000 }, async () => {
		const found = await hanging;
		lines.push(...found);
		for (const [n, line] of found.entries()) check(line, doubtsMax(elsewhere.platforms[n]!, "hang"));
	});
});
