/** The data directory is emptied, removed, replaced or damaged: the daemon says so, and never passes it off as good. */

import { mkdirSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Engine } from "@nexus-stream/protocol/engine";
import { describe, expect, it } from "vitest";
import { checkDeeply } from "../../packages/daemon/src/runtime/data/check.ts";
import {
	type DaemonOptions,
	dataPaths,
	isDataDirLocked,
	readToken,
} from "../../packages/daemon/src/runtime/runtime.ts";
import { until } from "../until.ts";
import { answered, call, daemonForTest, ownersBearer, send } from "./daemon.ts";
import { freshFolder } from "./folder.ts";

const start = (options: DaemonOptions) => daemonForTest({ stopDeadlineMs: 0, ...options });

/** Says one word and then waits for the signal. */
const patient: Engine = {
	name: "patient",
	async *run(_, { signal }) {
		yield { type: "text", delta: "begun" };
		await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
	},
};

describe("a database that lost everything", () => {
	it.each(["empty", "missing"])("is not taken for a new one (%s)", async (what) => {
		const data = freshFolder();
		await (await start({ data })).close();
		const { db, marker } = dataPaths(data);
		if (what === "empty") truncateSync(db);
		else rmSync(db);
		await expect(start({ data })).rejects.toMatchObject({
			code: "data_loss",
			message: `${db} is ${what}, but this directory has held data: restore it from a backup, or delete ${marker} to start empty`,
		});
		rmSync(marker);
		expect((await start({ data })).state).toBe("READY");
	});
});

describe("bytes that changed on disk", () => {
	it("P4.12 I9: a damaged answer is a status, not frames; others are served", async () => {
		const data = freshFolder();
		const first = await start({ data });
		const whole = await answered(first, "/demo tokens=20 rate=0 seed=1");
		const run = await answered(first, "/demo tokens=20 rate=0 seed=2");
		await first.close();
		const { db } = dataPaths(data);
		const bytes = readFileSync(db);
		const at =
			bytes.indexOf(`"message_id":"${run}.1","seq_no":7,"payload":"`) +
			`"message_id":"${run}.1","seq_no":7,"payload":"`.length;
		expect(at).toBeGreaterThan(100);
		bytes[at] = bytes[at]! ^ 1;
		writeFileSync(db, bytes);
		const { problems } = checkDeeply(db);
		expect(problems).toEqual([expect.stringMatching(new RegExp(`^${run}: records from offset 1 on are damaged`))]);
		const second = await start({ data });
		for (const path of ["frames", "stream"]) {
			const answer = await call(second, `/v1/runs/${run}/${path}`);
			expect(answer.status).toBe(500);
			expect(await answer.json()).toMatchObject({
				error: { code: "data_loss", message: expect.stringContaining(run) },
			});
			expect((await call(second, `/v1/runs/${whole}/${path}`)).status).toBe(200);
		}
	});
});

describe("looking for damage", () => {
	it("finds nothing in a whole store, live runs included, and frames that do not fit in one without checksums", async () => {
		const data = freshFolder();
		const { db } = dataPaths(data);
		const daemon = await start({ data });
		const run = await answered(daemon, "/demo tokens=9 rate=0");
		await call(daemon, "/v1/sessions/live/messages", { text: "/demo tokens=5000 rate=100" });
		expect(checkDeeply(db)).toEqual({ logs: 2, problems: [] });
		await daemon.close();
		const file = new DatabaseSync(db);
		file.exec("UPDATE segment SET crc = NULL, records = replace(records, '\"seq_no\":3,', '\"seq_no\":4,')");
		file.close();
		expect(checkDeeply(db).problems).toContainEqual(expect.stringMatching(new RegExp(`^${run}: .*P1\\.7`)));
	});
});

describe("a data directory that goes away while the daemon runs", () => {
	it.each(["removed", "replaced"])("I1: is noticed, and nothing is acknowledged (%s)", async (how) => {
		const data = join(freshFolder(), "data");
		const daemon = await start({ data });
		await answered(daemon, "/demo tokens=2 rate=0");
		const bearer = ownersBearer(daemon);
		if (how === "removed") rmSync(data, { recursive: true });
		else {
			renameSync(data, `${data}-away`);
			mkdirSync(data);
			writeFileSync(join(data, "nexus.db"), "");
		}
		expect(daemon.state).toBe("DEGRADED");
		const ready = await fetch(`${daemon.url}/readyz`);
		expect(ready.status).toBe(503);
		const { ready: isReady, detail } = (await ready.json()) as { ready: boolean; detail: string };
		expect([isReady, detail]).toEqual([false, expect.stringMatching(/the database was removed or replaced/)]);
		expect(detail).not.toContain(data);
		const refused = await call(daemon, "/v1/sessions/s/messages", { text: "/demo tokens=2" }, bearer);
		expect(refused.status).toBe(503);
		const words = await refused.text();
		expect(JSON.parse(words)).toMatchObject({
			error: { message: expect.stringMatching(/restore the data directory/) },
		});
		expect(words).not.toContain(data);
		if (how === "removed") return;
		rmSync(data, { recursive: true });
		renameSync(`${data}-away`, data);
		await until("the daemon is ready", () => daemon.state === "READY");
	});
});

describe("a lock file that is deleted while it is held", () => {
	it.each(["deleted", "deleted with the marker"])("lets no second daemon in, and is held again (%s)", async (what) => {
		const data = freshFolder();
		const first = await start({ data, engine: patient });
		const run = await send(first, "x");
		const paths = dataPaths(data);
		rmSync(paths.lock);
		if (what !== "deleted") rmSync(paths.marker);
		await expect(start({ data })).rejects.toMatchObject({
			code: "conflict",
			message: expect.stringContaining("another Nexus"),
		});
		expect(await (await call(first, `/v1/runs/${run}`)).json()).toMatchObject({ status: "running" });
		await until("the lock file is held again", () => isDataDirLocked(paths));
		await until("the daemon is ready", () => first.state === "READY");
		await expect(start({ data })).rejects.toMatchObject({ code: "conflict" });
		await first.close();
		expect((await start({ data })).state).toBe("READY");
		expect(readToken(paths)).toBeDefined();
	});

	it("stops the daemon from writing as long as another process has it", async () => {
		const data = freshFolder();
		const daemon = await start({ data });
		const { lock } = dataPaths(data);
		rmSync(lock);
		const other = new DatabaseSync(lock);
		other.exec("BEGIN EXCLUSIVE");
		await until("the daemon is degraded", () => daemon.state === "DEGRADED");
		const refused = await call(daemon, "/v1/sessions/s/messages", { text: "x" });
		const words = await refused.text();
		expect([refused.status, words]).toEqual([
			503,
			expect.stringContaining("another process has taken the data directory"),
		]);
		expect(words).not.toContain(data);
		const ready = await fetch(`${daemon.url}/readyz`);
		expect([ready.status, await ready.text()]).toEqual([503, expect.not.stringContaining(data)]);
		other.close();
		await until("the daemon is ready", () => daemon.state === "READY");
		await answered(daemon, "/demo tokens=2 rate=0");
	});
});
