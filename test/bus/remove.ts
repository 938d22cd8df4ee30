/** Steps of tests with logs: append and read, let time pass, and aim retention at one log. */

import { expect } from "vitest";
import type { Bus, LogWriter } from "../../packages/daemon/src/bus/bus.ts";
import type { Storage } from "../../packages/daemon/src/bus/storage.ts";
import type { ManualClock } from "../clock.ts";

/** Removes the oldest finished log until this one is gone. */
export async function removeUpTo(bus: Bus, log: string): Promise<void> {
	while (await bus.describe(log)) {
		const logs = await bus.list({ live: false });
		const bytes = logs.reduce((sum, info) => sum + info.bytes, 0);
		if ((await bus.retain({ totalBytesMax: bytes - 1 })) === 0) throw new Error(`${log} cannot be removed`);
	}
}

/** Appends a record, and waits until it is durable. */
export async function written(writer: LogWriter, record: string): Promise<void> {
	writer.append(record);
	await writer.flushed();
}

/** The records that are visible after an offset. */
export async function readAll(bus: Bus, log: string, after = 0): Promise<string[]> {
	const cursor = await bus.cursor({ log }, after);
	const records: string[] = [];
	for (let batch = await cursor.next(); batch; batch = await cursor.next()) {
		expect(batch.first).toBe(after + records.length + 1);
		records.push(...batch.records);
	}
	cursor.close();
	return records;
}

/** Declares all nodes of the store dead, as a node that joins for it; says which. */
export async function expireAll(storage: Storage): Promise<readonly number[]> {
	const { node } = await storage.join("another", false);
	const expired = await storage.expire(node, 0);
	await storage.leave(node);
	return expired;
}

/** Calls to a store in another process that are not answered yet. */
const underWay = new Set<Promise<unknown>>();

/** Makes `turn` wait for the answer of a store that cannot give it within a turn of the loop. */
export function answered<T>(call: Promise<T>): Promise<T> {
	const settled = call.then(
		() => void underWay.delete(settled),
		() => void underWay.delete(settled),
	);
	underWay.add(settled);
	return call;
}

/** A turn of the loop, and as many as the stores need to answer. */
export async function turn(): Promise<void> {
	do {
		await new Promise<void>((resolve) => setImmediate(resolve));
		await Promise.all(underWay);
	} while (underWay.size > 0);
}

/** Lets so many steps of time pass, with a turn of the loop after each. */
export async function steps(clock: ManualClock, count: number, ms: number): Promise<void> {
	for (let n = 0; n < count; n++) {
		clock.advance(ms);
		await turn();
	}
}
