/** A disk that fills up in the middle of an answer: the daemon reports it, waits, continues when there is room, and loses nothing. */

import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { startDaemon } from "../../packages/daemon/src/runtime/runtime.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { createVerifier, type Frame } from "../../packages/protocol/src/protocol.ts";
import { atEffort, effort, FULL_EFFORT } from "../effort.ts";
import { removeFolder } from "../runtime/folder.ts";
import { until } from "../until.ts";
import { AUTHORIZATION, call, type DaemonProcess, daemonIn, framesOf } from "./daemon.ts";
import { smallDisk } from "./disk.ts";
import { follow } from "./reader.ts";

const DISK_MB = 96;
/** More than there is room for once the disk is filled, however fast the machine is. */
const TOKENS = atEffort(40_000, 20_000);
const ROOM_BYTES = 2 ** 20;
const isFull = effort >= FULL_EFFORT;
const CONFIG = "engine: demo\nlog: { level: warn }\n";

const folder = mkdtempSync(join(tmpdir(), "nexus-full-"));
const { path: disk, mounted, fill, free, unmount } = smallDisk(folder, DISK_MB);
let daemon: DaemonProcess | undefined;

const readyz = async (url: string) => {
	const answer = await fetch(`${url}/readyz`);
	return { status: answer.status, text: await answer.text() };
};

/** A message is refused with what to do, while its sender still waits. */
async function refusesAtOnce(url: string, session: string): Promise<void> {
	const begun = performance.now();
	const answer = await fetch(`${url}/v1/sessions/${session}/messages`, {
		method: "POST",
		headers: { ...AUTHORIZATION, "content-type": "application/json" },
		body: JSON.stringify({ text: "hello ".repeat(20_000) }),
	});
	if (isFull) expect(performance.now() - begun).toBeLessThan(2000);
	expect([answer.status, await answer.text()]).toEqual([503, expect.stringMatching(/[Ff]ree some space/)]);
}

afterAll(async () => {
	await daemon?.stop();
	unmount();
	removeFolder(folder);
});

describe.skipIf(!mounted)("proof: a full disk (skipped where a tmpfs cannot be mounted: run as root)", () => {
	// One question each: a daemon waits for room only up to its limit.
	it.each([
		["the session that writes", "full"],
		["another session", "another"],
	])("I1 I4 I5: is reported, waited out and survived without a loss; %s is refused", async (_, asked) => {
		// A database that was larger before has room within itself.
		await daemon?.stop();
		const own = join(disk, asked);
		mkdirSync(own);
		daemon = await daemonIn(own, CONFIG);
		await daemon.start();
		const { url } = daemon;
		const messages = `${url}/v1/sessions/full/messages`;
		fill(ROOM_BYTES);
		const { run_id: run } = await call<{ run_id: string }>(messages, { text: `/demo tokens=${TOKENS} rate=20000` });
		const reader = follow(url, { run });
		try {
			await until("the answer has begun", () => reader.records.length > 100);
			let ready = { status: 200, text: "" };
			await until("the daemon notices", async () => {
				ready = await readyz(url);
				return ready.status === 503;
			});
			await refusesAtOnce(url, asked);
			// Text that cannot be saved is not shown.
			const shown = reader.records.length;
			const [turn, health] = await Promise.all([call(`${url}/v1/runs/${run}`), fetch(`${url}/healthz`)]);
			free();
			expect(ready.text).toMatch(/disk/i);
			expect(shown).toBeLessThan(TOKENS);
			expect(turn).toMatchObject({ status: "running" });
			expect(health.status).toBe(200);
			if (isFull) expect(daemon.log).toMatch(/full/i);

			await until("the daemon recovers", async () => (await readyz(url)).status === 200);
			await until("the answer is complete", () => reader.ended);
			await expect(call(`${url}/v1/runs/${run}`)).resolves.toMatchObject({ status: "completed" });
			const frames = await framesOf(url, run);
			expect(reader.faults).toEqual([]);
			expect(reader.records.map((record) => record.data)).toEqual(frames);
			const verifier = createVerifier();
			const faults = frames.map((frame) => verifier.push(JSON.parse(frame) as Frame)).filter((fault) => fault);
			expect([...faults, verifier.finish()]).toEqual([undefined]);
			expect(frames).toHaveLength(TOKENS + 2);
		} finally {
			reader.close();
		}
	});

	it("what was saved is still there after a kill", async () => {
		const before = await call<unknown>(`${daemon?.url}/v1/runs?limit=10`);
		await daemon?.kill();
		await daemon?.start();
		expect(await call<unknown>(`${daemon?.url}/v1/runs?limit=10`)).toEqual(before);
		expect((await fetch(`${daemon?.url}/v1/sessions`, { headers: AUTHORIZATION })).status).toBe(200);
	});

	it("I3: a start with a run to recover waits for room, says so on its port, and then settles it", async () => {
		await daemon?.stop();
		// A database that was larger before has room within itself, and a log that tells of an earlier refusal proves nothing.
		const own = join(disk, "own");
		mkdirSync(own);
		daemon = await daemonIn(own, CONFIG);
		await daemon.start();
		const { url } = daemon;
		const { run_id: run } = await call<{ run_id: string }>(`${url}/v1/sessions/left/messages`, {
			text: "/demo tokens=5000 rate=100",
		});
		await until("the answer has begun", async () => (await framesOf(url, run)).length > 20);
		await daemon.kill();
		fill();
		const starting = daemon.start();
		const answer = (path: string) => fetch(url + path).catch(() => undefined);
		await until("the start answers health checks", async () => (await answer("/healthz"))?.status === 200);
		const ready = await readyz(url);
		free();
		expect(ready.status).toBe(503);
		expect(ready.text).toMatch(/STARTING.*disk is full/);
		await starting;
		expect(daemon.log).toMatch(/full or failing/);
		await expect(call(`${url}/v1/runs/${run}`)).resolves.toMatchObject({ status: "failed", reason: "crashed" });
	});

	it("a start says that the disk is full, and does not advise to delete what is kept", async () => {
		await daemon?.stop();
		const data = join(disk, "fresh");
		mkdirSync(data);
		fill();
		try {
			await expect(
				startDaemon({ data, port: 0, engine: "demo", logger: silentLog, storeRetryMsMax: 1 }),
			).rejects.toMatchObject({
				code: "unavailable",
				message: expect.stringMatching(/^(?!.*delete).*disk.* full.*[Ff]ree/),
			});
		} finally {
			free();
		}
	});
});
