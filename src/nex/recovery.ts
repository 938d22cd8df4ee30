/** What an earlier process owes: finished once if it is fresh, otherwise marked and told to the operator. */

import type { Bus } from "../bus/bus.ts";
import type { Delivery } from "../ledger/ledger.ts";
import { decodeFrame } from "../protocol/protocol.ts";

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
