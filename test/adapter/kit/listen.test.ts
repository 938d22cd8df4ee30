/** An adapter listens for as long as its process lives, so a finished round must leave nothing in memory. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, onTestFinished, test, vi } from "vitest";
import { PlatformError } from "../../../packages/adapter/src/kit.ts";
import { keepListening, unlessAborted } from "../../../packages/adapter/src/serve/listen.ts";
import { JsonRpcClient } from "../../../packages/platforms/src/imessage/rpc.ts";
import type { Clock } from "../../../packages/protocol/src/clock.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Waits for nothing, but lets others have their turn. */
const hurried: Clock = {
	now: () => 0,
	after(_ms, callback) {
		const timer = setImmediate(callback);
		return () => clearImmediate(timer);
	},
};

test("I11: nothing is kept of rounds that are over", async () => {
	const brought: WeakRef<object>[] = [];
	const stopping = new AbortController();
	const round = async (): Promise<void> => {
		const what = { message: "x".repeat(1000) };
		brought.push(new WeakRef(what));
		if (brought.length === 50) stopping.abort();
		// As of a poll that answers with what it found.
		return what as never;
	};
	// Kept while it is listened to, as the kit keeps it.
	const { signal } = stopping;
	let kept = -1;
	const late = async (): Promise<void> => {
		await round();
		if (brought.length < 40) return;
		await new Promise((resolve) => setImmediate(resolve));
		collect();
		kept = brought.slice(0, 30).filter((each) => each.deref()).length;
	};
	const rounds = () => (brought.length < 39 ? round() : late());
	await keepListening({ round: rounds, pauseMs: 1, signal, clock: hurried, log: silentLog });
	expect(kept).toBe(0);
});

test("a round that was under way when the signal aborts is not waited for, one that fails is tried again", async () => {
	const stopping = new AbortController();
	let rounds = 0;
	const round = async () => {
		if (++rounds < 3) throw new PlatformError("unavailable", "not now");
		setImmediate(() => stopping.abort());
		await new Promise(() => {});
	};
	const told: (string | undefined)[] = [];
	const listening = (error?: string) => void told.push(error);
	await keepListening({ round, pauseMs: 1, signal: stopping.signal, clock: hurried, log: silentLog, listening });
	expect(rounds).toBe(3);
	expect(told).toEqual(["not now", "not now"]);
	await unlessAborted(stopping.signal, new Promise(() => {}));
	const denied = async () => Promise.reject(new PlatformError("denied", "no"));
	const { signal } = new AbortController();
	await expect(
		keepListening({ round: denied, pauseMs: 1, signal, clock: hurried, log: silentLog }),
	).rejects.toMatchObject({ fault: "denied" });
});

/** A hurried clock that notes what was waited for; only `pass` moves its time. */
function noted() {
	let now = 0;
	const waits: number[] = [];
	const clock: Clock = {
		now: () => now,
		after(ms, callback) {
			waits.push(ms);
			return hurried.after(ms, callback);
		},
	};
	const pass = (ms: number) => {
		now += ms;
	};
	return { clock, waits, pass };
}

test("a connection that is closed as soon as it is there is not made again at once; one that held is", async () => {
	const { clock, waits, pass } = noted();
	const lasts = [0, 5, 60_000, 0];
	const stopping = new AbortController();
	const round = async () => {
		const last = lasts.shift();
		if (last === undefined) stopping.abort();
		else pass(last);
	};
	await keepListening({ round, pauseMs: 0, signal: stopping.signal, clock, log: silentLog });
	expect(waits).toEqual([1000, 1000, 0, 1000]);
});

test("a connection that held for a while is tried again at once when it breaks; failures in a row ever later", async () => {
	const { clock, waits, pass } = noted();
	const lasts = [0, 0, 0, 3_600_000, 3_600_000, 0];
	const stopping = new AbortController();
	const round = async () => {
		const ms = lasts.shift();
		if (ms === undefined) return stopping.abort();
		pass(ms);
		throw new PlatformError("unavailable", "the connection broke");
	};
	await keepListening({ round, pauseMs: 0, signal: stopping.signal, clock, log: silentLog });
	expect(waits).toEqual([1000, 2000, 4000, 1000, 1000, 2000]);
});

test("I11: the client keeps nothing of answered calls while their process lives, and reports the end of the process", async () => {
	const folder = mkdtempSync(join(tmpdir(), "nexus-rpc-"));
	onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
	const server = join(folder, "server.mjs");
	writeFileSync(
		server,
		`import { createInterface } from "node:readline";
		for await (const line of createInterface({ input: process.stdin })) {
			const { id, method } = JSON.parse(line);
			if (method === "die") process.exit(1);
			process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result: { text: "x".repeat(1000) } }) + "\\n");
		}`,
	);
	const rpc = new JsonRpcClient(`${process.execPath} ${server}`, silentLog);
	onTestFinished(() => rpc.close());
	const { signal } = new AbortController();
	const following = rpc.follow("watch", {}, { signal, begun() {} }, async () => {});
	const ended = expect(following).rejects.toMatchObject({ fault: "unknown_outcome" });
	const answered: WeakRef<object>[] = [];
	for (let n = 0; n < 20; n++) answered.push(new WeakRef(await rpc.call<object>("list", {})));
	await vi.waitFor(async () => {
		await new Promise((resolve) => setImmediate(resolve));
		collect();
		expect(answered.slice(0, 15).filter((each) => each.deref())).toEqual([]);
	}, 15_000);
	await expect(rpc.call("die", {})).rejects.toMatchObject({ fault: "unknown_outcome" });
	await ended;
});
