/** A daemon whose store is a PostgreSQL database: its life, its refusals, and the faults of its server. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { createClient } from "../../packages/client/src/client.ts";
import { type Daemon, type DaemonOptions, dataPaths, readToken } from "../../packages/daemon/src/runtime/runtime.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { nexus } from "../cli/in-process.ts";
import { up } from "../cli/nexus.ts";
import { databaseForTest } from "../postgres.ts";
import { hasPostgres } from "../postgres-server.ts";
import { until } from "../until.ts";
import { answered, call, callJson, daemonForTest, send, settled } from "./daemon.ts";
import { freshFolder } from "./folder.ts";

/** For one test. */
async function database() {
	const made = await databaseForTest();
	onTestFinished(() => made.drop());
	return made;
}

const on = (url: string): DaemonOptions => ({ store: { postgres: { url } } });

/** The same server, and a database that is not there. */
const another = (url: string, name: string) => url.replace(/\/[^/]+$/, `/${name}`);

describe.skipIf(!hasPostgres)("a daemon on PostgreSQL", { timeout: 60_000 }, () => {
	it("I1: keeps what it answered in the database, and finds it again from another data directory", async () => {
		const { url } = await database();
		const first = await daemonForTest(on(url));
		const runId = await answered(first, "/demo tokens=20 rate=0");
		const run = await callJson(first, `/v1/runs/${runId}`);
		const session = await callJson(first, "/v1/sessions/s");
		expect(existsSync(dataPaths(first.data).db)).toBe(false);
		await first.close();
		const second = await daemonForTest(on(url));
		expect(await callJson(second, `/v1/runs/${runId}`)).toEqual(run);
		expect(await callJson(second, "/v1/sessions/s")).toEqual(session);
		await answered(second, "/demo tokens=5 rate=0");
		expect(await callJson(second, "/readyz")).toMatchObject({ ready: true });
	});

	it("I10: a killed daemon's run is settled by the next one, which a reader sees from where it was", async () => {
		const { url } = await database();
		const data = join(freshFolder(), "data");
		const first = await up(data, [], { env: { NEXUS_STORE: url } });
		const reading = nexus(["send", "/demo tokens=5000 rate=50", "--session", "s", "--data", data]);
		await reading.until(({ out }) => out.length > 40);
		const seen = reading.out;
		await first.end("SIGKILL");
		const second = await daemonForTest({ ...on(url), data });
		const { out } = await reading.end();
		expect(out.startsWith(seen)).toBe(true);
		const { runs } = await callJson<{ runs: { status: string }[] }>(second, "/v1/runs?session=s");
		expect(runs).toHaveLength(1);
		expect(runs[0]!.status).not.toBe("running");
		await answered(second, "/demo tokens=5 rate=0");
	});

	it("the doctor says what it found there, without the password", async () => {
		const { url } = await database();
		const secret = url.replace("postgres@", "postgres:s3cret@");
		const looking = nexus(["doctor", "--json", "--data", freshFolder()], { env: { NEXUS_STORE: secret } });
		const { out, err } = await looking.end();
		const line = out.split("\n").find((text) => text.includes('"check":"database"'))!;
		expect(JSON.parse(line)).toMatchObject({
			result: "ok",
			detail: expect.stringMatching(/PostgreSQL \d+.*answers in/),
		});
		expect(out + err).not.toContain("s3cret");
	});

	it("refuses a database that is not there, or that another program uses, and says what to do", async () => {
		const { url, query } = await database();
		const start = (address: string) => daemonForTest(on(address.replace("postgres@", "postgres:s3cret@")));
		const missing = start(another(url, "none_such"));
		await expect(missing).rejects.toMatchObject({ code: "config", message: expect.stringMatching(/no such database/) });
		await missing.catch((cause: Error) => expect(JSON.stringify([cause.message, cause.cause])).not.toContain("s3cret"));
		await query("CREATE DATABASE foreign_tables");
		const foreign = another(url, "foreign_tables");
		onTestFinished(async () => void (await query("DROP DATABASE foreign_tables WITH (FORCE)")));
		await (await import("../postgres-server.ts")).asked(foreign, "CREATE TABLE node (x int)");
		await expect(start(foreign)).rejects.toMatchObject({ message: expect.stringMatching(/another program/) });
	});

	it("waits for a server that does not answer, says so, and gives up after storeRetryMsMax", async () => {
		const said: string[] = [];
		const logger = { ...silentLog, error: (_: unknown, message: string) => void said.push(message) };
		const url = `postgres://nexus:s3cret@127.0.0.1:9/nexus`;
		const starting = daemonForTest({ ...on(url), logger, storeRetryMsMax: 300 });
		await expect(starting).rejects.toMatchObject({ code: "unavailable" });
		expect(said[0]).toMatch(/^the start waits: postgres:\/\/nexus@127.0.0.1:9\/nexus: the database cannot be reached/);
		expect(said.join()).not.toContain("s3cret");
	});

	it("I1, I4: connections that end during an answer lose and repeat nothing of it", async () => {
		const { url, query } = await database();
		const daemon = await daemonForTest(on(url));
		const runId = await send(daemon, "/demo tokens=300 rate=150");
		const records = await readLive(daemon, runId, async (offset) => {
			if (offset % 50 === 0) await endConnections(query);
		});
		expect(records).toEqual(await stored(daemon, runId));
		expect(await settled(daemon, runId)).toMatchObject({ status: "completed" });
		await until("the daemon to be ready", async () => (await fetch(`${daemon.url}/readyz`)).status === 200);
	});

	it("I1, I4: a database that is read-only for a while: the run waits, is not ready, and ends whole", async () => {
		const { url, query } = await database();
		const daemon = await daemonForTest(on(url));
		const name = new URL(url).pathname.slice(1);
		const runId = await send(daemon, "/demo tokens=100 rate=100");
		const records = await readLive(daemon, runId, async (offset) => {
			if (offset !== 20) return;
			await query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
			await endConnections(query);
			await until("commits to fail", async () => (await fetch(`${daemon.url}/readyz`)).status === 503);
			await query(`SET transaction_read_only = off; ALTER DATABASE ${name} RESET default_transaction_read_only`);
			await endConnections(query);
		});
		expect(records).toEqual(await stored(daemon, runId));
		expect(await settled(daemon, runId)).toMatchObject({ status: "completed" });
	});
});

type Query = (sql: string) => Promise<unknown>;

const endConnections = (query: Query) =>
	query(
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
	);

/** The frames as a client reads them while the run writes; `disturb` is awaited after each. */
async function readLive(daemon: Daemon, runId: string, disturb: (offset: number) => Promise<void>): Promise<unknown[]> {
	const client = createClient({ url: daemon.url, token: readToken(dataPaths(daemon.data)) });
	const frames: unknown[] = [];
	for await (const { frame } of client.follow({ run: runId })) {
		frames.push(frame);
		await disturb(frames.length);
	}
	return frames;
}

/** The frames as the log has them. */
async function stored(daemon: Daemon, runId: string): Promise<unknown[]> {
	const text = await (await call(daemon, `/v1/runs/${runId}/frames`)).text();
	return text
		.trim()
		.split("\n")
		.map((line) => JSON.parse(line) as unknown);
}
