/** The daemon's life: what it needs to start, what it refuses, what it leaves behind. */

import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Engine } from "@nexus-stream/protocol/engine";
import { describe, expect, it, onTestFinished } from "vitest";
import { dataPaths, readToken, startDaemon } from "../../packages/daemon/src/runtime/runtime.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { createVerifier, decodeFrame } from "../../packages/protocol/src/protocol.ts";
import { rawClient } from "../edge/rig.ts";
import { call, send, settled, daemonForTest as start } from "./daemon.ts";
import { freshFolder } from "./folder.ts";

const modeOf = (path: string) => statSync(path).mode & 0o777;

describe("a start", () => {
	it("takes its configuration as `config`, too; the other options override it", async () => {
		const folder = freshFolder();
		const config = { data: join(folder, "one"), engine: { module: "./agent.mjs" }, base: folder, stopDeadlineMs: 1234 };
		writeFileSync(join(folder, "agent.mjs"), "export default { name: 'configured', async *run() {} };");
		const daemon = await startDaemon({ port: 0, logger: silentLog, config, data: join(folder, "two") });
		onTestFinished(() => daemon.close());
		expect([daemon.engine, daemon.stopDeadlineMs, daemon.data]).toEqual(["configured", 1234, join(folder, "two")]);
		const wrong = { config: "nexus.yaml" as never };
		await expect(startDaemon(wrong)).rejects.toMatchObject({
			code: "config",
			message: expect.stringContaining("object"),
		});
	});

	it("makes the data directory for its owner only, with a token and who serves it", async () => {
		const data = join(freshFolder(), "deep", "data");
		const daemon = await start({ data });
		expect(daemon.state).toBe("READY");
		expect(modeOf(data)).toBe(0o700);
		for (const name of readdirSync(data)) expect([name, modeOf(join(data, name))]).toEqual([name, 0o600]);
		expect(readFileSync(join(data, "token"), "utf8")).toMatch(/^[A-Za-z0-9_-]{43}\n$/);
		expect(JSON.parse(readFileSync(join(data, "daemon.json"), "utf8"))).toEqual({
			pid: process.pid,
			url: daemon.url,
			grpc: daemon.grpc,
			started_at: expect.closeTo(Date.now(), -5),
		});
		expect((await fetch(`${daemon.url}/readyz`)).status).toBe(200);
	});

	it("keeps its token over restarts, and takes a given one instead", async () => {
		const data = freshFolder();
		const first = await start({ data });
		const token = readToken(dataPaths(data));
		await first.close();
		const second = await start({ data });
		expect(readToken(dataPaths(data))).toBe(token);
		await second.close();
		await start({ data, token: "given-token-0123456789" });
		expect(readToken(dataPaths(data))).toBe("given-token-0123456789");
		expect(modeOf(join(data, "token"))).toBe(0o600);
	});

	it("refuses a directory that another daemon uses, and says whose it is", async () => {
		const data = freshFolder();
		const first = await start({ data });
		await expect(start({ data })).rejects.toMatchObject({
			code: "conflict",
			message: `another Nexus (pid ${process.pid}, ${first.url}) uses ${data}: stop it or use --data with another directory`,
		});
		expect((await fetch(`${first.url}/readyz`)).status).toBe(200);
		await first.close();
		await start({ data });
	});

	it("refuses a public host without a configured token", async () => {
		const data = freshFolder();
		await expect(start({ data, host: "0.0.0.0" })).rejects.toMatchObject({ code: "config" });
		expect(readdirSync(data)).toEqual([]);
	});

	it("refuses a damaged database by name and leaves it as it is", async () => {
		const data = freshFolder();
		const path = join(data, "nexus.db");
		writeFileSync(path, "this is not a database, whatever its name says. ".repeat(100));
		const before = readFileSync(path);
		await expect(start({ data })).rejects.toMatchObject({
			code: "data_loss",
			message: expect.stringMatching(/nexus\.db: the database is damaged\. Restore it from a backup, or move it away/),
		});
		expect(readFileSync(path)).toEqual(before);
		// The lock was let go: nothing keeps a second try from saying the same.
		await expect(start({ data })).rejects.toMatchObject({ code: "data_loss" });
	});

	it("refuses a database of a newer version", async () => {
		const data = freshFolder();
		await (await start({ data })).close();
		const db = new DatabaseSync(join(data, "nexus.db"));
		db.exec("UPDATE schema_version SET version = 999");
		db.close();
		await expect(start({ data })).rejects.toMatchObject({
			code: "data_loss",
			message: expect.stringMatching(/schema version 999, this program knows up to \d+\. Start the newer version/),
		});
	});

	it("refuses a data directory that cannot be one", async () => {
		const file = join(freshFolder(), "file");
		writeFileSync(file, "");
		await expect(start({ data: file })).rejects.toMatchObject({
			code: "config",
			message: expect.stringMatching(/cannot be used .*choose another with --data/),
		});
	});

	it.runIf(existsSync("/proc/self"))(
		"does not hang when it cannot make a data directory where none can be",
		async () => {
			await expect(start({ data: "/proc/nexus/data" })).rejects.toMatchObject({
				code: "config",
				message: expect.stringMatching(/\/proc\/nexus\/data cannot be used .*choose another with --data/),
			});
		},
	);

	it("says which port is taken, and by what way out", async () => {
		const server = createServer();
		await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
		onTestFinished(() => void server.close());
		const { port } = server.address() as { port: number };
		const data = freshFolder();
		await expect(start({ data, port })).rejects.toMatchObject({
			code: "conflict",
			message: expect.stringContaining(`port ${port} on 127.0.0.1 is in use`),
		});
		expect(existsSync(join(data, "daemon.json"))).toBe(false);
		await start({ data });
	});

	it("refuses an engine that does not load, before the port opens", async () => {
		const folder = freshFolder();
		writeFileSync(join(folder, "agent.mjs"), "export default { nothing: true };\n");
		await expect(
			start({ data: join(folder, "data"), base: folder, engine: { module: "./agent.mjs" } }),
		).rejects.toMatchObject({
			code: "config",
			message: expect.stringContaining("agent.mjs"),
		});
	});

	it("loads an engine module relative to the configuration's folder", async () => {
		const folder = freshFolder();
		mkdirSync(join(folder, "agents"));
		writeFileSync(
			join(folder, "agents", "echo.mjs"),
			"export default { name: 'echo', async *run({ messages }) { yield { type: 'text', delta: messages.at(-1).text }; } };\n",
		);
		const daemon = await start({ data: join(folder, "data"), base: folder, engine: { module: "./agents/echo.mjs" } });
		expect(daemon.engine).toBe("echo");
		expect(await settled(daemon, await send(daemon, "hi"))).toMatchObject({ status: "completed", engine: "echo" });
	});
});

/** Says one word and then nothing until it is stopped. */
const silentEngine: Engine = {
	name: "silent",
	async *run(_request, { signal }) {
		yield { type: "text", delta: "word" };
		await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
	},
};

describe("a stop", () => {
	it("I3: ends runs within its deadline, keeps what they said, and lets go of the directory", async () => {
		const data = freshFolder();
		const first = await start({ data, engine: silentEngine, stopDeadlineMs: 200 });
		const runId = await send(first, "go");
		await first.close();
		expect(first.state).toBe("STOPPED");
		expect(existsSync(join(data, "daemon.json"))).toBe(false);
		await expect(fetch(`${first.url}/readyz`)).rejects.toThrow();
		const second = await start({ data });
		const run = await settled(second, runId);
		expect(run).toMatchObject({ status: "aborted", messages: [{ text: "go" }, { text: "word" }] });
		const frames = (await (await call(second, `/v1/runs/${runId}/frames`)).text()).trim().split("\n").map(decodeFrame);
		const verifier = createVerifier();
		expect(frames.map((frame) => verifier.push(frame)).filter(Boolean)).toEqual([]);
		expect(verifier.finish()).toBeUndefined();
	});

	it("may be asked for twice", async () => {
		const daemon = await start({ data: freshFolder() });
		await Promise.all([daemon.close(), daemon.close()]);
		expect(daemon.state).toBe("STOPPED");
	});

	it("closes the engine once", async () => {
		let closed = 0;
		const engine: Engine = { ...silentEngine, close: () => void closed++ };
		const daemon = await start({ data: freshFolder(), engine });
		await daemon.close();
		expect(closed).toBe(1);
	});
});

describe("the configuration", () => {
	it("I11: reaches the parts that it is about", async () => {
		const limits = { broker: { textCharsMax: 5 }, edge: { bodyBytesMax: 100 } };
		const daemon = await start({ data: freshFolder(), ...limits, allowedHosts: ["nexus.example"] });
		const refusal = async (text: string) => (await call(daemon, "/v1/sessions/s/messages", { text })).json();
		expect(await refusal("123456")).toMatchObject({ error: { message: expect.stringContaining("5 characters") } });
		expect(await refusal("1".repeat(200))).toMatchObject({ error: { message: expect.stringContaining("100 bytes") } });
		const named = rawClient(
			Number(new URL(daemon.url).port),
			"GET /healthz HTTP/1.1\r\nHost: nexus.example\r\nConnection: close\r\n\r\n",
		);
		await named.closed;
		expect(named.received()).toMatch(/^HTTP\/1\.1 200 /);
	});

	it.each([
		["lets a run end by itself", 600_000, "/demo tokens=10 rate=20", "completed"],
		["stops a run that keeps running", 1, "/demo tokens=10 rate=0 stall_after=2", "aborted"],
	])("I12: stopDeadlineMs %s", async (_, stopDeadlineMs, text, status) => {
		const data = freshFolder();
		const first = await start({ data, stopDeadlineMs });
		const runId = await send(first, text);
		await first.close();
		const second = await start({ data });
		expect(await (await call(second, `/v1/runs/${runId}`)).json()).toMatchObject({ status, reason: status });
	});
});

describe("/metrics", () => {
	it("counts runs by status, records, streams and memory", async () => {
		const daemon = await start({ data: freshFolder() });
		await settled(daemon, await send(daemon, "/demo tokens=20 rate=0"));
		const response = await call(daemon, "/metrics");
		expect(response.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
		const lines = (await response.text()).split("\n");
		const value = (name: string) => Number(lines.find((line) => line.startsWith(`${name} `))?.split(" ")[1]);
		expect(value('nexus_runs_total{status="completed"}')).toBe(1);
		expect(value('nexus_runs_total{status="failed"}')).toBe(0);
		expect(value("nexus_records_total")).toBeGreaterThan(20);
		expect(value("nexus_commits_total")).toBeGreaterThan(0);
		expect(value("nexus_runs_live")).toBe(0);
		expect(value('nexus_streams_open{wire="sse"}')).toBe(0);
		expect(value('nexus_streams_open{wire="grpc"}')).toBe(0);
		expect(value("nexus_grpc_connections")).toBe(0);
		expect(value("nexus_flush_spacing_seconds")).toBe(0);
		expect(value("nexus_flushes_deferred_total")).toBe(0);
		expect(value("process_resident_memory_bytes")).toBeGreaterThan(1e6);
	});

	it("tells how late the event loop is, not how often it is looked at", async () => {
		const daemon = await start({ data: freshFolder() });
		const late = async () =>
			Number(/^nexus_event_loop_delay_p99_seconds (\S+)$/m.exec(await (await call(daemon, "/metrics")).text())?.[1]);
		expect(await late()).toBe(0);
		// A busy machine is late now and then; with the 20 ms between two looks in it, the figure would never be below them.
		await expect.poll(late, { interval: 100, timeout: 60_000 }).toBeLessThan(0.015);
	});

	it("counts messages, and the calls of plugins by how they ended", async () => {
		const base = freshFolder();
		writeFileSync(
			join(base, "picky.mjs"),
			"export default { onReceive({ event: { text } }) { if (text === 'spam') return { reject: 'no' }; if (text === 'bomb') throw new Error('x'); } };\n",
		);
		const daemon = await start({ data: freshFolder(), base, plugins: ["./picky.mjs"], stopDeadlineMs: 1 });
		for (const text of ["spam", "bomb", "/demo tokens=1 rate=0"])
			await call(daemon, "/v1/sessions/s/messages", { text });
		const lines = (await (await call(daemon, "/metrics")).text()).split("\n");
		expect(lines).toEqual(
			expect.arrayContaining([
				...['nexus_messages_total{what="received"} 3', 'nexus_messages_total{what="rejected"} 1'],
				...['nexus_plugin_calls_total{plugin="picky",outcome="ok"} 1'],
				...['nexus_plugin_calls_total{plugin="picky",outcome="failed"} 1'],
				...['nexus_plugin_calls_total{plugin="picky",outcome="rejected"} 1'],
			]),
		);
	});

	it("counts the same again on the next scrape", async () => {
		const daemon = await start({ data: freshFolder() });
		await settled(daemon, await send(daemon, "/demo tokens=5 rate=0"));
		const runs = async () =>
			/nexus_runs_total\{status="completed"\} (\d+)/.exec(await (await call(daemon, "/metrics")).text())?.[1];
		expect([await runs(), await runs()]).toEqual(["1", "1"]);
	});
});

describe("an answer that cannot be saved", () => {
	it("is seen at /readyz, and saved as soon as it can be: no restart is needed", async () => {
		const daemon = await start({ data: freshFolder() });
		const db = new DatabaseSync(dataPaths(daemon.data).db);
		onTestFinished(() => db.close());
		db.exec("PRAGMA busy_timeout = 5000");
		db.exec("CREATE TRIGGER refuse BEFORE INSERT ON turns BEGIN SELECT RAISE(ABORT, 'refused by the test'); END");
		const runId = await send(daemon, "/demo tokens=3 rate=0");
		const ready = async () =>
			(await (await fetch(`${daemon.url}/readyz`)).json()) as { state: string; detail?: string };
		await expect.poll(ready).toMatchObject({ state: "DEGRADED", detail: expect.stringContaining("cannot be saved") });
		db.exec("DROP TRIGGER refuse");
		expect(await settled(daemon, runId)).toMatchObject({ status: "completed" });
		await expect.poll(ready).toMatchObject({ state: "READY" });
		expect(await settled(daemon, await send(daemon, "/demo tokens=3 rate=0"))).toMatchObject({ status: "completed" });
	});
});
