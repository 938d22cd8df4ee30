/** The rules of the Bus on every storage: alone, behind a bad connection, and with two Buses on one store. */

import { expect, it } from "vitest";
import { createBus, follow } from "../../packages/daemon/src/bus/bus.ts";
import { atEffort } from "../effort.ts";
import { hasPostgres, MISSING } from "../postgres-server.ts";
import { quiet } from "../quiet.ts";
import { seed } from "../seed.ts";
import { busContract, type StorageUnderTest } from "./contract.ts";
import { faulty } from "./faulty.ts";
import { followContract } from "./following.ts";
import { memoryStorage } from "./memory.ts";
import { note, noted } from "./notes.ts";
import { written } from "./remove.ts";
import { sharedContract } from "./shared.ts";
import { inMemory, inPostgres, inSqlite } from "./stores.ts";

const STORES: [string, () => StorageUnderTest][] = [
	["memory", inMemory],
	["SQLite", () => inSqlite("process")],
	...(hasPostgres ? [["PostgreSQL", inPostgres] as [string, () => StorageUnderTest]] : []),
];

for (const [name, make] of STORES) {
	busContract(name, make);
	busContract(`${name} behind a bad connection`, () => {
		const store = make();
		return { ...store, patient: false, open: (now) => faulty(store.open(now), seed) };
	});
	sharedContract(name, make);
	followContract(name, make);
}
it.skipIf(hasPostgres)(`PostgreSQL: ${MISSING}`, () => {});
busContract("SQLite, durability power", () => inSqlite("power"));

it("ST22, ST27: a reader of a chain misses nothing, whatever its connection does", async () => {
	// The first three once hid the end of a link from its reader.
	const seeds = [278, 406, 467, ...Array.from({ length: atEffort(300, 30) }, (_, n) => seed + n)];
	for (const one of seeds) {
		const bus = createBus({ ...quiet, storage: faulty(memoryStorage(), one), limits: { commitRetryMs: 0 } });
		const read = (async () => {
			const records: string[] = [];
			for await (const batch of follow(await bus.cursor({ chain: "session:s" }, 0))) {
				records.push(...batch.records);
				if (records.length >= 9) break;
			}
			return records;
		})();
		for (const log of ["a", "b", "c"]) {
			const writer = await bus.create({ log, kind: "run", chain: "session:s" }, [`${log} 1`]);
			await written(writer, `${log} 2`);
			await writer.seal([`${log} 3`]);
		}
		expect(await read, `seed ${one}`).toEqual(["a", "b", "c"].flatMap((log) => [1, 2, 3].map((n) => `${log} ${n}`)));
		await bus.close();
	}
});

it.each(STORES)(
	"ST22, ST27, I4: on %s a reader in another daemon misses nothing through a take-over, however bad the connections",
	async (_, make) => {
		for (let one = seed; one < seed + atEffort(40, 6); one++) {
			const store = make();
			const limits = { commitRetryMs: 0, lookMs: 2, watchMs: 5 };
			const join = (n: number) =>
				createBus({ ...quiet, storage: faulty(store.open(Date.now), one + n), shared: true, limits });
			const [first, reader, third] = [join(1), join(2), join(3)];
			const records: string[] = [];
			const read = (async () => {
				for await (const batch of follow(await reader.cursor({ chain: "session:s" }, 0))) {
					expect(batch.first, `seed ${one}`).toBe(records.length + 1);
					records.push(...batch.records);
					if (records.length >= 9) break;
				}
			})();
			const writer = await first.create({ log: "a", kind: "run", chain: "session:s" }, ["1"]);
			for (const record of ["2", "3", "4"]) await written(writer, record);
			await third.expire(0);
			const taken = await third.reopen("a");
			for (const record of ["5", "6"]) await written(taken, record);
			await taken.seal(["7"]);
			const next = await third.create({ log: "b", kind: "run", chain: "session:s" }, ["8"]);
			await next.seal(["9"]);
			await read;
			expect(records, `seed ${one}`).toEqual(Array.from({ length: 9 }, (_, n) => `${n + 1}`));
			for (const bus of [first, reader, third]) await bus.close();
			await store.dispose();
		}
	},
);

it.each(STORES)(
	"ST17, ST27: on %s a run has ended exactly when its note is there, for every reader and however bad the connection",
	async (_, make) => {
		const store = make();
		const limits = { commitRetryMs: 0 };
		const join = (n: number) =>
			createBus({ ...quiet, storage: faulty(store.open(Date.now), seed + n), shared: true, limits });
		const [writing, asking] = [join(1), join(2)];
		let written = false;
		const writes = (async () => {
			for (let n = 0; n < atEffort(200, 30); n++) {
				const writer = await writing.create({ log: `run ${n}`, kind: "run", chain: "session:s" }, ["begin"]);
				await writer.seal(["end"], [note.add(`run ${n}`)]);
			}
			written = true;
		})();
		const seen = { live: 0, sealed: 0 };
		while (!written) {
			for (const bus of [writing, asking]) {
				const { newest, head, answer } = await bus.describeChainWith("session:s", noted.all());
				if (!newest) continue;
				const isSealed = newest.sealedAt !== undefined;
				expect([answer.at(-1) === newest.log, head]).toEqual([isSealed, newest.base + (isSealed ? 2 : 1)]);
				seen[isSealed ? "sealed" : "live"]++;
			}
		}
		await writes;
		expect(Math.min(seen.live, seen.sealed)).toBeGreaterThan(0);
		for (const bus of [writing, asking]) await bus.close();
		await store.dispose();
	},
);
