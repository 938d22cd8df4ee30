import type { EngineRequest } from "@nexus-stream/protocol/engine";
import { describe, expect, test } from "vitest";
import type { Plugin } from "../../../packages/daemon/src/nex/nex.ts";
import { reportAttachments } from "../../../packages/daemon/src/runtime/compose.ts";
import type { TransferInfo } from "../../../packages/daemon/src/services/artifacts/port.ts";
import { gate, never, type Play, tempFile, text, ticks, turnWhenSettled, until } from "../../broker/rig.ts";
import { manualClock } from "../../clock.ts";
import { refuseWrites } from "../../store.ts";
import { answering, COLLECTING, echo, messageOf, nexRig, outboundOf, silent, stuck, telegram } from "./rig.ts";

const STAGES = ["receive", "acl", "hooks", "queue", "prepare", "execute", "deliver", "complete"];

describe("a message from a platform", () => {
	test("passes all stages; its trace is part of the turn, its answer is handed to where it came from", async () => {
		const { hear, look, asked, settled, frames } = nexRig(echo, { config: telegram() });
		const target = { to: "c1", thread_id: "9", reply_to: "m7" };
		const { eventId, runId, disposition } = await hear("hi", { eventId: "m7", target });
		expect(disposition).toEqual({ state: "started", runId });
		await until(() => look.turn(runId!)?.trace?.stages.at(-1)?.stage === "complete");
		expect(look.event(eventId)).toMatchObject({
			session: "telegram:bot:c1:9",
			origin: { channel: "telegram", account: "bot", sourceId: "m7", sender: "ann", senderName: "Ann" },
		});
		const { trace } = look.turn(runId!)!;
		expect(trace).toMatchObject({ channel: "telegram", account: "bot", sender: "ann", deliveries: ["dlv_1"] });
		expect(trace!.stages.map(({ stage }) => stage)).toEqual(STAGES);
		for (const { ms, at } of trace!.stages) expect([ms >= 0, at > 0]).toEqual([true, true]);
		expect(asked).toEqual([
			{ runId, account: { channel: "telegram", id: "bot" }, target, options: { disableStreaming: false } },
		]);
		expect(settled).toEqual(["dlv_1"]);
		expect((await frames(runId!))[0]).toMatchObject({ target: { ...target, channel: "telegram", account: "bot" } });
	});

	test("tells the engine who wrote it, and which agent is asked", async () => {
		const { asked, play } = answering();
		const { hear, look } = nexRig(play, { config: telegram() });
		const { runId } = await hear("hi");
		await turnWhenSettled(look, runId!);
		expect(asked).toMatchObject([
			{ agent: "main", sender: { id: "ann", name: "Ann", channel: "telegram", account: "bot" } },
		]);
	});

	test("A17: tells the engine of a group, and of others whose messages it answers as well", async () => {
		const config = telegram({ session: "office", queue: COLLECTING });
		/** The trace of the run that answers these messages together. */
		const senderOf = async (...messages: Parameters<typeof messageOf>[1][]) => {
			const clock = manualClock(1000);
			const { asked, play } = answering();
			const { hear } = nexRig(play, { config, clock });
			for (const fields of messages) await hear("hi", fields);
			clock.advance(100);
			await until(() => asked.length === 1);
			return asked[0]!.sender;
		};
		const ann = { id: "ann" };
		const place = { id: "ann", channel: "telegram", account: "bot" };
		expect(await senderOf({ from: ann }, { from: ann })).toEqual(place);
		expect(await senderOf({ from: { id: "bob" } }, { from: ann })).toEqual({ ...place, amongOthers: true });
		const group = { chat: { id: "c2", type: "group" as const }, mention: true };
		expect(await senderOf({ from: ann, ...group }, { from: ann })).toEqual({ ...place, group: true });
	});

	test("whose turn the store refuses at first has each stage once in its trace", async () => {
		const rig = nexRig(echo, { config: telegram() });
		const { hear, look } = rig;
		let tries = 0;
		refuseWrites(rig, ({ table, op }) => table === "turns" && op === "settle" && tries++ === 0);
		const { runId } = await hear("hi");
		await until(() => look.turn(runId!)?.trace?.stages.at(-1)?.stage === "complete");
		expect(look.turn(runId!)!.trace!.stages.map(({ stage }) => stage)).toEqual(STAGES);
	});

	test("I10: redelivered, it gets the same answer and no second run: at once, later and after a restart", async () => {
		const path = tempFile();
		const same = { eventId: "same" };
		const first = nexRig(echo, { config: telegram(), path });
		const [one, two] = await Promise.all([first.hear("hi", same), first.hear("hi", same)]);
		expect(two).toEqual(one);
		await turnWhenSettled(first.look, one.runId!);
		expect(await first.hear("hi", same)).toEqual(one);
		expect(first.nex.stats()).toMatchObject({ received: 3, duplicates: 2 });
		const second = nexRig(echo, { config: telegram(), path });
		expect(await second.hear("hi", same)).toEqual(one);
		expect(second.look.turns({ limit: 9 })).toHaveLength(1);
		// Another account's message with the same id is another message.
		const message = messageOf("hi", same);
		const other = await second.nex.receive({ channel: "telegram", account: "other", message });
		expect(other.eventId).not.toBe(one.eventId);
	});

	test("that could not be taken in is not acknowledged, and may come again", async () => {
		const { hear, bus, look } = nexRig(echo, { config: telegram() });
		const create = bus.create.bind(bus);
		bus.create = () => Promise.reject(new Error("no room"));
		await expect(hear("hi", { eventId: "same" })).rejects.toMatchObject({ code: "internal", message: "no room" });
		expect(look.events({ limit: 9 })).toEqual([]);
		bus.create = create;
		expect((await hear("hi", { eventId: "same" })).disposition.state).toBe("started");
	});

	test("that can never be answered is on record as rejected, so that the platform does not send it again", async () => {
		const { hear, look } = nexRig(echo, { config: telegram(), limits: { textCharsMax: 10 } });
		for (const said of [" ", "x".repeat(5000)]) {
			const { eventId, disposition } = await hear(said);
			expect(disposition).toMatchObject({ state: "rejected", because: expect.any(String) });
			expect(look.event(eventId)!.text.length).toBeLessThanOrEqual(2000);
		}
	});

	test("by default interrupts: backlog and new message are answered in one run, delivered once per chat", async () => {
		const asked: EngineRequest[] = [];
		const allWait = gate();
		const play: Play = async function* (request) {
			asked.push(request);
			yield text("half");
			if (asked.length === 1) await allWait.opened;
		};
		const rig = nexRig(play, { config: telegram({ session: "office" }) });
		const say = (said: string, to: string) => rig.hear(said, { target: { to } });
		const one = await say("one", "c1");
		await until(() => rig.broker.live(one.runId!)?.text === "half");
		const more = await Promise.all([say("two", "c1"), say("three", "c2"), say("four", "c1")]);
		allWait.open();
		await until(() => asked.length === 2);
		const { runId } = asked[1]!;
		expect(rig.look.event(one.eventId)?.disposition).toMatchObject({ state: "superseded", by: more[0].eventId });
		for (const { eventId } of more) expect(rig.look.event(eventId)?.disposition).toEqual({ state: "batched", runId });
		await until(() => rig.asked.length === 3);
		const places = rig.asked.flatMap((request) =>
			"runId" in request && request.runId === runId ? [request.target.to] : [],
		);
		expect(places).toEqual(["c1", "c2"]);
	});

	test("two threads of a chat that share a session are both answered", async () => {
		const clock = manualClock(1000);
		const rig = nexRig(echo, { config: telegram({ session: "office", queue: COLLECTING }), clock });
		for (const thread of ["1", "2", "1"]) await rig.hear("hi", { target: { to: "c1", thread_id: thread } });
		clock.advance(100);
		await until(() => rig.asked.length === 2);
		expect(rig.asked.map(({ target }) => target.thread_id)).toEqual(["1", "2"]);
	});

	test("the queue mode is the account's before the channel's, and the session's before both", async () => {
		const accounts = { bot: { queue: { mode: "followup" as const } } };
		const sessions = { "telegram:bot:c2": { queue: { mode: "steer" as const, messagesMax: 3 } } };
		const config = { ...telegram({ queue: { mode: "collect" }, accounts }), sessions };
		const { nex, look } = nexRig(stuck, { config, limits: { queueMessagesMax: 7 } });
		const settings = async (account: string, chat: string) => {
			const message = messageOf("hi", { chat: { id: chat, type: "direct" } });
			const { eventId } = await nex.receive({ channel: "telegram", account, message });
			return look.event(eventId)?.queue;
		};
		expect(await settings("bot", "c1")).toEqual({
			mode: "followup",
			collectMs: 1500,
			messagesMax: 7,
			atCap: "summarise",
		});
		expect(await settings("other", "c1")).toMatchObject({ mode: "collect" });
		expect(await settings("bot", "c2")).toMatchObject({ mode: "interrupt", messagesMax: 3 });
	});

	test("reject: the sender gets the busy text, rarely, and the message is on record; an empty text is never sent", async () => {
		const busy = (busyText: string) => telegram({ queue: { mode: "reject" }, busyText });
		const clock = manualClock(1000);
		const { hear, texts } = nexRig(stuck, { config: busy("wait"), clock });
		await hear("one");
		const rejected = { state: "rejected", because: expect.stringContaining("busy") };
		expect((await hear("two")).disposition).toEqual(rejected);
		clock.advance(9_999);
		expect((await hear("three")).disposition).toEqual(rejected);
		expect(texts()).toEqual(["wait"]);
		clock.advance(1);
		await hear("four");
		expect(texts()).toEqual(["wait", "wait"]);
		const quiet = nexRig(stuck, { config: busy("") });
		for (const said of ["one", "two"]) await quiet.hear(said);
		expect(quiet.texts()).toEqual([]);
	});

	test("drop_newest: what the cap keeps out is on record as dropped", async () => {
		const queue = { mode: "followup" as const, messagesMax: 1, atCap: "drop_newest" as const };
		const { hear, look } = nexRig(stuck, { config: telegram({ queue }) });
		for (const said of ["one", "two"]) await hear(said);
		const { eventId, disposition } = await hear("three");
		expect(disposition).toMatchObject({ state: "dropped", because: expect.stringContaining("1 messages wait") });
		expect(look.event(eventId)?.disposition).toEqual(disposition);
	});
});

describe("access", () => {
	test("a stranger gets a code; after approval the next message is answered, and after revocation it is not", async () => {
		const { nex, hear, texts, look } = nexRig(echo);
		const { disposition } = await hear("let me in");
		expect(disposition).toMatchObject({ state: "rejected", because: expect.stringContaining("unknown sender") });
		await hear("hello?");
		expect(texts()).toHaveLength(1);
		const [waiting] = await nex.pairing.list();
		expect(texts()[0]).toContain(`nexus pair ${waiting!.code}`);
		expect(waiting).toMatchObject({ sender: "ann", senderName: "Ann", state: "pending" });
		await nex.pairing.approve(waiting!.code.toLowerCase());
		expect((await nex.pairing.approve(waiting!.code)).state).toBe("approved");
		expect(texts()).toEqual([expect.anything(), expect.stringContaining("approved")]);
		expect((await hear("now?")).disposition.state).toBe("started");
		await nex.pairing.revoke(waiting!);
		expect((await hear("still?")).disposition.state).toBe("rejected");
		expect(look.sessions({ limit: 9 })).toHaveLength(1);
		expect(nex.stats()).toMatchObject({ rejected: 3 });
	});

	test("a private platform lets everybody in; a group needs a mention", async () => {
		const { nex, look } = nexRig(echo);
		const said = async (fields: Parameters<typeof messageOf>[1]) =>
			(await nex.receive({ channel: "signal", account: "a", message: messageOf("hi", fields), public: false }))
				.disposition.state;
		const chat = { id: "g", type: "group" as const };
		expect(await said({})).toBe("started");
		expect(await said({ chat })).toBe("rejected");
		// A message to other people is not stored.
		expect(look.events({ state: "rejected", limit: 9 })).toMatchObject([{ text: "" }]);
		expect(await said({ chat, mention: true })).toBe("started");
	});

	test("I11: rejected messages are forgotten beyond the limit", async () => {
		const { hear, look } = nexRig(echo, { config: { limits: { rejectedEventsMax: 5 } } });
		for (let n = 0; n < 64; n++) await hear("spam");
		expect(look.events({ limit: 99 })).toHaveLength(5);
	});
});

describe("plugins on the way", () => {
	test("rewrite, attach and switch streaming off; all calls are in the trace", async () => {
		const asked: EngineRequest[] = [];
		const completed: unknown[] = [];
		const plugins: Plugin[] = [
			{ name: "a", onReceive: ({ event }) => ({ text: event.text.toUpperCase(), attach: "from a" }) },
			{
				name: "b",
				onPrepare: ({ event, hooks }) => {
					hooks.context.disable_streaming = true;
					return { text: `${event.text}!`, attach: "from b" };
				},
				onComplete: ({ response, disposition }) => completed.push(response, disposition),
			},
			{ name: "c", onReceive: () => Promise.reject(new Error("odd")) },
		];
		const rig = nexRig(
			async function* (request, signal, context) {
				asked.push(request);
				yield* echo(request, signal, context);
			},
			{ config: telegram(), plugins },
		);
		const { eventId, runId } = await rig.hear("hi");
		await until(() => rig.look.turn(runId!)?.trace?.stages.at(-1)?.stage === "complete");
		expect(asked[0]!.messages.map((message) => message.text)).toEqual([
			"[Context]\nfrom a",
			"[Context]\nfrom b",
			"HI!",
		]);
		expect(rig.look.event(eventId)?.text).toBe("HI");
		expect(rig.asked[0]).toMatchObject({ options: { disableStreaming: true } });
		expect(completed).toMatchObject([
			{ text: "re HI!", status: "completed", deliveries: [{ id: "dlv_1", success: true }] },
			{ state: "started", runId },
		]);
		const calls = rig.look.turn(runId!)!.trace!.hooks.map(({ plugin, hook, outcome }) => [plugin, hook, outcome]);
		expect(calls).toEqual([
			["a", "onReceive", "changed"],
			["c", "onReceive", "failed"],
			["b", "onPrepare", "changed"],
			["b", "onComplete", "ok"],
		]);
		expect(rig.nex.stats().plugins).toMatchObject([{ name: "a", calls: 1 }, { name: "b" }, { name: "c", failures: 1 }]);
	});

	test.each(["onReceive", "onPrepare"])("%s can reject, with the reason on record", async (hook) => {
		const plugins = [{ name: "no", [hook]: () => ({ reject: "not today" }) }];
		const { nex, hear, look, asked } = nexRig(echo, { config: telegram(), plugins });
		const { eventId, disposition } = await hear("hi");
		expect(disposition).toEqual({ state: "rejected", because: "not today" });
		expect(look.event(eventId)?.disposition).toEqual(disposition);
		const api = await nex.receive({ session: "main", text: "hi" });
		expect(api.disposition).toEqual(disposition);
		expect([look.turns({ limit: 9 }), asked]).toEqual([[], []]);
	});

	test("a message does not overtake one whose plugin takes longer", async () => {
		const door = gate();
		const seen: string[] = [];
		const plugin: Plugin = {
			name: "slow",
			onReceive: async ({ event }) => void (event.text === "one" && (await door.opened)),
		};
		const { nex } = nexRig(
			async function* ({ messages }) {
				seen.push(messages.at(-1)!.text);
				yield text("ok");
			},
			{ plugins: [plugin] },
		);
		const both = [nex.receive({ session: "main", text: "one" }), nex.receive({ session: "main", text: "two" })];
		const other = await nex.receive({ session: "other", text: "three" });
		expect(other.disposition.state).toBe("started");
		// Another session's run begins while the plugin holds this one up.
		await until(() => seen.length === 1);
		door.open();
		await Promise.all(both);
		await until(() => seen.length === 3);
		expect(seen).toEqual(["three", "one", "two"]);
	});

	test("I11: so many wait for their plugins and no more; one that cannot be taken in does not hold up the next", async () => {
		const door = gate();
		const plugin: Plugin = { name: "slow", onReceive: () => door.opened };
		const { nex } = nexRig(echo, { plugins: [plugin], config: { limits: { hooksWaitingMax: 2 } } });
		const say = (said: string) => nex.receive({ session: "main", text: said });
		const one = say("one");
		const two = say("two");
		await expect(say("three")).rejects.toMatchObject({ code: "busy", message: expect.stringContaining("2 messages") });
		door.open();
		expect((await one).disposition.state).toBe("started");
		await two;
		const bus = nexRig(echo, { plugins: [plugin] });
		const create = bus.bus.create.bind(bus.bus);
		bus.bus.create = () => {
			bus.bus.create = create;
			return Promise.reject(new Error("no room"));
		};
		const refused = expect(bus.nex.receive({ session: "main", text: "one" })).rejects.toThrow("no room");
		const { eventId } = await bus.nex.receive({ session: "main", text: "two" });
		await until(() => bus.look.event(eventId)?.disposition.state === "started");
		await refused;
	});

	test("what they said to each of several messages counts for the run that answers them together", async () => {
		const plugin: Plugin = {
			name: "notes",
			onReceive: ({ event }) => ({
				attach: `about ${event.text}`,
				...(event.text === "one" && { context: { disable_streaming: true } }),
			}),
		};
		const clock = manualClock(1000);
		const { asked, play } = answering();
		const rig = nexRig(play, { config: telegram({ queue: COLLECTING }), clock, plugins: [plugin] });
		for (const said of ["one", "two"]) await rig.hear(said);
		clock.advance(100);
		await until(() => asked.length === 1);
		const said = asked[0]!.messages.map((message) => message.text);
		expect(said).toEqual(expect.arrayContaining(["[Context]\nabout one", "[Context]\nabout two", "one", "two"]));
		expect(rig.asked).toMatchObject([{ options: { disableStreaming: true } }]);
	});

	test("see whether the sender is the owner", async () => {
		const seen: boolean[] = [];
		const plugin: Plugin = { name: "who", onReceive: ({ sender }) => void seen.push(sender.owner) };
		const config = telegram({ acl: { owner: ["ann"], unknown: "allow" } });
		const { hear } = nexRig(echo, { plugins: [plugin], config });
		await hear("hi");
		await hear("hi", { from: { id: "bob" } });
		expect(seen).toEqual([true, false]);
	});

	test("a plugin that hangs costs its time and no more", async () => {
		const clock = manualClock(1000);
		const { nex } = nexRig(echo, { clock, plugins: [{ name: "slow", onReceive: () => never }] });
		const accepted = nex.receive({ session: "main", text: "hi" });
		await ticks(2);
		clock.advance(5000);
		expect((await accepted).disposition.state).toBe("started");
		expect(nex.stats().plugins).toMatchObject([{ timeouts: 1 }]);
	});

	test("an invalid plugin is refused at the start", async () => {
		const { nex } = nexRig(echo, { config: { plugins: ["./nowhere.ts"] } });
		await expect(nex.load()).rejects.toMatchObject({
			code: "config",
			message: expect.stringContaining("./nowhere.ts"),
		});
	});
});

describe("a message from the page or the API", () => {
	test("goes the same way, as the owner's, is pulled and not pushed, and its trace is whole with the turn", async () => {
		const { nex, look, asked } = nexRig(echo);
		const accepted = await nex.receive({ session: "main", text: "hi", idempotencyKey: "k" });
		expect(accepted).toEqual({
			eventId: expect.stringMatching(/^evt_/),
			disposition: { state: "started", runId: accepted.runId },
			runId: accepted.runId,
		});
		const { trace } = await turnWhenSettled(look, accepted.runId!);
		expect(trace).toMatchObject({ channel: "web", account: "web", sender: "owner", deliveries: [] });
		expect(trace!.stages.map(({ stage }) => stage)).toEqual(STAGES);
		expect(await nex.receive({ session: "main", text: "hi", idempotencyKey: "k" })).toEqual(accepted);
		expect([look.turns({ limit: 9 }).length, asked]).toEqual([1, []]);
	});
});

describe("start and stop", () => {
	test("every account is listened to, and a message is safe when the listener returns", async () => {
		const channels = { ...telegram().channels, signal: { accounts: { one: {}, two: {} } } };
		const { nex, listeners, look } = nexRig(stuck, { config: { channels } });
		nex.start();
		await until(() => listeners.size === 3);
		await listeners.get("signal/two")!(messageOf("hi"), "evt_1");
		expect(look.events({ limit: 9 })).toMatchObject([{ origin: { channel: "signal", account: "two" } }]);
	});

	test("an adapter without monitor is not listened to; an account that cannot be keeps no other from it", async () => {
		const accounts = { one: {}, two: {} };
		const heard: string[] = [];
		const known = outboundOf().outbound;
		const info: typeof known.info = async (channel) => ({
			...(await known.info(channel)),
			supports: channel === "mute" ? ["send"] : ["monitor"],
		});
		const monitor = (channel: string, account: string) => {
			if (account === "one") throw new Error("it is listened to already");
			heard.push(`${channel}/${account}`);
		};
		const config = { channels: { mute: { accounts }, chat: { accounts } } };
		const { nex } = nexRig(echo, { config, outbound: { info, monitor } });
		nex.start();
		await until(() => heard.length > 0);
		await ticks(5);
		expect(heard).toEqual(["chat/two"]);
	});

	test("Z20: files of platforms are shown as transfers, those of strangers are not", async () => {
		const reported: TransferInfo[] = [];
		const { nex, listeners } = nexRig(echo, {
			config: telegram({ acl: { allow: ["ann"], unknown: "deny" } }),
			arrived: (message) => reportAttachments({ report: (one) => void reported.push(one) }, message, 7),
		});
		nex.start();
		await until(() => listeners.size === 1);
		const hear = listeners.get("telegram/bot")!;
		const attachments = [{ name: "cat.png", contentType: "image/png", data: "aGVsbG8=" }];
		await hear(messageOf("hi", { eventId: "e1", attachments }), "evt_1");
		await hear(messageOf("hi", { eventId: "e2", attachments, from: { id: "eve" } }), "evt_2");
		expect(reported).toEqual([
			{
				id: "attachment/telegram/bot/e1/0",
				appId: "owner",
				kind: "attachment",
				state: "completed",
				name: "cat.png",
				transferredBytes: 5,
				totalBytes: 5,
				startedAt: 7,
				updatedAt: 7,
			},
		]);
	});

	test("I10: queued messages are answered after a restart, with their stages and target", async () => {
		const path = tempFile();
		const config = telegram({ queue: { mode: "followup" } });
		const first = nexRig(silent, { config, path, clock: manualClock(Date.now()), dies: true });
		await first.hear("one");
		const two = await first.hear("two", { target: { to: "c7" } });
		expect(two.disposition).toEqual({ state: "queued" });

		const second = nexRig(echo, { config, path });
		await second.nex.load();
		await second.nex.recover();
		second.nex.start();
		await until(() => second.look.event(two.eventId)?.disposition.state === "started");
		const { disposition } = second.look.event(two.eventId)!;
		const runId = "runId" in disposition ? disposition.runId! : "";
		await until(() => second.look.turn(runId)?.trace?.stages.length === STAGES.length);
		expect(second.asked.find((request) => "runId" in request && request.runId === runId)?.target).toEqual({ to: "c7" });
	});

	test("when stopped nothing is taken in, and what is completing is waited for", async () => {
		const door = gate();
		const plugins: Plugin[] = [{ name: "slow", onComplete: () => door.opened }];
		const { nex, look } = nexRig(echo, { plugins });
		const { runId } = await nex.receive({ session: "main", text: "hi" });
		await turnWhenSettled(look, runId!);
		const stopped = nex.stop(10_000);
		await expect(nex.receive({ session: "main", text: "hi" })).rejects.toMatchObject({ code: "unavailable" });
		door.open();
		await stopped;
		expect(look.turn(runId!)?.trace?.hooks).toMatchObject([{ plugin: "slow", hook: "onComplete", outcome: "ok" }]);
	});

	test("a session that cannot be one is refused at once", () => {
		const config = { channels: { telegram: { session: "not a label" } } };
		expect(() => nexRig(echo, { config })).toThrow(expect.objectContaining({ code: "config" }));
	});
});
