import { describe, expect, it } from "vitest";
import { beginRun, createRig, finishedRun, type Rig, rigForTest, until } from "./rig.ts";

let rig: Rig;

const main = (channel: string) => ({ channel, id: "main" });

describe("native streaming", () => {
	it("I7: a live run appears while it is written and is whole at its end, one message per assistant message", async () => {
		rig = createRig("full");
		const { run, id } = await rig.begin();
		run.text("Hello ");
		await until(() => rig.visible("c1").join("") === "Hello ", "the first text is visible before the run ends");
		run.text("world");
		run.next();
		run.text("Second.");
		await run.end();
		const done = await rig.outbound.settled(id);
		expect(done).toMatchObject({ state: "complete", mode: "stream", cursor: 18 });
		expect(done.messages.map(({ from, to, state }) => [from, to, state])).toEqual([
			[0, 11, "sent"],
			[11, 18, "sent"],
		]);
		expect(rig.visible("c1")).toEqual(["Hello world", "Second."]);
		expect(rig.deliveries.get(id)).toEqual(done);
	});

	it("I7: the same run, account and target is the same delivery", async () => {
		rig = createRig("full");
		const runId = await finishedRun(rig.bus, ["once"]);
		const request = { runId, account: main("full"), target: { to: "c1", thread_id: "t" } };
		const first = await rig.outbound.deliver(request);
		await rig.outbound.settled(first.id);
		const again = await rig.outbound.deliver({ ...request, target: { thread_id: "t", to: "c1" } });
		expect(again.id).toBe(first.id);
		expect(rig.visible("c1")).toEqual(["once"]);
	});

	it("one run goes to several targets of several accounts at once", async () => {
		rig = rigForTest((channel) => ({ full: channel("full"), streamonly: channel("streamonly") }));
		const run = await beginRun(rig.bus);
		const targets = [
			{ account: main("full"), target: { to: "a" } },
			{ account: main("full"), target: { to: "b" } },
			{ account: main("streamonly"), target: { to: "c" } },
		];
		const all = await Promise.all(targets.map((each) => rig.outbound.deliver({ runId: run.runId, ...each })));
		run.text("to all");
		await until(() => ["a", "b", "c"].every((to) => rig.visible(to)[0] === "to all"), "all see it live");
		await run.end();
		for (const { id } of all) expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete" });
		expect(["a", "b", "c"].map((to) => rig.visible(to))).toEqual([["to all"], ["to all"], ["to all"]]);
	});

	it("a separate text is delivered the same way", async () => {
		rig = createRig("full");
		const { state, runId } = await rig.send({ text: "A notice." });
		expect(runId).toMatch(/^txt_/);
		expect(state).toBe("complete");
		expect(rig.visible("c1")).toEqual(["A notice."]);
		expect(await rig.bus.describe(runId)).toMatchObject({ kind: "text" });
	});

	it("I8: tools and reasoning are chosen for one delivery, and kept with it", async () => {
		rig = createRig("full", {}, { streaming: { tools: true } });
		const choose = async (options: object, to: string) => {
			const run = await beginRun(rig.bus);
			run.say({ type: "reasoning", text: to });
			run.text("said");
			await run.end();
			const { id } = await rig.outbound.deliver({ runId: run.runId, account: main("full"), target: { to }, options });
			return rig.outbound.settled(id);
		};
		expect(await choose({ reasoning: true, tools: false }, "c1")).toMatchObject({
			options: { reasoning: true, tools: false },
		});
		await choose({}, "c2");
		const heard = rig.calls().filter(({ op }) => op === "reasoning");
		expect(heard.map(({ text }) => text)).toEqual(["c1"]);
		const shown = rig
			.calls()
			.flatMap(({ op, options }) => (op === "start" ? [(options as { tools?: boolean }).tools] : []));
		expect(shown).toEqual([false, true]);
	});

	it("I8: reasoning lines reach an adapter of the six events in their place, and nothing is sent separately", async () => {
		rig = createRig("collecting", {}, { streaming: { reasoning: true } });
		const run = await beginRun(rig.bus);
		run.text("one ");
		run.say({ type: "reasoning", text: "thought" });
		run.text("two");
		await run.end();
		expect(await rig.send({ runId: run.runId })).toMatchObject({ state: "complete" });
		const heard = rig.calls().filter(({ op }) => op === "reasoning");
		expect(heard.map(({ text, after }) => [after, text])).toEqual([["one ", "thought"]]);
		expect(rig.visible("c1")).toEqual(["one two"]);
	});

	it("tools are shown where messages grow unless the channel or its account says no; a placeholder is passed on", async () => {
		const at = (id: string) => ({ channel: "full", id });
		rig = rigForTest((channel) => {
			const { accounts, ...full } = channel("full");
			const settings = accounts.main!.settings;
			const quiet = { settings, streaming: { tools: false, placeholder: "One moment…" } };
			return { full: { ...full, accounts: { main: { settings }, quiet } } };
		});
		const runId = await finishedRun(rig.bus, ["said"]);
		for (const account of ["main", "quiet"]) {
			const { id } = await rig.outbound.deliver({ runId, account: at(account), target: { to: account } });
			await rig.outbound.settled(id);
		}
		const options = rig.calls().flatMap((call) => (call.op === "start" ? [call.options] : []));
		expect(options).toEqual([{ tools: true }, { tools: false, placeholder: "One moment…" }]);
	});

	it("tool calls are shown without their arguments and results", async () => {
		rig = createRig("full");
		const run = await beginRun(rig.bus);
		const tool = { type: "tool_status", toolName: "read", toolCallId: "1" } as const;
		run.say({ ...tool, status: "started", args: { key: "secret" } });
		run.say({ ...tool, status: "completed", summary: "done", result: "secret" });
		run.text("x");
		await run.end();
		await rig.send({ runId: run.runId });
		const keys = rig
			.calls()
			.filter(({ op }) => op === "tool")
			.map((call) => call.keys);
		expect(keys).toEqual([
			"delivery,offset,runId,status,toolCallId,toolName,type",
			"delivery,offset,runId,status,summary,toolCallId,toolName,type",
		]);
	});

	it("answers of one session to one chat keep their order", async () => {
		rig = createRig("full");
		const first = await beginRun(rig.bus);
		const one = await rig.outbound.deliver({ runId: first.runId, account: main("full"), target: { to: "c1" } });
		const secondRun = await finishedRun(rig.bus, ["second"]);
		const two = await rig.outbound.deliver({ runId: secondRun, account: main("full"), target: { to: "c1" } });
		// By the time that a later one is out elsewhere, the second would have been here.
		const witness = await rig.outbound.deliver({ runId: secondRun, account: main("full"), target: { to: "c2" } });
		await rig.outbound.settled(witness.id);
		expect(rig.visible("c1")).toEqual([]);
		first.text("first");
		await until(() => rig.visible("c1").length > 0, "the first began");
		await first.end();
		await Promise.all([rig.outbound.settled(one.id), rig.outbound.settled(two.id)]);
		expect(rig.visible("c1")).toEqual(["first", "second"]);
	});

	it("an adapter with only the basic fields gets one delivery at a time, in the basic lines", async () => {
		rig = createRig("collecting");
		const runs = await Promise.all([1, 2, 3].map((n) => finishedRun(rig.bus, [`answer ${n} to all`], `s${n}`)));
		const all = await Promise.all(
			runs.map((runId, n) => rig.outbound.deliver({ runId, account: main("collecting"), target: { to: `c${n}` } })),
		);
		for (const { id } of all) expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete", cursor: 15 });
		expect([0, 1, 2].map((n) => rig.visible(`c${n}`))).toEqual([1, 2, 3].map((n) => [`answer ${n} to all`]));
		expect(rig.calls()[0]).toMatchObject({ keys: "runId,sessionLabel,target,type", token: "text,type" });
	});

	it("a failed run ends with the channel's error text, and the text before it stays", async () => {
		rig = createRig("full");
		const run = await beginRun(rig.bus);
		run.text("half an ans");
		await run.fail("the model broke");
		expect(await rig.send({ runId: run.runId })).toMatchObject({ state: "complete" });
		expect(rig.visible("c1")).toEqual(["half an ans"]);
	});

	it("a run or an account that is not there is refused", async () => {
		rig = createRig("full");
		const target = { to: "c1" };
		await expect(rig.outbound.deliver({ runId: "run_x", account: main("full"), target })).rejects.toMatchObject({
			code: "not_found",
		});
		await expect(
			rig.outbound.deliver({ text: "x", account: { channel: "full", id: "no" }, target }),
		).rejects.toMatchObject({ code: "not_found" });
		await expect(rig.outbound.deliver({ text: "  ", account: main("full"), target })).rejects.toMatchObject({
			code: "invalid",
		});
	});
});
