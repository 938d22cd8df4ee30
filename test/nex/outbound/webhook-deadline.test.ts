/** A webhook's caller waits for one time limit in all: for the account, for its process, and for the answer. */

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { ChannelAccount } from "../../../packages/daemon/src/nex/accounts/account.ts";
import { OUTBOUND_LIMITS } from "../../../packages/daemon/src/nex/limits.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { manualClock } from "../../clock.ts";
import { removeFolder } from "../../runtime/folder.ts";
import { until } from "../../until.ts";
import { onlyMessages } from "./rig.ts";

it("I11: what was waited until the account is listened to is not granted again", async () => {
	const dataDir = mkdtempSync(join(tmpdir(), "nexus-webhook-"));
	const clock = manualClock();
	const account = new ChannelAccount({
		channel: "silent",
		id: "main",
		dataDir,
		clock,
		log: silentLog,
		random: Math.random,
		config: { command: [process.execPath, "-e", "process.stdin.resume()", "--"], accounts: { main: { settings: {} } } },
		limits: OUTBOUND_LIMITS,
		infos: { cached: () => ({}), ask: () => Promise.reject(new Error("nobody asks")) },
		notes: { of: () => expect.unreachable(), catchUp: async () => {}, settled: async () => {} },
		stopping: new AbortController().signal,
		onStatus: () => {},
		onFailure() {},
	});
	onTestFinished(async () => {
		await account.stop();
		removeFolder(dataDir);
	});
	const answer = account.webhook({ method: "POST", query: "", headers: {}, body: "" });
	clock.advance(20_000);
	account.monitor(onlyMessages());
	await until("the monitor runs", () => account.status(0).processes.monitor?.state === "running");
	// The request has gone on to the process: everything up to there is microtasks.
	await setImmediate();
	clock.advance(5000);
	expect(await answer).toMatchObject({ status: 504 });
});
