/** Accounts that come, change and go while the daemon runs: what is on its way is not lost, and nothing of a removed one stays. */

import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { beginRun, FAST, finishedRun, onlyMessages, type Rig, rigForTest, until } from "./rig.ts";

let rig: Rig;

const place = (id: string, to = "c1") => ({ account: { channel: "full", id }, target: { to } });
const alive = (pid: number) => existsSync(`/proc/${pid}/stat`);

/** The channel with these accounts, by their extra settings. */
const config = (of: Rig, accounts: Record<string, Record<string, string>>) => {
	const channel = of.channel("full");
	const { settings } = channel.accounts.main!;
	const own = Object.entries(accounts).map(([id, more]) => [id, { settings: { ...settings, ...more } }]);
	return { full: { ...channel, accounts: Object.fromEntries(own) } };
};

describe("accounts of a running daemon", () => {
	it("a new account is used at once; unchanged ones keep their processes", async () => {
		rig = rigForTest((channel) => ({ full: channel("full") }));
		const { outbound } = rig;
		const first = await outbound.deliver({ ...place("main"), text: "before" });
		await outbound.settled(first.id);
		const { pid } = outbound.accounts()[0]!.processes.stream!;
		await expect(outbound.deliver({ ...place("second"), text: "too early" })).rejects.toMatchObject({
			code: "not_found",
		});
		expect(await outbound.reconfigure(config(rig, { main: {}, second: {} }))).toEqual({
			added: [{ channel: "full", id: "second" }],
			changed: [],
			removed: [],
		});
		const { id } = await outbound.deliver({ ...place("second", "c2"), text: "by the new one" });
		expect(await outbound.settled(id)).toMatchObject({ state: "complete" });
		expect(rig.visible("c2")).toEqual(["by the new one"]);
		expect(outbound.accounts().map(({ account }) => account)).toEqual(["main", "second"]);
		expect(outbound.accounts()[0]!.processes.stream!.pid).toBe(pid);
	});

	it("a watcher of the accounts is called when one may have changed, until it stops", async () => {
		rig = rigForTest((channel) => ({ full: channel("full") }));
		const { outbound } = rig;
		const seen: string[] = [];
		const stop = outbound.onAccounts(() => {
			const [main] = outbound.accounts();
			const state = main?.processes.stream?.state ?? (main ? "idle" : "gone");
			if (seen.at(-1) !== state) seen.push(state);
		});
		const { id } = await outbound.deliver({ ...place("main"), text: "hello" });
		await outbound.settled(id);
		await outbound.reconfigure({});
		// A start may be over before anybody looks.
		expect(seen.filter((state) => state !== "starting")).toEqual(["idle", "running", "gone"]);
		stop();
		await outbound.reconfigure(config(rig, { main: {} }));
		expect(seen.at(-1)).toBe("gone");
	});

	it("a removed one whose adapter cannot be asked keeps no delivery waiting", async () => {
		const limits = { ...FAST, retireMs: 50 };
		const broken = { command: ["/nonexistent/adapter"], accounts: { main: { settings: {} } } };
		rig = rigForTest(() => ({ broken }), { limits });
		const account = { channel: "broken", id: "main" };
		const { id } = await rig.outbound.deliver({ account, target: { to: "c1" }, text: "x" });
		await until(() => rig.outbound.accounts()[0]!.infoError !== undefined, "it was asked");
		await rig.outbound.reconfigure({});
		expect(await rig.outbound.settled(id)).toMatchObject({
			state: "failed",
			error: expect.stringMatching(/no account broken\/main/),
		});
	});

	it("the error for an unknown account lists the others", async () => {
		rig = rigForTest((channel) => ({ full: channel("full") }));
		const wrong = rig.outbound.deliver({ ...place("typo"), text: "x" });
		await expect(wrong).rejects.toMatchObject({
			code: "not_found",
			message: expect.stringMatching(/nexus adapter add.*the channel has main/),
		});
	});

	it("I7: a removed account finishes its deliveries and accepts no messages; then its processes end", async () => {
		rig = rigForTest((channel) => ({ full: channel("full", { inbound: "1" }) }));
		const { outbound } = rig;
		const heard: string[] = [];
		outbound.monitor(
			"full",
			"main",
			onlyMessages(async ({ eventId }) => void heard.push(eventId)),
		);
		await until(() => heard.length === 1, "it is listened to");
		const run = await beginRun(rig.bus);
		const { id } = await outbound.deliver({ ...place("main"), runId: run.runId });
		run.text("begun, ");
		await until(() => rig.visible("c1").join("") === "begun, ", "the beginning is visible");
		const { monitor, stream } = outbound.accounts()[0]!.processes;
		expect(await outbound.reconfigure({})).toMatchObject({ removed: [{ channel: "full", id: "main" }] });
		expect(outbound.accounts()).toEqual([]);
		await until(() => !alive(monitor!.pid!), "nobody listens");
		expect(alive(stream!.pid!)).toBe(true);
		await expect(outbound.deliver({ ...place("main"), text: "x" })).rejects.toMatchObject({ code: "not_found" });
		run.text("and finished.");
		await run.end();
		expect(await outbound.settled(id)).toMatchObject({ state: "complete" });
		expect(rig.visible("c1")).toEqual(["begun, and finished."]);
		await until(() => !alive(stream!.pid!), "its process has ended");
	});

	it("what a removed one cannot finish in time has failed, and says why", async () => {
		rig = rigForTest((channel) => ({ full: channel("full") }), { limits: { ...FAST, retireMs: 50 } });
		const { outbound } = rig;
		const run = await beginRun(rig.bus);
		const { id } = await outbound.deliver({ ...place("main"), runId: run.runId });
		run.text("never finished");
		await until(() => rig.visible("c1").length === 1, "it has begun");
		await outbound.reconfigure({});
		expect(await outbound.settled(id)).toMatchObject({
			state: "failed",
			error: expect.stringContaining("nexus adapter add"),
		});
		expect(rig.visible("c1")).toEqual(["never finished"]);
	});

	it("I7: a changed account continues with its new settings, in the same message", async () => {
		rig = rigForTest((channel) => ({ full: channel("full", { slowMs: "5" }) }), {
			limits: { ...FAST, retireMs: 50 },
		});
		const { outbound } = rig;
		const run = await beginRun(rig.bus);
		const { id } = await outbound.deliver({ ...place("main"), runId: run.runId });
		run.text("before the change, ");
		await until(() => rig.deliveries.get(id)!.messages[0]?.shown === 19, "the beginning is visible");
		const old = outbound.accounts()[0]!.processes.stream!.pid!;
		expect(await outbound.reconfigure(config(rig, { main: { slowMs: "6" } }))).toMatchObject({
			added: [],
			changed: [{ channel: "full", id: "main" }],
			removed: [],
		});
		await until(() => !alive(old), "the old process has ended");
		run.text("and after it.");
		await run.end();
		expect(await outbound.settled(id)).toMatchObject({ state: "complete" });
		expect(rig.visible("c1")).toEqual(["before the change, and after it."]);
		const runId = await finishedRun(rig.bus, ["another"]);
		expect(await outbound.settled((await outbound.deliver({ ...place("main"), runId })).id)).toMatchObject({
			state: "complete",
		});
	});

	it("the same configuration again changes nothing", async () => {
		rig = rigForTest((channel) => ({ full: channel("full") }));
		expect(await rig.outbound.reconfigure(config(rig, { main: {} }))).toEqual({ added: [], changed: [], removed: [] });
	});
});
