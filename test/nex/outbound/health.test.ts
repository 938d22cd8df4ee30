/** How an account is, as people see it: unreachable while its platform does not answer, without old errors when it works again. */

import { expect, it, onTestFinished } from "vitest";
import { MONITOR_SHAPES } from "../../../packages/adapter/src/shapes.ts";
import { createCallHealth } from "../../../packages/daemon/src/nex/accounts/platform-health.ts";
import { RESTART_RULES } from "../../../packages/daemon/src/std/supervision.ts";
import { manualClock } from "../../clock.ts";
import { monitorOf, node, supervisorOf } from "./process-kit.ts";
import { until } from "./rig.ts";

it("a monitor that cannot hear its platform is unreachable, and running again without an error when it can", async () => {
	// Every webhook request changes what it says of itself.
	const program = `
		const say = (line) => process.stdout.write(JSON.stringify(line) + "\\n");
		let rest = "", asked = 0;
		process.stdin.on("data", (chunk) => {
			const lines = (rest + chunk).split("\\n");
			rest = lines.pop();
			for (const line of lines) {
				say(++asked % 2 ? { type: "listening", ok: false, error: "ENOTFOUND" } : { type: "listening", ok: true });
				say({ type: "webhook_response", id: JSON.parse(line).id, status: 200 });
			}
		});
		say({ type: "listening", ok: true, error: 7 });
	`;
	const seen = new Set<string>();
	const monitor = monitorOf({
		command: node(program),
		changed: () => queueMicrotask(() => seen.add(monitor.status().state)),
	});
	onTestFinished(() => monitor.stop());
	const change = () => monitor.webhook({ method: "POST", query: "", headers: {}, body: "" }, 25_000);
	await until(() => monitor.status().lastError !== undefined, "its garbage is seen");
	expect(monitor.status()).toMatchObject({ state: "running", lastError: expect.stringMatching(/garbage/) });
	await change();
	expect(monitor.status()).toMatchObject({ state: "unreachable", lastError: "ENOTFOUND" });
	await change();
	expect(monitor.status()).toMatchObject({ state: "running" });
	expect(monitor.status().lastError).toBeUndefined();
	// The watcher was called each time.
	expect([...seen]).toEqual(["running", "unreachable"]);
});

it("a process that has lived for a while has no old error", async () => {
	const clock = manualClock(1000);
	const command = node("console.log('garbage'); process.stdin.resume()");
	const supervisor = supervisorOf({ command, clock, shapes: MONITOR_SHAPES });
	onTestFinished(async () => {
		const stopped = supervisor.stop();
		clock.advance(60_000);
		await stopped;
	});
	await supervisor.running(new AbortController().signal);
	await until(() => supervisor.status().lastError !== undefined, "its garbage is seen");
	clock.advance(RESTART_RULES.healthyMs - 1);
	expect(supervisor.status().lastError).toMatch(/garbage/);
	clock.advance(1);
	expect(supervisor.status().lastError).toBeUndefined();
	expect(supervisor.status()).toMatchObject({ state: "running", garbage: 1 });
});

it("calls that find no platform tell it, until one does or they are long ago", () => {
	const clock = manualClock(1000);
	const calls = createCallHealth(clock);
	const call = (detail?: string) => calls.note({ call: "create", ok: detail === undefined, detail });
	expect(calls.error()).toBeUndefined();
	call("unavailable: create: ECONNREFUSED");
	expect(calls.error()).toBe("create: ECONNREFUSED");
	call("gone: the chat is not there");
	expect(calls.error()).toBeUndefined();
	call("unknown_outcome: create: HTTP 502");
	call();
	expect(calls.error()).toBeUndefined();
	call("unavailable: create: ECONNREFUSED");
	clock.advance(60_000);
	expect(calls.error()).toBeUndefined();
});
