/** A bundled adapter on the time of the test that starts it: `adapter.ts <channel> <verb> …`, as packages/platforms/src/main.ts. */

import { subscribe } from "node:diagnostics_channel";
import type { ClientRequest } from "node:http";
import { ADAPTER_LIMITS } from "../../packages/adapter/src/serve/context.ts";
import { STOP_GRACE_MS, serve } from "../../packages/adapter/src/serve/serve.ts";
import { TIME_HEADER } from "../../packages/lab/src/http.ts";
import { CHANNELS } from "../../packages/platforms/src/channels.ts";
import { loadPlatform } from "../adapter/platform.ts";
import { timeOf } from "./time.ts";

const { clock, factor } = timeOf(process.env);
const now = () => String(clock.now());

// The two ways in which SDKs call out: node:http, and fetch (undici).
subscribe("http.client.request.created", (message) => {
	(message as { request: ClientRequest }).request.setHeader(TIME_HEADER, now());
});
subscribe("undici:request:create", (message) => {
	(message as { request: { addHeader(name: string, value: string): void } }).request.addHeader(TIME_HEADER, now());
});

const [name = "", ...argv] = process.argv.slice(2);
const channel = CHANNELS.find((known) => known === name);
if (!channel) throw new Error(`unknown channel "${name}"`);
// Waits of others are real time, however fast the adapter's own are.
const callTimeoutMs = Number(process.env.NODE_NEXUS_CALL_MS ?? ADAPTER_LIMITS.callTimeoutMs) * factor;
await serve(await loadPlatform(channel), argv, {
	clock,
	callTimeoutMs,
	ackLimitMs: ADAPTER_LIMITS.ackLimitMs * factor,
	doubtMs: ADAPTER_LIMITS.doubtMs * factor,
	stopGraceMs: STOP_GRACE_MS,
});
