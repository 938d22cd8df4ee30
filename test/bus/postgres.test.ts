/** The Bus on PostgreSQL where it differs from an embedded store: lost connections, commits side by side, a store that went back. */

import { describe, expect, it, onTestFinished } from "vitest";
import { type Bus, createBus, follow } from "../../packages/daemon/src/bus/bus.ts";
import {
	migrateBusDatabase,
	openBusDatabase,
	postgresStorage,
} from "../../packages/daemon/src/bus/postgres/postgres.ts";
import { COMMIT } from "../../packages/daemon/src/bus/postgres/schema.ts";
import { Batch } from "../../packages/daemon/src/bus/reading/batch.ts";
import {
	type LogChanges,
	type LogWrite,
	OutcomeUnknown,
	type Storage,
	type Unit,
} from "../../packages/daemon/src/bus/storage.ts";
import type { PgStatement, Postgres } from "../../packages/daemon/src/std/postgres/postgres.ts";
import { databaseForTest, type TestDatabase } from "../postgres.ts";
import { asked, hasPostgres, startPostgres } from "../postgres-server.ts";
import { quiet } from "../quiet.ts";
import { until } from "../until.ts";
import { answerNotes, note, noteSteps } from "./notes.ts";
import { readAll, written } from "./remove.ts";

function storageAt(url: string): { storage: Storage; postgres: Postgres } {
	const postgres = openBusDatabase({ ...quiet, url, readsMax: 2, random: Math.random });
	onTestFinished(() => postgres.close());
	return { postgres, storage: postgresStorage({ postgres, stepsOf: noteSteps, answer: answerNotes, log: quiet.log }) };
}

async function fresh(): Promise<TestDatabase> {
	const database = await databaseForTest();
	onTestFinished(() => database.drop());
	return database;
}

const adds = (text: string): Unit => ({ writes: [note.add(text)], log: undefined });
const notesIn = async ({ query }: TestDatabase) =>
	(await query("SELECT text FROM note ORDER BY id")).map(({ text }) => text);

/** Holds a row until the test lets go of it. */
async function holding(database: TestDatabase, statement: string) {
	await database.query(`BEGIN; ${statement}`);
	return { release: () => database.query("ROLLBACK") };
}

const waiting = (url: string) =>
	asked(
		url,
		`SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name = 'nexus'`,
	);

describe.skipIf(!hasPostgres)("Bus on PostgreSQL", () => {
	it("ST1: a commit whose backend ends is unknown, and applied once when it is tried again", async () => {
		const database = await fresh();
		const { storage } = storageAt(database.url);
		const { node } = await storage.join("one", false);
		const held = await holding(database, "INSERT INTO note (text) VALUES ('b')");
		const units = [adds("a"), adds("b")];
		const lost = (async () => storage.commit({ node, n: 1, again: false, units }))().catch((cause: unknown) => cause);
		await until("the commit waits", async () => (await waiting(database.url)).length > 0);
		const [backend] = await waiting(database.url);
		await asked(database.url, `SELECT pg_terminate_backend(${Number(backend!.pid)})`);
		expect(await lost).toBeInstanceOf(OutcomeUnknown);
		await held.release();
		const made = await storage.commit({ node, n: 1, again: true, units });
		expect(made.outcomes.size).toBe(0);
		expect(await storage.commit({ node, n: 1, again: true, units })).toEqual(made);
		expect(await notesIn(database)).toEqual(["a", "b"]);
	});

	it("ST1: what was applied before the node was declared dead is still known afterwards", async () => {
		const database = await fresh();
		const { storage } = storageAt(database.url);
		const { node } = await storage.join("one", false);
		const commit = { node, n: 1, units: [adds("a"), { writes: [note.refuse("no")], log: undefined }] };
		const made = await storage.commit({ ...commit, again: false });
		expect(made.outcomes.get(1)).toMatchObject({ refused: { refusal: "conflict", message: "no" } });
		await storage.leave(node);
		expect(await storage.commit({ ...commit, again: true })).toMatchObject({ now: made.now, outcomes: made.outcomes });
		const next = await storage.commit({ node, n: 2, again: true, units: [adds("b")] });
		expect(next.outcomes.get(0)).toMatchObject({ refused: { refusal: "fenced" } });
		expect(await notesIn(database)).toEqual(["a"]);
	});

	it("ST19: who declares a node dead waits for its commit under way, and no commit comes after it", async () => {
		const database = await fresh();
		const [one, two] = [storageAt(database.url).storage, storageAt(database.url).storage];
		const { node } = await one.join("one", false);
		const held = await holding(database, "INSERT INTO note (text) VALUES ('a')");
		const commit = one.commit({ node, n: 1, again: false, units: [adds("a")] });
		await until("the commit waits", async () => (await waiting(database.url)).length > 0);
		let isDead = false;
		const dead = Promise.resolve(two.leave(node)).then(() => (isDead = true));
		await until("both wait", async () => (await waiting(database.url)).length > 1);
		expect(isDead).toBe(false);
		await held.release();
		expect((await commit).outcomes.size).toBe(0);
		await dead;
		const late = await one.commit({ node, n: 2, again: false, units: [adds("b")] });
		expect(late.outcomes.get(0)).toMatchObject({ refused: { refusal: "fenced" } });
	});

	it("two daemons' commits do not wait for each other, nor for a renewal, and hold no notification", async () => {
		const database = await fresh();
		const [slow, quick] = [storageAt(database.url), storageAt(database.url)];
		const sent: PgStatement[] = [];
		const run = quick.postgres.commits.run.bind(quick.postgres.commits);
		quick.postgres.commits.run = (statements) => {
			sent.push(...statements);
			return run(statements);
		};
		const [{ node: first }, { node: second }] = [
			await slow.storage.join("a", false),
			await quick.storage.join("b", false),
		];
		const held = await holding(database, "INSERT INTO note (text) VALUES ('held')");
		const stuck = slow.storage.commit({ node: first, n: 1, again: false, units: [adds("held")] });
		await until("the commit waits", async () => (await waiting(database.url)).length > 0);
		expect(await slow.storage.renew(first, 1000)).toBe(true);
		const log = {
			id: 1,
			create: { log: "r", kind: "run" as const, chain: "session:s" },
			batch: Batch.of(1, ["begin"]),
		};
		const units = [adds("quick"), { writes: [note.add("other")], log }];
		const done = await quick.storage.commit({ node: second, n: 1, again: false, units });
		expect(done.outcomes.get(1)).toEqual({ base: 0 });
		await quick.storage.notify({ node: second, n: 1, topics: new Set(["audit"]) });
		expect((await waiting(database.url)).length).toBe(1);
		await held.release();
		await stuck;
		expect(sent.length).toBeGreaterThan(3);
		for (const text of [...sent.map((statement) => statement.text), ...Object.values(COMMIT)])
			expect(text).not.toMatch(/notify/i);
	});

	it("a store that went back behind the last commit takes no more of them", async () => {
		const database = await fresh();
		const { storage } = storageAt(database.url);
		const { node } = await storage.join("one", false);
		await storage.commit({ node, n: 1, again: false, units: [adds("a")] });
		await database.query(`DELETE FROM journal WHERE node = ${node}; DELETE FROM note`);
		const { outcomes } = await storage.commit({ node, n: 2, again: false, units: [adds("b")] });
		expect(outcomes.get(0)).toMatchObject({ refused: { refusal: "fenced" } });
		expect(await notesIn(database)).toEqual([]);
	});

	it("ST22: a follower learns that commits were removed before it read them, and reads each other one once", async () => {
		const database = await fresh();
		const [one, two] = [storageAt(database.url).storage, storageAt(database.url).storage];
		const [{ node: first }, { node: second }] = [await one.join("a", false), await two.join("b", false)];
		const commit = (n: number, create?: LogWrite["create"]) =>
			one.commit({
				node: first,
				n,
				again: false,
				units: [{ writes: [], log: { id: 1, create, batch: Batch.of(n, [`${n}`]) } }],
			});
		await commit(1, { log: "a", kind: "run" });
		for (const n of [2, 3]) await commit(n);
		await database.query("DELETE FROM journal WHERE n < 3");
		const changes: LogChanges[] = [];
		const following = two.follow(second, {
			wanted: new Map([[1, true]]),
			onChange: (change) => changes.push(change),
			onNotify() {},
		});
		await until("the last one", () => changes.length > 0);
		await commit(4);
		await one.notify({ node: first, n: 4, topics: new Set() });
		await until("the next one", () => changes.length > 1);
		following.stop();
		expect(changes.map(({ n, missed, grown }) => [n, missed, grown.map(({ batch }) => batch.text)])).toEqual([
			[3, true, ["3"]],
			[4, false, ["4"]],
		]);
	});

	it("ST22: a reader elsewhere gets every record although the listener is lost in between", async () => {
		const database = await fresh();
		const [one, two] = [storageAt(database.url), storageAt(database.url)].map(({ storage }) =>
			createBus({ ...quiet, storage, shared: true }),
		) as [Bus, Bus];
		const writer = await one.create({ log: "a", kind: "run" }, ["0"]);
		const read: string[] = [];
		const reading = (async () => {
			for await (const batch of follow(await two.cursor({ log: "a" }, 0))) read.push(...batch.records);
		})();
		for (let n = 1; n <= 20; n++) {
			await written(writer, String(n));
			if (n % 7 === 0)
				await database.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
					WHERE datname = current_database() AND query LIKE 'LISTEN%'`);
		}
		await writer.seal(["end"]);
		await reading;
		expect(read).toEqual([...Array.from({ length: 21 }, (_, n) => String(n)), "end"]);
		for (const bus of [one, two]) await bus.close();
	});

	it("ST1, I4: a Bus continues after its server was restarted, and nothing is lost or doubled", async () => {
		const server = await startPostgres();
		onTestFinished(() => server.stop());
		const { storage, postgres } = storageAt(server.url("postgres"));
		await migrateBusDatabase(postgres);
		await asked(server.url("postgres"), `CREATE TABLE note (id bigint GENERATED ALWAYS AS IDENTITY, text text UNIQUE)`);
		const bus = createBus({ ...quiet, storage, limits: { commitRetryMs: 20 } });
		const writer = await bus.create({ log: "a", kind: "run" }, ["0"]);
		const restarted = server.restart();
		for (let n = 1; n <= 200; n++) {
			writer.append(String(n));
			if (n % 20 === 0) await writer.flushed();
		}
		await restarted;
		await writer.seal(["end"], [note.add("sealed")]);
		expect(await readAll(bus, "a")).toEqual([...Array.from({ length: 201 }, (_, n) => String(n)), "end"]);
		expect(await asked(server.url("postgres"), "SELECT text FROM note")).toEqual([{ text: "sealed" }]);
		await bus.close();
		await postgres.close();
	});
});
