import { expect, test } from "vitest";
import { createBus } from "../../../packages/daemon/src/bus/bus.ts";
import type { Commit, Storage } from "../../../packages/daemon/src/bus/storage.ts";
import { writeTextLog } from "../../../packages/daemon/src/nex/delivery/planned-deliveries.ts";
import { framesOf, verified } from "../../broker/rig.ts";
import { memoryStorage } from "../../bus/memory.ts";
import { manualClock } from "../../clock.ts";
import { quiet } from "../../quiet.ts";

test.each([
	["short", 1],
	["é".repeat(20_000), 4],
])(
	"P1.11, P1.14: a separate text states its number of chunks, and a single one is complete in itself",
	async (text, count) => {
		const bus = createBus({ ...quiet, storage: memoryStorage() });
		const frames = await framesOf(bus, await writeTextLog(bus, text, Date.now));
		await bus.close();
		expect(verified(frames)).toBeUndefined();
		expect(frames[0]).toMatchObject({ type: "stream.begin", expected_chunks: count });
		const chunks = frames.filter((frame) => frame.type === "stream.chunk");
		expect(chunks.map((chunk) => chunk.payload).join("")).toBe(text);
		expect(chunks.map((chunk) => chunk.is_partial)).toEqual(chunks.map(() => count > 1));
	},
);

test.each([
	["begun", 0],
	["sealed", 1],
])("I9: a text that cannot be %s is refused after a second, not after the store's own patience", async (_, taken) => {
	const clock = manualClock();
	const inner = memoryStorage();
	const commit = inner.commit.bind(inner);
	let commits = 0;
	const storage: Storage = Object.assign(inner, {
		commit(work: Commit) {
			if (commits++ < taken) return commit(work);
			throw new Error("database or disk is full");
		},
	});
	const bus = createBus({ ...quiet, storage, clock });
	const began = clock.now();
	let over = false;
	const writing = writeTextLog(bus, "hello", () => clock.now()).finally(() => {
		over = true;
	});
	const refused = expect(writing).rejects.toMatchObject({ code: "unavailable" });
	while (!over) {
		await new Promise((resolve) => setImmediate(resolve));
		clock.advance(100);
	}
	await refused;
	expect(clock.now() - began).toBeLessThan(2000);
});
