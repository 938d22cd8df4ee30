/** State feeds: how the daemon is, and how its accounts and sign-ins are. */

import { expect, onTestFinished, test } from "vitest";
import type { AccountSession, PlatformStatus } from "../../packages/daemon/src/services/accounts/accounts.ts";
import { createAccountSessions } from "../../packages/daemon/src/services/accounts/accounts.ts";
import type { AuditEntry } from "../../packages/daemon/src/services/audit/port.ts";
import { createAudit } from "../../packages/daemon/src/services/audit/record.ts";
import { noticeWrites } from "../../packages/daemon/src/services/audit/rows.ts";
import type { RuntimeHealth } from "../../packages/daemon/src/services/health/health.ts";
import { createRuntimeHealth } from "../../packages/daemon/src/services/health/health.ts";
import { createSignIns } from "../../packages/daemon/src/services/signins/signins.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { manualClock } from "../clock.ts";
import { storeForTest } from "../store.ts";

function healthRig() {
	const clock = manualClock(10_000);
	const now = { status: "READY" as RuntimeHealth["status"], samples: 0, cpuMicros: 0 };
	const health = createRuntimeHealth({
		status: () => ({ status: now.status, ...(now.status === "READY" ? {} : { reason: "because" }) }),
		work: () => ({ queueDepth: 1, activeWorkflows: 2, activeInferenceJobs: 3, activeRuns: 4 }),
		usage() {
			now.samples++;
			return { cpuMicros: now.cpuMicros, memoryBytes: 99 };
		},
		clock,
		log: silentLog,
	});
	now.samples = 0;
	return { clock, now, health };
}

test("Z2: samples are taken once a second while a listener is subscribed, and never otherwise", () => {
	const { clock, now, health } = healthRig();
	clock.advance(5000);
	expect(now.samples).toBe(0);
	const one: RuntimeHealth[] = [];
	const other: RuntimeHealth[] = [];
	const stops = [health.subscribe((sample) => one.push(sample)), health.subscribe((sample) => other.push(sample))];
	now.cpuMicros = 1_500_000;
	clock.advance(3000);
	expect(one.map(({ sampledAt }) => sampledAt)).toEqual([16_000, 17_000, 18_000]);
	expect(other).toEqual(one);
	expect(now.samples).toBe(3);
	for (const stop of stops) stop();
	clock.advance(5000);
	expect(now.samples).toBe(3);
});

test("the processor is counted in thousandths since the sample before", () => {
	const { clock, now, health } = healthRig();
	clock.advance(2000);
	now.cpuMicros = 500_000;
	expect(health.current()).toEqual({
		status: "READY",
		queueDepth: 1,
		activeWorkflows: 2,
		activeInferenceJobs: 3,
		activeRuns: 4,
		cpuMilli: 250,
		memoryBytes: 99,
		sampledAt: 12_000,
	});
	now.status = "DEGRADED";
	// Too soon to say anything else about the processor.
	expect(health.current()).toMatchObject({ status: "DEGRADED", reason: "because", cpuMilli: 250 });
});

test("Y10: another status is reported in the tick in which it changes", () => {
	const { now, health } = healthRig();
	const told: RuntimeHealth[] = [];
	health.subscribe((sample) => told.push(sample));
	now.status = "STOPPING";
	health.changed();
	expect(told.map(({ status }) => status)).toEqual(["STOPPING"]);
	health.close();
});

type Processes = PlatformStatus["processes"];
const info = { supports: ["monitor", "send"] };

async function accountRig() {
	const clock = manualClock(10_000);
	const store = storeForTest();
	const signIns = createSignIns({ ...store, clock, log: silentLog, audit: createAudit(clock) });
	const platform = { accounts: [] as PlatformStatus[], changed: () => {} };
	const accounts = createAccountSessions({
		platforms: {
			accounts: () => platform.accounts,
			onAccounts(listener) {
				platform.changed = listener;
				return () => {};
			},
		},
		signIns,
		clock,
		log: silentLog,
	});
	onTestFinished(() => {
		accounts.close();
		signIns.close();
	});
	const told: AccountSession[] = [];
	const become = (...all: PlatformStatus[]) => {
		platform.accounts = all;
		platform.changed();
	};
	return { clock, signIns, accounts, told, become, platform };
}

const bot = (more: Partial<PlatformStatus> = {}): PlatformStatus => ({
	channel: "telegram",
	account: "bot",
	processes: {},
	...more,
});

test.each<[string, Partial<PlatformStatus>, string, string?]>([
	["its adapter was not asked yet", {}, "connecting"],
	["its adapter cannot be asked", { infoError: "no such file" }, "disconnected", "no such file"],
	["it will be listened to", { info }, "connecting"],
	["its adapter only sends, when it has to", { info: { supports: ["send"] } }, "connected"],
	["it starts", { info, processes: { monitor: { state: "starting" } } }, "connecting"],
	["it runs", { info, processes: { monitor: { state: "running" } } }, "connected"],
	[
		"it is slowed down",
		{ info, processes: { monitor: { state: "running" } }, pausedUntil: 5 },
		"degraded",
		"the platform slowed the account down",
	],
	[
		"one process fails",
		{ info, processes: { monitor: { state: "running" }, send: { state: "backing_off", lastError: "gone" } } },
		"degraded",
		"gone",
	],
	[
		"its platform does not answer",
		{ info, processes: { monitor: { state: "unreachable", lastError: "no route" } } },
		"disconnected",
		"no route",
	],
	[
		"it is not tried any more for a while",
		{ info, processes: { monitor: { state: "open_circuit" } as Processes[string] & object } },
		"disconnected",
	],
])("an account of which %s", async (_, status, state, reason) => {
	const { accounts, become } = await accountRig();
	become(bot(status));
	expect(accounts.list()).toEqual([
		expect.objectContaining({ id: "telegram/bot", kind: "platform", state, ...(reason !== undefined && { reason }) }),
	]);
});

test("R4-65: changes of an account are reported once each; one that is gone was removed", async () => {
	const { accounts, become, told, clock, platform } = await accountRig();
	accounts.subscribe((session) => told.push(session));
	become(bot());
	become(bot());
	clock.advance(10);
	become(bot({ info, processes: { monitor: { state: "running" } } }));
	// Time alone ends a pause, without a call.
	platform.accounts = [bot({ info, processes: { monitor: { state: "running" } }, pausedUntil: 1 })];
	clock.advance(1000);
	become();
	expect(told.map(({ id, state, createdAt, changedAt }) => [id, state, createdAt, changedAt])).toEqual([
		["telegram/bot", "connecting", 10_000, 10_000],
		["telegram/bot", "connected", 10_000, 10_010],
		["telegram/bot", "degraded", 10_000, 11_000],
		["telegram/bot", "removed", 10_000, 11_010],
	]);
	expect(accounts.list()).toEqual([]);
});

test("Z24: sign-ins are reported when they begin, expire and are signed out, and shown for a day after", async () => {
	const { accounts, signIns, told, clock } = await accountRig();
	accounts.subscribe((session) => told.push(session));
	const [short, long] = [await signIns.open("192.0.2.1", 1000), await signIns.open("192.0.2.2", 5000)];
	clock.advance(1000);
	await signIns.end(long.id, { owner: true, address: "", isPrivate: true });
	await signIns.end(long.id, { owner: true, address: "", isPrivate: true });
	expect(told.map(({ id, kind, state, expiresAt }) => [id, kind, state, expiresAt])).toEqual([
		[short.id, "sign-in", "connected", 11_000],
		[long.id, "sign-in", "connected", 15_000],
		[short.id, "sign-in", "expired", 11_000],
		[long.id, "sign-in", "removed", 15_000],
	]);
	expect(accounts.list().map(({ state }) => state)).toEqual(["expired", "removed"]);
	clock.advance(24 * 60 * 60_000 + 1);
	expect(accounts.list()).toEqual([]);
});

test("I11: of very many sign-ins the oldest are signed out", async () => {
	const { signIns } = await accountRig();
	const first = await signIns.open("a", 60_000);
	for (let n = 0; n < 1000; n++) await signIns.open("a", 60_000);
	expect(signIns.find(first.id)).toBeUndefined();
	expect(signIns.list().filter(({ state }) => state === "connected")).toHaveLength(1000);
});

test("Z28: sign-ins, sign-outs and refusals are audited; strangers cannot fill the log", async () => {
	const clock = manualClock(60_000);
	const store = storeForTest();
	const told: AuditEntry[] = [];
	const audit = (entry: AuditEntry) => {
		told.push(entry);
		return noticeWrites.post("audit", "{}", 1);
	};
	const signIns = createSignIns({ ...store, clock, log: silentLog, audit });
	onTestFinished(() => signIns.close());
	const { id } = await signIns.open("192.0.2.1", 1000);
	await signIns.end(id, { owner: true, address: "192.0.2.9", isPrivate: true });
	expect(told).toEqual([
		{ domain: "sign-in", operation: "signed_in", caller: "192.0.2.1", payload: { sign_in: id } },
		{ domain: "sign-in", operation: "signed_out", caller: "192.0.2.9", payload: { sign_in: id } },
	]);
	told.length = 0;
	for (let n = 0; n < 100; n++) signIns.refused(`192.0.2.${n}`, 1);
	expect(told).toHaveLength(60);
	expect(told[0]).toEqual({
		domain: "sign-in",
		operation: "refused",
		reason: "UNAUTHENTICATED",
		caller: "192.0.2.0",
		payload: { count: 1 },
	});
	clock.advance(60_000);
	signIns.refused("192.0.2.1", 5);
	expect(told.at(-1)?.payload).toEqual({ count: 5, untold: 40 });
	await store.bus.write([]);
});
