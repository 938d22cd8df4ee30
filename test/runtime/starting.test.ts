/** A start that has to wait for its disk: it logs that, answers health checks, and continues by itself. */

import { expect, it, onTestFinished } from "vitest";
import { Starting } from "../../packages/daemon/src/runtime/starting.ts";
import { type Log, silentLog } from "../../packages/protocol/src/log.ts";
import { NexusError } from "../../packages/protocol/src/protocol.ts";
import { type ManualClock, manualClock } from "../clock.ts";
import { ownPort } from "../port.ts";
import { until } from "../until.ts";

async function starting(clock: ManualClock, log: Log = silentLog) {
	const port = await ownPort();
	const options = { host: "127.0.0.1", port, storeRetryMsMax: 2000, clock, log };
	const parts = new Starting(options);
	onTestFinished(() => parts.end());
	return { parts, url: `http://127.0.0.1:${port}` };
}

const failing = (code: string) =>
	new NexusError("unavailable", "the disk of the folder is full", { cause: Object.assign(new Error(code), { code }) });

const turn = () => new Promise((resolve) => setImmediate(resolve));

it.each(["ENOSPC", "EIO"])("one %s does not end the start: the step is repeated", async (code) => {
	const clock = manualClock();
	const { parts } = await starting(clock);
	let calls = 0;
	const done = parts.whenWritable(() => {
		if (++calls < 3) throw failing(code);
		return "open";
	});
	for (let n = 0; n < 2; n++) {
		await turn();
		clock.advance(250);
	}
	expect(await done).toBe("open");
	expect(calls).toBe(3);
});

it("the start gives up after storeRetryMsMax with the reason, and at once for what waiting cannot mend", async () => {
	const clock = manualClock();
	const said: string[] = [];
	const { parts } = await starting(clock, { ...silentLog, error: (_facts, message) => void said.push(message) });
	const waiting = parts.whenWritable(() => {
		throw failing("ENOSPC");
	});
	waiting.catch(() => {});
	for (let ms = 0; ms <= 2000; ms += 250) {
		await turn();
		clock.advance(250);
	}
	await expect(waiting).rejects.toThrow("the disk of the folder is full");
	expect(said).toEqual(["the start waits: the disk of the folder is full"]);
	const denied = new NexusError("unavailable", "not yours", { cause: Object.assign(new Error(), { code: "EACCES" }) });
	await expect(
		parts.whenWritable(() => {
			throw denied;
		}),
	).rejects.toBe(denied);
});

it("after a second the port answers health checks, says what the start waits for, and is free for the edge", async () => {
	const clock = manualClock();
	const { parts, url } = await starting(clock);
	let isHealthy = false;
	parts.opened(() => isHealthy);
	clock.advance(1000);
	const ask = async (path: string) => {
		const answer = await fetch(url + path);
		return [answer.status, await answer.json()];
	};
	await until("the port is open", () =>
		fetch(url).then(
			() => true,
			() => false,
		),
	);
	expect(await ask("/healthz")).toEqual([200, { status: "ok" }]);
	const detail = expect.stringMatching(/disk is full or failing/);
	expect(await ask("/readyz")).toEqual([503, { ready: false, state: "STARTING", detail }]);
	expect(await ask("/v1/runs")).toEqual([503, { error: expect.objectContaining({ code: "unavailable" }) }]);
	isHealthy = true;
	expect(await ask("/readyz")).toEqual([503, { ready: false, state: "STARTING", detail: expect.any(String) }]);
	await parts.end();
	await expect(fetch(url)).rejects.toThrow();
});
