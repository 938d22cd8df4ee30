/** How the daemon and its accounts are, over the wire: the current state first, then every change. */

import { createClient } from "@connectrpc/connect";
import { expect, it } from "vitest";
import {
	AccountKind,
	RuntimeAccountService,
	AccountSessionState as State,
} from "../../../packages/client/src/gen/nexus/runtime/v1/account_pb.ts";
import {
	RuntimeAuditService,
	RuntimeStatus as Status,
} from "../../../packages/client/src/gen/nexus/runtime/v1/audit_pb.ts";
import type { RuntimeHealth } from "../../../packages/daemon/src/services/health/health.ts";
import { createRuntimeHealth } from "../../../packages/daemon/src/services/health/health.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { transportOf } from "../../ai-client.ts";
import { manualClock } from "../../clock.ts";
import { daemonForTest } from "../../runtime/daemon.ts";
import { freshFolder } from "../../runtime/folder.ts";
import { until } from "../../until.ts";
import { readSse, TOKEN } from "../rig.ts";
import { following, kitForTest, readStream, statusOf } from "./kit.ts";

async function healthKit() {
	const clock = manualClock(10_000);
	const now: { status: RuntimeHealth["status"] } = { status: "READY" };
	const health = createRuntimeHealth({
		status: () => ({ ...now, ...(now.status === "STOPPING" && { reason: "asked to" }) }),
		work: () => ({ queueDepth: 1, activeWorkflows: 2, activeInferenceJobs: 3, activeRuns: 4 }),
		usage: () => ({ cpuMicros: 0, memoryBytes: 5_000_000_000 }),
		clock,
		log: silentLog,
	});
	const kit = await kitForTest({ services: { health } });
	return { kit, clock, now, health };
}

it("R4-13: runtime health begins with the current state, then one sample a second, and STOPPING at once", async () => {
	const { kit, clock, now, health } = await healthKit();
	const client = kit.client(RuntimeAuditService);
	expect((await client.getRuntimeHealth({})).health).toMatchObject({
		status: Status.READY,
		memoryBytes: 5_000_000_000n,
	});
	const { seen } = following((signal) => client.subscribeRuntimeHealthEvents({}, { signal }));
	await until("the current state", () => seen.length === 1);
	clock.advance(1000);
	await until("a sample", () => seen.length === 2);
	now.status = "STOPPING";
	health.changed();
	await until("the last word", () => seen.length === 3);
	const work = { queueDepth: 1, activeWorkflows: 2, activeInferenceJobs: 3, activeRuns: 4 };
	expect(seen).toMatchObject([
		{ sequence: 1n, health: { ...work, status: Status.READY, reason: "", sampledAt: { seconds: 10n } } },
		{ sequence: 2n, health: { ...work, status: Status.READY, reason: "", sampledAt: { seconds: 11n } } },
		{ sequence: 3n, health: { ...work, status: Status.STOPPING, reason: "asked to", sampledAt: { seconds: 11n } } },
	]);
});

async function daemonWith(data: string) {
	const daemon = await daemonForTest({ data, token: TOKEN });
	return { daemon, transport: transportOf(daemon) };
}

it("Y10, Z6: STOPPING is the last that a reader of runtime health hears, then CANCELLED", async () => {
	const { daemon, transport } = await daemonWith(freshFolder());
	const seen: Status[] = [];
	const stream = createClient(RuntimeAuditService, transport).subscribeRuntimeHealthEvents({});
	const reading = readStream(stream, ({ health }) => seen.push(health!.status));
	const sse = await readSse(`${daemon.url}/v1/health/stream`);
	await until("the current state", () => seen.length > 0 && sse.events.length > 0);
	await daemon.close();
	expect(statusOf((await reading).error)).toEqual({ code: "Canceled", reason: "REASON_CODE_STOPPING" });
	expect([seen[0], seen.at(-1)]).toEqual([Status.READY, Status.STOPPING]);
	expect(await sse.ended).toBe("cut");
	expect(JSON.parse(sse.events.at(-1)!.data)).toMatchObject({ status: "RUNTIME_STATUS_STOPPING" });
});

it("R4-65 to R4-68: account sessions are followed over a restart of the daemon", async () => {
	const data = freshFolder();
	const start = async () => {
		const { daemon, transport } = await daemonWith(data);
		const client = createClient(RuntimeAccountService, transport);
		const seen: [id: string, State][] = [];
		const stream = client.subscribeAccountSessionEvents({});
		const ended = readStream(stream, ({ account }) => seen.push([account!.accountId, account!.state]));
		const signIn = async () => {
			const code = daemon.signInUrl().split("#code=")[1];
			const body = JSON.stringify({ code });
			const headers = { "content-type": "application/json" };
			const answer = await fetch(`${daemon.url}/v1/sign-in`, { method: "POST", headers, body });
			return answer.headers.get("set-cookie")!.split(";")[0]!;
		};
		return { daemon, client, seen, ended, signIn };
	};
	const first = await start();
	const [one, other] = [await first.signIn(), await first.signIn()];
	await until("both sign-ins", () => first.seen.length === 2);
	const idOf = (cookie: string) => cookie.split(".")[1]!;
	expect(first.seen).toEqual([
		[idOf(one), State.CONNECTED],
		[idOf(other), State.CONNECTED],
	]);
	await first.daemon.close();
	// A cut, and no end: the daemon may be back.
	expect(statusOf((await first.ended).error)).toEqual({ code: "Canceled", reason: "REASON_CODE_STOPPING" });

	const next = await start();
	await until("the current states", () => next.seen.length === 2);
	expect(next.seen).toEqual(first.seen);
	const { port } = new URL(next.daemon.url);
	const headers = { cookie: `nexus_${port}=${one.split("=")[1]}`, origin: next.daemon.url };
	expect((await fetch(`${next.daemon.url}/v1/sign-out`, { method: "POST", headers })).status).toBe(200);
	await until("the sign-out", () => next.seen.length === 3);
	expect(next.seen[2]).toEqual([idOf(one), State.REMOVED]);
	const { accounts } = await next.client.listAccounts({});
	expect(accounts.map(({ accountId, kind, state }) => [accountId, kind, state])).toEqual([
		[idOf(one), AccountKind.SIGN_IN, State.REMOVED],
		[idOf(other), AccountKind.SIGN_IN, State.CONNECTED],
	]);
});
