/** What dead processes owe: taken over, and finished once if it is fresh, otherwise marked and told to the operator. */

import { decodeFrame, Refused } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Bus } from "../../bus/bus.ts";
import { type Deliveries, type Delivery, deliveryWrites } from "../../ledger/ledger.ts";
import { endOrphanedProcesses } from "../accounts/account-files.ts";
import type { NoteKeeping } from "../accounts/kept-notes.ts";
import type { DeliveryRunner } from "./delivery-runner.ts";
import { orphanedTexts, PATIENCE_MS, sealOrphan } from "./text-log.ts";

export interface DeliveryRecoveryDeps {
	bus: Bus;
	write: Bus["write"];
	deliveries: Deliveries;
	runner: DeliveryRunner;
	notes: NoteKeeping;
	dataDir: string;
	limits: { staleMs: number; retryMs: number; retryMsMax: number };
	clock: Clock;
	stamp: () => number;
	/** This process stops: what is left is the next one's. */
	closing(): boolean;
	log: Log;
}

/** Resolves when everything was tried once: a store that refuses commits does not keep the daemon from starting. */
export async function recover(deps: DeliveryRecoveryDeps): Promise<void> {
	const { bus, deliveries, dataDir, log } = deps;
	// They were started from this data directory, which one daemon has at a time.
	const left = endOrphanedProcesses(dataDir);
	if (left.length > 0) log.warn({ pids: left }, "ended adapter processes of a daemon that was killed");
	// First, because the Bus answers once it takes part in the store: only then do earlier starts count as dead.
	await untilDone(deps, async () => {
		for (const name of await orphanedTexts(bus)) await untilDone(deps, () => sealOrphan(bus, name));
	});
	await untilDone(deps, async () => takeOver(deps, idsOf(await deliveries.orphaned())));
}

const idsOf = (rows: readonly Delivery[]): string[] => rows.map(({ id }) => id);

/** Tries again, ever later, what fails. Resolves after the first try. */
async function untilDone(deps: DeliveryRecoveryDeps, work: () => Promise<void>, tries = 0): Promise<void> {
	const { clock, limits, log, bus } = deps;
	try {
		await work();
	} catch (cause) {
		if (deps.closing() || bus.fenced.aborted) return;
		const againMs = Math.min(limits.retryMs * 2 ** tries, limits.retryMsMax);
		log.error({ err: cause, againMs }, "what is owed could not be taken over yet");
		clock.after(againMs, () => {
			if (!deps.closing()) void untilDone(deps, work, tries + 1);
		});
	}
}

/** One that fails is tried again by itself: it does not hold up the others. */
async function takeOver(deps: DeliveryRecoveryDeps, ids: readonly string[]): Promise<void> {
	const left = ids.filter((id) => !deps.runner.live(id));
	const adopted = new Map(left.map((id) => [id, adopt(deps, id)]));
	await Promise.allSettled(adopted.values());
	// From here on its daemon can note nothing more.
	const caughtUp = new Map<string, Promise<void>>();
	for (const id of left) {
		await untilDone(deps, async () => {
			const row = await once(adopted, id, () => adopt(deps, id));
			if (!row) return;
			const { channel, account } = row;
			await once(caughtUp, JSON.stringify([channel, account]), () => deps.notes.catchUp({ channel, account }));
			await goOn(deps, row);
		});
	}
}

/** What was done under this key already; what failed is done again the next time. */
async function once<T>(done: Map<string, Promise<T>>, key: string, work: () => Promise<T>): Promise<T> {
	const result = done.get(key) ?? work();
	done.set(key, result);
	try {
		return await result;
	} catch (cause) {
		done.delete(key);
		throw cause;
	}
}

/** As it is once it is ours. Undefined when another daemon was first. */
async function adopt({ write, deliveries }: DeliveryRecoveryDeps, id: string): Promise<Delivery | undefined> {
	try {
		await write([deliveryWrites.adopt([id])], PATIENCE_MS);
		return await deliveries.get(id);
	} catch (cause) {
		if (cause instanceof Refused && cause.refusal === "conflict") return undefined;
		throw cause;
	}
}

async function goOn({ bus, write, runner, limits, stamp, log }: DeliveryRecoveryDeps, row: Delivery): Promise<void> {
	const stale = await staleness(bus, row, stamp(), limits.staleMs);
	if (stale === undefined) return runner.launch(row);
	log.warn({ delivery: row.id, runId: row.runId, channel: row.channel, account: row.account }, stale);
	await write([deliveryWrites.finish(row.id, "stale", stale, stamp())], PATIENCE_MS);
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
