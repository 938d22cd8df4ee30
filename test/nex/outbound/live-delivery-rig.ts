/** One delivery with a separate store, as the parts under test track it. */

import { onTestFinished } from "vitest";
import type { Bus } from "../../../packages/daemon/src/bus/bus.ts";
import { type Delivery, deliveryWrites } from "../../../packages/daemon/src/ledger/deliveries/port.ts";
import { LiveDelivery } from "../../../packages/daemon/src/nex/delivery/live-delivery.ts";
import { DeliveryRecord, Records } from "../../../packages/daemon/src/nex/delivery/record.ts";
import type { Clock } from "../../../packages/protocol/src/clock.ts";
import { type Log, silentLog } from "../../../packages/protocol/src/log.ts";
import { manualClock } from "../../clock.ts";
import { openPlainStore, type TestStore } from "../../store.ts";

interface TrackedRig {
	live: LiveDelivery;
	records: Records;
	bus: Bus;
	/** As it is on record. */
	stored(): Delivery;
	/** The same delivery, as the next process finds it. */
	again(): LiveDelivery;
}

export interface TrackedOptions {
	clock?: Clock;
	log?: Log;
	store?: TestStore;
	runId?: string;
	/** Stands before the Bus's. */
	write?: (write: Bus["write"]) => Bus["write"];
}

export async function trackDelivery(options: TrackedOptions = {}): Promise<TrackedRig> {
	const { clock = manualClock(1000), log = silentLog, store = openPlainStore(":memory:"), runId = "r" } = options;
	const { bus, stored } = store;
	if (!options.store) onTestFinished(() => store.close());
	const names = { id: "d", runId, channel: "x", account: "a", target: { to: "c" }, options: {} };
	await bus.write([deliveryWrites.open({ ...names, createdAt: clock.now() })]);
	const plain: Bus["write"] = (writes) => bus.write(writes);
	const write = options.write?.(plain) ?? plain;
	const records = new Records({ committer: { write, fenced: bus.fenced }, clock, log });
	const track = () => new LiveDelivery(stored.deliveries.get("d")!, new DeliveryRecord("d", records), clock);
	return { live: track(), records, bus, stored: () => stored.deliveries.get("d")!, again: track };
}
