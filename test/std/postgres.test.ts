/** The connection to PostgreSQL: batches that are one transaction, their failures, migrations and notifications. */

import { afterEach, describe, expect, it } from "vitest";
import {
	type BatchFailure,
	migratePostgres,
	openPostgres,
	type Postgres,
	postgresFailure,
} from "../../packages/daemon/src/std/postgres/postgres.ts";
import { databaseForTest, type TestDatabase } from "../postgres.ts";
import { hasPostgres, MISSING } from "../postgres-server.ts";
import { quiet } from "../quiet.ts";
import { until } from "../until.ts";

it.skipIf(hasPostgres)(`PostgreSQL: ${MISSING}`, () => {});

describe.skipIf(!hasPostgres)("PostgreSQL", () => {
	const opened: Postgres[] = [];
	let database: TestDatabase;
	const open = (url: string) => {
		const postgres = openPostgres({ ...quiet, url, readsMax: 2, random: Math.random });
		opened.push(postgres);
		return postgres;
	};
	const fresh = async () => {
		database = await databaseForTest();
		return open(database.url);
	};
	afterEach(async () => {
		await Promise.all(opened.splice(0).map((postgres) => postgres.close()));
		await database.drop();
	});
	const add = (text: string) => ({ text: "INSERT INTO note (text) VALUES ($1) RETURNING text", values: [text] });
	const notes = async () => (await database.query("SELECT text FROM note ORDER BY id")).map(({ text }) => text);
	const terminate = (like: string) =>
		database.query(
			`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '${like}'
				AND (query NOT LIKE '%pg_sleep%' OR wait_event = 'PgSleep')`,
		);

	it("answers every statement of a batch, with bytes as text and arrays as values", async () => {
		const { commits } = await fresh();
		const answers = await commits.run([
			add("a"),
			{ text: "SELECT unnest($1::text[]), $2::bigint", values: [['"q\\', "ü", null], 7] },
			{ text: "UPDATE note SET text = $1::text", values: [Buffer.from("bytes ü")] },
		]);
		expect(answers.map(({ rows }) => rows)).toEqual([
			[["a"]],
			[
				['"q\\', "7"],
				["ü", "7"],
				[null, "7"],
			],
			[],
		]);
		expect(answers[2]!.count).toBe(1);
		expect(await notes()).toEqual(["bytes ü"]);
	});

	it("says which statement failed, leaves nothing of the batch behind, and keeps running", async () => {
		const { commits } = await fresh();
		const failed = await commits.run([add("a"), add("b"), add("a"), add("c")]).catch((cause: unknown) => cause);
		expect(failed).toMatchObject({ name: "BatchFailure", place: 2, isSent: true, isUnknown: false });
		expect(postgresFailure(failed)).toMatchObject({ kind: "duplicate", constraint: "note_text_key" });
		const unmet = commits.run([add("a"), { text: "SELECT must(count(*)) FROM note WHERE text = 'x'" }, add("b")]);
		await expect(unmet).rejects.toMatchObject({ place: 1 });
		expect(await notes()).toEqual([]);
		await Promise.all([commits.run([add("d")]), commits.run([add("e")])]);
		expect(await notes()).toEqual(["d", "e"]);
	});

	it("a statement that cannot be parsed is known not to be applied", async () => {
		const { commits } = await fresh();
		const failed = await commits.run([add("a"), { text: "SELECT nonsense" }]).catch((cause: unknown) => cause);
		expect((failed as BatchFailure).isUnknown).toBe(false);
		expect(postgresFailure(failed)?.kind).toBe("outdated");
		await commits.run([add("b")]);
		expect(await notes()).toEqual(["b"]);
	});

	it("ST1: the outcome is unknown when the backend ends during a batch; the connection comes back", async () => {
		const { commits, reads } = await fresh();
		const failed = commits.run([add("a"), { text: "SELECT pg_sleep(60)" }]).catch((cause: unknown) => cause);
		await until("the backend", async () => (await terminate("%pg_sleep(60)%")).length > 0);
		expect(await failed).toMatchObject({ isUnknown: true });
		expect(postgresFailure(await failed)?.kind).toBe("unreachable");
		expect(await notes()).toEqual([]);
		await commits.run([add("b")]);
		expect(await reads.all("SELECT text FROM note")).toEqual([{ text: "b" }]);
	});

	it("a server that cannot be reached is a failure that is known not to be applied", async () => {
		await fresh();
		const away = open("postgres://postgres@%2Fnowhere/none");
		const failed = await away.commits.run([{ text: "SELECT 1" }]).catch((cause: unknown) => cause);
		expect(failed).toMatchObject({ isSent: false, isUnknown: false });
		expect(postgresFailure(failed)?.kind).toBe("unreachable");
	});

	it("reads are asked again on a new connection, and those of a snapshot see one state", async () => {
		const { commits, reads } = await fresh();
		const slow = reads.all("SELECT 'again' AS word, pg_sleep(1)");
		await until("the backend", async () => (await terminate("%AS word%")).length > 0);
		expect(await slow).toMatchObject([{ word: "again" }]);
		const seen = await reads.snapshot(async (read) => {
			const before = await read("SELECT count(*) AS count FROM note");
			await commits.run([add("a")]);
			return [before, await read("SELECT count(*) AS count FROM note")];
		});
		expect(seen).toEqual([[{ count: 0 }], [{ count: 0 }]]);
		expect(await reads.get("SELECT count(*) AS count FROM note")).toEqual({ count: 1 });
	});

	it("migrations take turns, run once, and refuse a database that needs a newer program", async () => {
		const one = await fresh();
		const two = open(database.url);
		const steps = [["CREATE TABLE thing (id bigint)"], ["ALTER TABLE thing ADD COLUMN name text"]];
		await Promise.all([one, two].map((postgres) => migratePostgres(postgres, "things", steps)));
		await migratePostgres(two, "things", steps);
		const older = migratePostgres(one, "things", steps.slice(0, 1));
		await expect(older).resolves.toBeUndefined();
		await migratePostgres(one, "things", [...steps, ["ALTER TABLE thing ADD COLUMN size bigint"]], 3);
		await expect(migratePostgres(two, "things", steps)).rejects.toThrow(
			'needs a program that knows schema version 3 of "things"',
		);
		expect(await database.query("SELECT version, oldest FROM schema_version WHERE area = 'things'")).toEqual([
			{ version: "3", oldest: "3" },
		]);
		await database.query("DROP TABLE thing; DELETE FROM schema_version WHERE area = 'things'");
	});

	it("ST22: a listener that loses its connection says so, and comes back", async () => {
		const { listener } = await fresh();
		const states: boolean[] = [];
		const heard: string[] = [];
		const listening = listener("channel", {
			onPayload: (payload) => heard.push(payload),
			onState: (isSure) => states.push(isSure),
		});
		listening.start();
		await until("the echo", () => listening.isSure);
		await database.query("NOTIFY channel, 'one'");
		await until("the notification", () => heard.length > 0);
		await terminate("LISTEN%");
		await until("the loss", () => states.length === 2);
		await until("the next echo", () => listening.isSure);
		await database.query("NOTIFY channel, 'two'");
		await until("the notification", () => heard.length > 1);
		expect([states, heard]).toEqual([
			[true, false, true],
			["one", "two"],
		]);
	});
});
