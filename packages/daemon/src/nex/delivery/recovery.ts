/** Takes over the unfinished deliveries of dead daemons: recent ones are finished, older ones are marked stale and logged. */

import { decodeFrame, Refused } from "@nexus-stream/protocol";
import { backoffMs } from "@nexus-stream/protocol/retry";
import { type Bus, orphans } from "../../bus/bus.ts";
import { type Delivery, deliveryWrites } from "../../ledger/deliveries/port.ts";
import { endOrphanedProcesses } from "../accounts/account-files.ts";
import type { NoteKeeping } from "../accounts/kept-notes.ts";
import type { DeliveryMeans } from "./delivery-context.ts";
import { orphanedTexts, PATIENCE_MS, type PlanDeps, sealOrphan } from "./planned-deliveries.ts";

export interface DeliveryRecoveryDeps
	extends Omit<PlanDeps, "accounts" | "byRun" | "signal">,
		Pick<DeliveryMeans, "clock" | "log"> {
	notes: NoteKeeping;
	dataDir: string;
	/** Work that failed and is to be tried again, by its key. */
	retrying: Set<string>;
	/** This process stops: the next one takes over the remainder. */
	closing(): boolean;
}

/** Once, at the start: only one daemon uses a data directory at a time, so these processes belong to a dead one. */
export function endLeftProcesses({ dataDir, log }: Pick<DeliveryRecoveryDeps, "dataDir" | "log">): void {
	const pids = endOrphanedProcesses(dataDir);
	if (pids.length > 0) log.warn({ pids }, "ended adapter processes of a daemon that was killed");
}

/** Resolves after the first try of everything: a store that refuses commits does not prevent the daemon from starting. Can be repeated. */
export async function recover(deps: DeliveryRecoveryDeps): Promise<void> {
	const { bus, deliveries } = deps;
	// First, because the Bus answers only after it has joined the store: from then on earlier daemons count as dead.
	await untilDone(deps, "texts", async () => {
		for (const name of await orphanedTexts(bus)) await untilDone(deps, name, () => sealOrphan(bus, name));
	});
	await untilDone(deps, "deliveries", async () => {
		for (const portion of orphans.portions(idsOf(await deliveries.orphaned()), bus)) await takeOver(deps, portion);
	});
}

const idsOf = (rows: readonly Delivery[]): string[] => rows.map(({ id }) => id);

/** Retries failed work with a growing back-off. Resolves after the first try, and at once for work that waits to be tried again. */
async function untilDone(
	deps: DeliveryRecoveryDeps,
	key: string,
	work: () => Promise<void>,
	failures = 0,
): Promise<void> {
	const { clock, limits, log, bus, retrying } = deps;
	if (failures === 0 && retrying.has(key)) return;
	try {
		await work();
		retrying.delete(key);
	} catch (cause) {
		retrying.add(key);
		if (deps.closing() || bus.fenced.aborted) return;
		const againMs = backoffMs({ firstMs: limits.retryMs, maxMs: limits.retryMsMax }, failures);
		log.error({ err: cause, againMs }, "unfinished deliveries could not be taken over yet");
		clock.after(againMs, () => {
			if (!deps.closing()) void untilDone(deps, key, work, failures + 1);
		});
	}
}

/** Each delivery is retried separately, so that a failing one does not block the others. */
async function takeOver(deps: DeliveryRecoveryDeps, ids: readonly string[]): Promise<void> {
	const unstarted = ids.filter((id) => !deps.runner.live(id));
	const adopted = new Map(unstarted.map((id) => [id, adopt(deps, id)]));
	await Promise.allSettled(adopted.values());
	// From here on the daemon that owned them can record no more notes.
	const caughtUp = new Map<string, Promise<void>>();
	for (const id of unstarted) {
		await untilDone(deps, id, async () => {
			const row = await once(adopted, id, () => adopt(deps, id));
			if (!row) return;
			const { channel, account } = row;
			await once(caughtUp, JSON.stringify([channel, account]), () => deps.notes.catchUp({ channel, account }));
			await resume(deps, row);
		});
	}
}

/** Runs the work once per key; failed work runs again on the next call. */
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

/** Becomes the owner of a delivery and reads it. Undefined when another daemon was faster. */
async function adopt({ write, deliveries }: DeliveryRecoveryDeps, id: string): Promise<Delivery | undefined> {
	try {
		await write([deliveryWrites.adopt([id])], PATIENCE_MS);
		return await deliveries.get(id);
	} catch (cause) {
		if (cause instanceof Refused && cause.refusal === "conflict") return undefined;
		throw cause;
	}
}

async function resume({ bus, write, runner, limits, stamp, log }: DeliveryRecoveryDeps, row: Delivery): Promise<void> {
	const stale = await staleness(bus, row, stamp(), limits.staleMs);
	if (stale === undefined) return runner.launch(row);
	log.warn({ delivery: row.id, runId: row.runId, channel: row.channel, account: row.account }, stale);
	await write([deliveryWrites.finish(row.id, "stale", stale, stamp())], PATIENCE_MS);
}

/** Why a delivery is too old to be finished; undefined when it is to be finished. */
export async function staleness(bus: Bus, row: Delivery, now: number, staleMs: number): Promise<string | undefined> {
	const info = await bus.describe(row.runId);
	if (!info) return `The log of ${row.runId} is no longer kept.`;
	if (info.sealedAt === undefined) return undefined;
	// The end of a run that recovery sealed does not show when the run was alive; the delivery's progress does.
	const ended = (await endedByRecovery(bus, row.runId, info.head)) ? 0 : info.sealedAt;
	const age = now - Math.max(ended, row.updatedAt);
	if (age <= staleMs) return undefined;
	return `The answer is ${Math.round(age / 60_000)} minutes old; the remainder was not sent. Deliver the run to the same chat again to send it.`;
}

async function endedByRecovery(bus: Bus, log: string, head: number): Promise<boolean> {
	if (head === 0) return false;
	const cursor = await bus.cursor({ log }, head - 1);
	try {
		const last = (await cursor.next())?.records.at(-1);
		const frame = last === undefined ? undefined : decodeFrame(last);
		return frame?.type === "stream.end" && frame.synthetic === true;
	} catch {
		// The end is damaged; the delivery reads the whole answer and reports the damage.
		return false;
	} finally {
		cursor.close();
	}
}
