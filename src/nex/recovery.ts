/** What dead processes owe: taken over, and finished once if it is fresh, otherwise marked and told to the operator. */

import type { Bus } from "../bus/bus.ts";
import { type Deliveries, type Delivery, deliveryWrites } from "../ledger/ledger.ts";
import { decodeFrame, Refused } from "../protocol/protocol.ts";
import type { Log } from "../std/log.ts";
import type { Carrier } from "./carrier.ts";
import type { NoteKeeping } from "./supervise/kept-notes.ts";
import { endLeftProcesses } from "./supervise/places.ts";
import { sealLeftTexts } from "./text-log.ts";

export interface RecoveryDeps {
	bus: Bus;
	write: Bus["write"];
	deliveries: Deliveries;
	carrier: Carrier;
	notes: NoteKeeping;
	dataDir: string;
	limits: { staleMs: number };
	stamp: () => number;
	log: Log;
}

export async function recover(deps: RecoveryDeps): Promise<void> {
	const { bus, deliveries, dataDir, log, carrier } = deps;
	// They were started from this data directory, which one daemon has at a time.
	const left = endLeftProcesses(dataDir);
	if (left.length > 0) log.warn({ pids: left }, "ended adapter processes of a daemon that was killed");
	// First, because the Bus answers once it takes part in the store: only then do earlier starts count as dead.
	await sealLeftTexts(bus);
	const rows = (await deliveries.left()).filter(({ id }) => !carrier.tracked(id));
	const tried = await Promise.all(rows.map(({ id }) => adopt(deps, id)));
	const adopted = tried.filter((row) => row !== undefined);
	// From here on its daemon can note nothing more.
	const accounts = new Map(adopted.map(({ channel, account }) => [`${channel}/${account}`, { channel, account }]));
	await Promise.all([...accounts.values()].map((owner) => deps.notes.catchUp(owner)));
	for (const row of adopted) await goOn(deps, row);
}

/** As it is once it is ours. Undefined when another daemon was first. */
async function adopt({ write, deliveries }: RecoveryDeps, id: string): Promise<Delivery | undefined> {
	try {
		await write([deliveryWrites.adopt([id])]);
		return await deliveries.get(id);
	} catch (cause) {
		if (cause instanceof Refused && cause.refusal === "conflict") return undefined;
		throw cause;
	}
}

async function goOn({ bus, write, carrier, limits, stamp, log }: RecoveryDeps, row: Delivery): Promise<void> {
	const stale = await staleness(bus, row, stamp(), limits.staleMs);
	if (stale === undefined) return carrier.launch(row);
	log.warn({ delivery: row.id, runId: row.runId, channel: row.channel, account: row.account }, stale);
	await write([deliveryWrites.finish(row.id, "stale", stale, stamp())]);
}

/** Why a delivery is not finished any more; undefined when it is to be. */
export async function staleness(bus: Bus, row: Delivery, now: number, staleMs: number): Promise<string | undefined> {
	const info = await bus.describe(row.runId);
	if (!info) return `The log of ${row.runId} is no longer kept.`;
	if (info.sealedAt === undefined) return undefined;
	// A run that recovery ended says nothing about when it was alive; the delivery's own progress does.
	const ended = (await endedByRecovery(bus, row.runId, info.head)) ? 0 : info.sealedAt;
	const age = now - Math.max(ended, row.updatedAt);
	if (age <= staleMs) return undefined;
	return `The answer is ${Math.round(age / 60_000)} minutes old; what was owed was not sent. Delivering the run there again sends it.`;
}

async function endedByRecovery(bus: Bus, log: string, head: number): Promise<boolean> {
	if (head === 0) return false;
	const cursor = await bus.cursor({ log }, head - 1);
	try {
		const last = (await cursor.next())?.records.at(-1);
		const frame = last === undefined ? undefined : decodeFrame(last);
		return frame?.type === "stream.end" && frame.synthetic === true;
	} catch {
		// A damaged end says nothing; whoever delivers the answer reads it all, and tells of the damage.
		return false;
	} finally {
		cursor.close();
	}
}
