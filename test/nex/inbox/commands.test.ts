import { describe, expect, test } from "vitest";
import type { InboundMessage } from "../../../packages/adapter/src/port.ts";
import { phaseWrites } from "../../../packages/daemon/src/ledger/phases/port.ts";
import { commandIn } from "../../../packages/daemon/src/nex/inbox/commands.ts";
import type { InboundChannelConfig } from "../../../packages/daemon/src/nex/inbox/config.ts";
import type { Plugin } from "../../../packages/daemon/src/nex/nex.ts";
import { type Play, started, tempFile, until } from "../../broker/rig.ts";
import { manualClock } from "../../clock.ts";
import { answering, messageOf, type NexRigOptions, nexRig, patient, telegram } from "./rig.ts";

function chat(play: Play, channel: InboundChannelConfig = {}, options: NexRigOptions = {}) {
	const { hear, ...under } = nexRig(play, {
		...options,
		config: telegram({ queue: { mode: "followup" }, ...channel }),
	});
	return { ...under, say: hear };
}

/** A run that has called a tool and waits. */
const working = () => patient({ first: [started("c1")] });

const group = { chat: { id: "g1", type: "group" as const }, target: { to: "g1" } };

describe("A28: what is a command", () => {
	const of = (said: string, fields: Partial<InboundMessage> = {}) =>
		commandIn({ channel: "telegram", account: "bot", message: messageOf(said, fields) });

	test.each([
		["/stop", "/stop"],
		[" !STOP ", "/stop"],
		["/stop all", "/stop all"],
		["!new", "/new"],
		["/status", "/status"],
	])("%j is %s", (said, command) => expect(of(said)).toBe(command));

	test.each(["stop", "/stop now", "/news", "please /stop", "/new all", "//stop", "", "/"])(
		"%j is not a command",
		(said) => expect(of(said)).toBeUndefined(),
	);

	test("in a group only what is said to us", () => {
		expect(of("/stop", group)).toBeUndefined();
		expect(of("/stop", { ...group, mention: true })).toBe("/stop");
	});

	test("not what comes with a file", () => {
		const attachments = [{ name: "a", contentType: "text/plain", data: "" }];
		expect(of("/stop", { attachments })).toBeUndefined();
	});
});

describe("A28: /stop", () => {
	test("stops the run; waiting messages are answered; the chat gets a note", async () => {
		const { play, asked, doors } = working();
		const { say, look, texts } = chat(play);
		const one = await say("one");
		await until(() => asked.length === 1);
		await say("two");
		const stop = await say("/stop");
		expect(stop.disposition).toEqual({ state: "handled", because: "/stop" });
		await until(() => asked.length === 2);
		expect(look.turn(one.runId!)!.status).toBe("aborted");
		expect(texts()).toEqual(["Stopped."]);
		expect(asked[1]!.messages.map((message) => message.text)).not.toContain("/stop");
		doors[1]!.open();
	});

	test("all: cancels one's own messages that wait, too; those of others only for an owner", async () => {
		const { play, asked, doors } = working();
		const { say, look, texts } = chat(play, { acl: { unknown: "allow", owner: ["boss"], groups: "always" } });
		const by = (id: string) => ({ ...group, from: { id }, mention: true });
		await say("one", by("ann"));
		await until(() => asked.length === 1);
		const [two, three, four] = [
			await say("two", by("ann")),
			await say("three", by("bob")),
			await say("four", by("ann")),
		];
		await say("/stop all", by("ann"));
		const states = () => [two, three, four].map(({ eventId }) => look.event(eventId)!.disposition.state);
		expect(texts()).toEqual(["Stopped. 2 messages cancelled."]);
		await until(() => asked.length === 2);
		expect(states()).toEqual(["cancelled", "started", "cancelled"]);
		const five = await say("five", by("ann"));
		await say("/stop all", by("boss"));
		expect(look.event(five.eventId)!.disposition.state).toBe("cancelled");
		for (const door of doors) door.open();
	});

	test("says so when nothing runs", async () => {
		const { say, texts } = chat(working().play);
		await say("/stop");
		expect(texts()).toEqual(["Nothing is running."]);
	});

	test("sent twice by the platform is done once", async () => {
		const { play, asked, doors } = working();
		const { say, look, texts } = chat(play);
		await say("/stop", { eventId: "same" });
		const one = await say("one");
		await until(() => asked.length === 1);
		expect((await say("/stop", { eventId: "same" })).disposition.state).toBe("handled");
		expect(texts()).toHaveLength(1);
		doors[0]!.open();
		await until(() => look.turn(one.runId!) !== undefined);
		expect(look.turn(one.runId!)!.status).toBe("completed");
	});

	test("of a rejected sender is not carried out", async () => {
		const { play, asked, doors } = working();
		const { say, broker, texts } = chat(play, { acl: { allow: ["ann"], unknown: "deny" } });
		const one = await say("one");
		await until(() => asked.length === 1);
		expect((await say("/stop", { from: { id: "eve" } })).disposition.state).toBe("rejected");
		expect([broker.live(one.runId!)!.status, texts()]).toEqual(["running", []]);
		doors[0]!.open();
	});

	test("is not shown to plugins", async () => {
		const seen: string[] = [];
		const plugin: Plugin = { name: "p", onReceive: () => void seen.push("asked") };
		const { say } = chat(working().play, {}, { plugins: [plugin] });
		await say("/status");
		expect(seen).toEqual([]);
	});
});

describe("A28: /new", () => {
	test("begins a session that knows nothing of the last one, also after a restart", async () => {
		const path = tempFile();
		const { asked, play } = answering("yes");
		const before = chat(play, {}, { path, dies: true });
		const one = await before.say("one");
		await before.runSettled(one.runId!);
		await before.say("/new");
		const two = await before.say("two");
		await before.runSettled(two.runId!);
		const after = chat(play, {}, { path });
		const three = await after.say("three");
		await after.runSettled(three.runId!);
		expect(asked.map(({ messages }) => messages.map((message) => message.text))).toEqual([
			...[["one"], ["two"], ["two", "yes", "three"]],
		]);
		expect(asked[1]!.session).toBe(asked[2]!.session);
		expect(asked[1]!.session).not.toBe(asked[0]!.session);
		await after.say("/new");
		const four = await after.say("four");
		await after.runSettled(four.runId!);
		expect(asked.at(-1)!.messages.map((message) => message.text)).toEqual(["four"]);
	});

	test("of one chat is not another chat's", async () => {
		const { asked, play } = answering();
		const { say, runSettled } = chat(play);
		const other = { chat: { id: "c2", type: "direct" as const }, target: { to: "c2" } };
		await runSettled((await say("one", other)).runId!);
		await say("/new");
		await runSettled((await say("two", other)).runId!);
		expect(asked[1]!.messages).toHaveLength(3);
	});

	test("is refused where the chat shares its session with others", async () => {
		const { asked, play } = answering();
		const { say, texts, runSettled } = chat(play, { session: "shared" });
		await say("/new");
		expect(texts()[0]).toContain("shares the session shared");
		await runSettled((await say("one")).runId!);
		expect(asked[0]!.session).toBe("shared");
	});
});

describe("A28: /status", () => {
	test("says what runs, for how long and in what, and what waits", async () => {
		const clock = manualClock(1_000_000);
		const { play, asked, doors } = working();
		const { say, texts, broker, bus } = chat(play, {}, { clock });
		await say("/status");
		const one = await say("one");
		await until(() => asked.length === 1 && broker.live(one.runId!)!.toolCalls.length === 1);
		await say("two");
		clock.advance(12_000);
		await say("/status");
		expect(texts()).toEqual([
			"Nothing is running. Nothing waits.",
			"Running for 12 s with played, in look. 1 message waits.",
		]);
		await bus.write([phaseWrites.begin(asked[0]!.session, "plan", 1)]);
		await say("/status");
		expect(texts().at(-1)).toMatch(/ 1 message waits\. The phase is plan\.$/);
		for (const door of doors) door.open();
	});
});
