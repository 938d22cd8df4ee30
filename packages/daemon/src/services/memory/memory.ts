/** Memory banks on the store: what tools and the API do with them, within the configured limits. */

import { NexusError, newId, Refused } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import type { Bus } from "../../bus/bus.ts";
import type { MemoryPort } from "../../engine/engine.ts";
import { checkpointWrites } from "../../ledger/checkpoints/port.ts";
import type { MemoryRows } from "./rows.ts";
import { memoryWrites } from "./rows.ts";

/** The `memory:` section of `nexus.yaml`. */
export interface MemoryConfig {
	/** Whether agents are offered the tools. */
	enabled?: boolean;
	itemsMax?: number;
	itemsTotalMax?: number;
	charsMax?: number;
	recallItemsMax?: number;
}

export const MEMORY_DEFAULTS = {
	enabled: false,
	itemsMax: 1000,
	itemsTotalMax: 100_000,
	charsMax: 2000,
	recallItemsMax: 8,
} as const satisfies Required<MemoryConfig>;

export interface MemoryDeps {
	bus: Pick<Bus, "write">;
	rows: { memory: MemoryRows };
	config?: MemoryConfig | undefined;
	clock: Clock;
}

export function createMemory({ bus, rows, config, clock }: MemoryDeps): MemoryPort {
	const { itemsMax, itemsTotalMax, charsMax } = withDefaults(MEMORY_DEFAULTS, config);
	const { memory } = rows;
	return {
		async add(bank, text, from) {
			if (text.length > charsMax)
				throw new NexusError("too_large", `a note has at most ${charsMax} characters, not ${text.length}`);
			const known = await memory.same(bank, text);
			if (known) return { id: known.id, isNew: false };
			const at = clock.now();
			const id = newId("mem", at);
			const item = { id, bank, text, provenance: { at, ...from } };
			await bus.write([memoryWrites.add(item, { itemsMax, itemsTotalMax })]).catch(refusedAsFull);
			return { id, isNew: true };
		},
		get: async (id) => memory.get(id),
		search: async (banks, words, limit) => memory.search(words, { banks, limit }),
		list: async (banks, limit) => memory.list({ banks, limit }),
		async forget(id, from) {
			const item = await memory.get(id);
			if (!item) throw new NexusError("not_found", `there is no memory ${id}`);
			// A checkpoint that quotes the note names its id: that run cannot be continued any more.
			await bus.write([memoryWrites.forget(item, { at: clock.now(), ...from }), checkpointWrites.removeNaming(id)]);
		},
	};
}

/** The store refuses a further note for nothing but its limits; for a caller that is a quota, and not a conflict with another one. */
function refusedAsFull(cause: unknown): never {
	if (cause instanceof Refused && cause.refusal === "conflict")
		throw new NexusError("busy", cause.message, { cause, reason: "QUOTA_EXCEEDED" });
	throw cause;
}
