import type { EngineMessage, EngineRequest } from "@nexus-stream/protocol/engine";
import { describe, expect, test } from "vitest";
import type { InboundConfig, Plugin } from "../../../packages/daemon/src/nex/nex.ts";
import { injectedIn } from "../../../packages/protocol/src/protocol.ts";
import { gate, type Play, started, tempFile, text, until, verified } from "../../broker/rig.ts";
import { type NexRigOptions, nexRig, queueOf, telegram } from "./rig.ts";

const queue = queueOf("inject");
const done = { type: "tool", callId: "c1", name: "look", status: "completed", result: "seen" } as const;

/** Calls a tool, waits at a door in it, then looks into the inbox before its next model call. */
function looker() {
	const asked: EngineRequest[] = [];
	const doors: ReturnType<typeof gate>[] = [];
	const taken: (readonly EngineMessage[])[] = [];
	const play: Play = async function* (request, signal, { inbox }) {
		const door = gate();
		asked.push(request);
		doors.push(door);
		yield text("before ");
		yield started("c1");
		const stopped = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
		await Promise.race([door.opened, stopped]);
		if (signal.aborted) return;
		yield done;
		const joined = await inbox!.take();
		taken.push(joined);
		yield text(`after ${joined.length}`);
	};
	return { play, asked, doors, taken };
}

const INJECTS: NexRigOptions = { engine: { injects: true } };

const saidOf = (turn: { messages: readonly { role: string; text: string }[] }) =>
	turn.messages.map(({ role, text: said }) => `${role}: ${said}`);

describe("A26: a message that comes during a run", () => {
	test("is handed to the engine between two model calls, and stands there in log, turn and later contexts", async () => {
		const { play, asked, doors, taken } = looker();
		const under = nexRig(play, { ...INJECTS, path: tempFile() });
		const { submit, look, broker, frames } = under;
		const one = await submit({ session: "main", text: "one", queue });
		await until(() => doors.length === 1);
		const two = await submit({ session: "main", text: "two", queue });
		expect(two.disposition).toEqual({ state: "queued" });
		expect(broker.live(one.runId!)).toBeDefined();
		doors[0]!.open();
		await under.runSettled(one.runId!);

		expect(taken).toEqual([[{ role: "user", text: "two" }]]);
		expect(look.event(two.eventId)!.disposition).toEqual({ state: "injected", runId: one.runId });
		const turn = look.turn(one.runId!)!;
		expect(saidOf(turn)).toEqual(["user: one", "assistant: before ", "user: two", "assistant: after 1"]);
		expect(turn.messages[2]!.eventId).toBe(two.eventId);
		expect(turn.toolCalls).toMatchObject([{ callId: "c1", message: 1, status: "completed" }]);

		const log = await frames(one.runId!);
		expect(verified(log)).toBeUndefined();
		const place = log.findIndex(
			(frame) => frame.type === "stream.chunk" && injectedIn(frame.payload)?.[0] === two.eventId,
		);
		const after = log.findIndex((frame) => frame.type === "stream.chunk" && frame.payload === "after 1");
		expect(place).toBeGreaterThan(
			log.findIndex((frame) => frame.type === "stream.chunk" && frame.payload === "before "),
		);
		expect(after).toBeGreaterThan(place);

		await submit({ session: "main", text: "three" });
		await until(() => asked.length === 2);
		expect(asked[1]!.messages.map(({ role, text: said }) => `${role}: ${said}`)).toEqual([
			...["user: one", "assistant: before ", "user: two", "assistant: after 1", "user: three"],
		]);
		doors[1]!.open();
	});

	test("before anything was said stands between what was done and what is said", async () => {
		const door = gate();
		let calls = 0;
		const play: Play = async function* (_, __, { inbox }) {
			calls++;
			yield started("c1");
			await door.opened;
			yield done;
			await inbox!.take();
			yield text("the answer");
		};
		const under = nexRig(play, INJECTS);
		const one = await under.submit({ session: "main", text: "one", queue });
		await until(() => calls === 1);
		await under.submit({ session: "main", text: "two", queue });
		door.open();
		await under.runSettled(one.runId!);
		const turn = under.look.turn(one.runId!)!;
		expect(saidOf(turn)).toEqual(["user: one", "assistant: ", "user: two", "assistant: the answer"]);
		expect(turn.toolCalls[0]!.message).toBe(1);
	});

	test("becomes a follow-up when the run makes no further model call", async () => {
		const door = gate();
		const asked: EngineRequest[] = [];
		const play: Play = async function* (request) {
			asked.push(request);
			yield text("half");
			if (asked.length === 1) await door.opened;
		};
		const under = nexRig(play, INJECTS);
		const one = await under.submit({ session: "main", text: "one", queue });
		const two = await under.submit({ session: "main", text: "two", queue });
		door.open();
		await until(() => asked.length === 2);
		expect(under.look.event(two.eventId)!.disposition.state).toBe("started");
		expect(under.look.event(one.eventId)!.disposition).toEqual({ state: "started", runId: one.runId });
	});

	test.each([
		["an engine that cannot take it", {}, undefined, "followup"],
		["what is configured instead", {}, "interrupt", "interrupt"],
		[
			"a plugin that prepares runs, which has its say on every message",
			{ ...INJECTS, plugins: [{ name: "p", onPrepare() {} } satisfies Plugin] },
			undefined,
			"followup",
		],
	] as const)("waits otherwise with %s", async (_, options, fallback, mode) => {
		const { play, doors } = looker();
		const under = nexRig(play, options as NexRigOptions);
		await under.submit({ session: "main", text: "one", queue });
		await until(() => doors.length === 1);
		under.nex.reconfigure({ sessions: { main: { queue: { mode: "inject", fallback } } } }, []);
		const two = await under.nex.receive({ session: "main", text: "two" });
		expect(under.look.event(two.eventId)!.queue!.mode).toBe(mode);
		if (mode === "interrupt") await until(() => doors.length === 2);
		for (const door of doors) door.open();
		await until(() => doors.length === 2);
		doors[1]!.open();
	});

	test("is superseded with its run when a newer one interrupts", async () => {
		const door = gate();
		const joined = gate();
		let runs = 0;
		const play: Play = async function* (_, signal, { inbox }) {
			if (++runs > 1) return;
			yield started("c1");
			await door.opened;
			await inbox!.take();
			joined.open();
			yield done;
			await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
		};
		const under = nexRig(play, INJECTS);
		const one = await under.submit({ session: "main", text: "one", queue });
		const two = await under.submit({ session: "main", text: "two", queue });
		await until(() => runs === 1);
		door.open();
		await joined.opened;
		const three = await under.submit({ session: "main", text: "three", queue: queueOf("interrupt") });
		await until(() => runs === 2);
		const superseded = { state: "superseded", by: three.eventId, runId: one.runId };
		for (const { eventId } of [one, two]) expect(under.look.event(eventId)!.disposition).toEqual(superseded);
	});
});

describe("A10: whose words run with whose rights", () => {
	const inject = { mode: "inject" } as const;
	const rules = { acl: { owner: ["ann"], unknown: "allow", groups: "always" }, queue: inject } as const;
	const from = (id: string, chat = "g1") => ({
		from: { id },
		chat: { id: chat, type: "group" as const },
		target: { to: chat },
	});

	async function during(first: string, second: string, chat?: string, more: { session?: string } = {}) {
		const { play, doors, taken, asked } = looker();
		const under = nexRig(play, { ...INJECTS, config: telegram({ ...rules, ...more }) });
		await under.hear(`from ${first}`, from(first));
		await until(() => doors.length === 1);
		const two = await under.hear(`from ${second}`, from(second, chat));
		doors[0]!.open();
		await until(() => taken.length === 1);
		const { disposition } = under.look.event(two.eventId)!;
		if (disposition.state !== "injected") {
			await until(() => doors.length === 2);
			doors[1]!.open();
		}
		return { taken: taken[0]!.map((message) => message.text), runs: asked.length, disposition };
	}

	test("the same person joins the run", async () => {
		expect(await during("ann", "ann")).toMatchObject({ taken: ["from ann"], disposition: { state: "injected" } });
	});

	test.each([
		["a stranger does not join the owner's run", "ann", "eve"],
		["the owner does not join a stranger's run, whose memory it may hold", "eve", "ann"],
		["one stranger does not join another's run", "eve", "mallory"],
	])("%s, but has one of their own", async (_, first, second) => {
		const { taken, runs } = await during(first, second);
		expect([taken, runs]).toEqual([[], 2]);
	});

	test.each([
		["fewer", ["look"], "started"],
		["more", ["look", "write", "edit"], "injected"],
	] as const)("a sender who was given %s rights since the run began", async (_, tools, state) => {
		const letting = (allowed: readonly string[]): InboundConfig =>
			telegram({ queue: inject, acl: { allow: [{ sender: "eve", tools: [...allowed] }], groups: "always" } });
		const { play, doors, asked } = looker();
		const under = nexRig(play, { ...INJECTS, config: letting(["look", "write"]) });
		const receive = () => under.hear("from eve", from("eve"));
		await receive();
		await until(() => doors.length === 1);
		under.nex.reconfigure(letting(tools), []);
		const two = await receive();
		doors[0]!.open();
		const disposition = () => under.look.event(two.eventId)!.disposition;
		await until(() => disposition().state !== "queued", "the second message is taken");
		expect(disposition().state).toBe(state);
		await until(() => asked.length === (state === "started" ? 2 : 1));
		expect(asked.map(({ allowedTools }) => allowedTools)).toEqual([
			["look", "write"],
			...(state === "started" ? [tools] : []),
		]);
		doors[1]?.open();
	});

	test("a person in another chat is answered there", async () => {
		const { taken, runs } = await during("ann", "ann", "g2", { session: "one-for-all" });
		expect([taken, runs]).toEqual([[], 2]);
	});
});
