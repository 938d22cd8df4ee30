/** Order, de-duplication and dispositions with an await at every call of the store. */

import { describe, expect, test } from "vitest";
import { inboxWrites } from "../../../packages/daemon/src/ledger/inbox/port.ts";
import type { Plugin } from "../../../packages/daemon/src/nex/nex.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { gate, never, tempFile, text, ticks, until } from "../../broker/rig.ts";
import { answering, lastOf, nexRig, silent, stuck, telegram } from "./rig.ts";

const config = telegram({ acl: {} });
const states = (accepted: readonly { disposition: { state: string } }[]) =>
	accepted.map(({ disposition }) => disposition.state);

describe("ST9: a session", () => {
	test("does not hold its turn while a run is prepared or under way", async () => {
		const door = gate();
		const preparing = gate();
		const onPrepare: Plugin["onPrepare"] = async () => {
			preparing.open();
			await door.opened;
		};
		const { nex } = nexRig(stuck, { connection: "bad", plugins: [{ name: "slow", onPrepare }] });
		const one = nex.receive({ session: "main", text: "one" });
		await preparing.opened;
		expect((await nex.receive({ session: "main", text: "two" })).disposition).toEqual({ state: "queued" });
		door.open();
		expect((await one).disposition.state).toBe("started");
		expect((await nex.receive({ session: "main", text: "three" })).disposition).toEqual({ state: "queued" });
	});

	test("starts the messages that it keeps, whatever a read would find of them", async () => {
		const { asked, play } = answering();
		const { nex, ledger, look } = nexRig(play, { connection: "bad" });
		Object.assign(ledger.inbox, { get: async () => undefined });
		const texts = ["one", "two", "three"];
		const accepted = await Promise.all(texts.map((said) => nex.receive({ session: "main", text: said })));
		await until(() => accepted.every(({ eventId }) => look.event(eventId)?.disposition.state === "started"));
		await until(() => asked.length === 3);
		expect(lastOf(asked)).toEqual(texts);
	});

	test("records what it decides before it takes the next input: a run that ends meanwhile starts the message once", async () => {
		const door = gate();
		const recording = gate();
		const ended = gate();
		const asked: string[] = [];
		const { nex, bus, look } = nexRig(async function* ({ messages }) {
			asked.push(messages.at(-1)!.text);
			if (asked.length === 1) await ended.opened;
			yield text("ok");
		});
		const one = await nex.receive({ session: "main", text: "one" });
		const write = bus.write.bind(bus);
		bus.write = async (...args) => {
			recording.open();
			await door.opened;
			return write(...args);
		};
		const two = nex.receive({ session: "main", text: "two" });
		await recording.opened;
		ended.open();
		await until(() => look.turn(one.runId!) !== undefined);
		await ticks(5);
		expect(asked).toEqual(["one"]);
		door.open();
		expect((await two).disposition).toEqual({ state: "queued" });
		await until(() => look.turns({ limit: 9 }).length === 2);
		expect(asked).toEqual(["one", "two"]);
	});
});

describe("ST10: one path for messages", () => {
	test("without plugins a message and its run are one commit", async () => {
		const { nex, bus, look } = nexRig(silent);
		const before = bus.stats.commits;
		const { eventId, runId } = await nex.receive({ session: "main", text: "hi" });
		expect(bus.stats.commits).toBe(before + 1);
		expect(look.event(eventId)?.disposition).toEqual({ state: "started", runId });
	});

	test("a crash while plugins prepare the run loses nothing", async () => {
		const path = tempFile();
		const preparing = gate();
		const onPrepare = async () => {
			preparing.open();
			await never;
		};
		const dead = nexRig(stuck, { path, dies: true, plugins: [{ name: "slow", onPrepare }] });
		void dead.nex.receive({ session: "main", text: "hi", idempotencyKey: "k" });
		await preparing.opened;
		const { asked, play } = answering();
		const { nex, look } = nexRig(play, { path });
		await nex.recover();
		await until(() => look.turns({ limit: 9 }).length === 1);
		expect(lastOf(asked)).toEqual(["hi"]);
		expect((await nex.receive({ session: "main", text: "hi", idempotencyKey: "k" })).disposition.state).toBe("started");
	});

	test("a plugin that rejects a message when its run is prepared leaves it on record, also one that waited", async () => {
		const ended = gate();
		let rejecting = false;
		const plugin: Plugin = { name: "no", onPrepare: () => (rejecting ? { reject: "not today" } : undefined) };
		const logged: string[] = [];
		const level = (name: string) => (_: object, message: string) => void logged.push(`${name}: ${message}`);
		const log = { ...silentLog, debug: level("debug"), warn: level("warn"), error: level("error") };
		const { nex, look } = nexRig(
			async function* () {
				await ended.opened;
				yield text("ok");
			},
			{ plugins: [plugin], log },
		);
		await nex.receive({ session: "main", text: "one" });
		const two = await nex.receive({ session: "main", text: "two" });
		rejecting = true;
		ended.open();
		const rejected = { state: "rejected", because: "not today" };
		await until(() => look.event(two.eventId)?.disposition.state === "rejected");
		expect(look.event(two.eventId)?.disposition).toEqual(rejected);
		// A rejection by a plugin is expected and needs no attention.
		expect(logged.filter((line) => line.endsWith("messages could not be started"))).toEqual([
			"debug: messages could not be started",
		]);
		// The session continues; whether this one has to wait depends on when the store confirms the rejection.
		const three = await nex.receive({ session: "main", text: "three" });
		await until(() => look.event(three.eventId)?.disposition.state === "rejected");
		const four = await nex.receive({ session: "idle", text: "four" });
		expect(four.disposition).toEqual(rejected);
		expect(look.event(four.eventId)?.disposition).toEqual(rejected);
	});

	test("a message that is not queued any more is not started", async () => {
		const ended = gate();
		const asked: string[] = [];
		const { nex, bus, look } = nexRig(async function* ({ messages }) {
			asked.push(messages.at(-1)!.text);
			if (asked.length === 1) await ended.opened;
			yield text("ok");
		});
		await nex.receive({ session: "main", text: "one" });
		const two = await nex.receive({ session: "main", text: "two" });
		const three = await nex.receive({ session: "main", text: "three" });
		const gone = { state: "dropped", because: "another daemon did it" } as const;
		await bus.write([inboxWrites.dispose(two.eventId, gone, ["queued"])]);
		ended.open();
		await until(() => look.turns({ limit: 9 }).length === 2);
		expect(asked).toEqual(["one", "three"]);
		expect(look.event(two.eventId)?.disposition).toEqual(gone);
		expect(look.event(three.eventId)?.disposition.state).toBe("started");
	});
});

describe("ST11: order", () => {
	test("messages of a session keep it, however long each look at the store takes", async () => {
		const { asked, play } = answering();
		const { nex, look } = nexRig(play, { connection: "bad" });
		const texts = Array.from({ length: 20 }, (_, n) => `${n}`);
		await Promise.all(texts.map((said) => nex.receive({ session: "main", text: said, idempotencyKey: said })));
		await until(() => look.turns({ limit: 99 }).length === texts.length);
		expect(lastOf(asked)).toEqual(texts);
	});

	test("a stranger who writes in two chats at once gets one code", async () => {
		const { nex, hear, texts } = nexRig(stuck, { connection: "bad", config });
		const say = (thread: string) => hear("let me in", { target: { to: "c1", thread_id: thread } });
		expect(states(await Promise.all(["1", "2", "3"].map(say)))).toEqual(["rejected", "rejected", "rejected"]);
		expect(texts()).toHaveLength(1);
		expect(await nex.pairing.list()).toHaveLength(1);
	});

	test("a code that is entered twice at once lets the stranger in once", async () => {
		const { nex, hear, texts } = nexRig(stuck, { connection: "bad", config });
		await hear("let me in");
		const { code } = (await nex.pairing.list())[0]!;
		const approved = await Promise.all([nex.pairing.approve(code), nex.pairing.approve(code)]);
		expect(approved.map(({ state }) => state)).toEqual(["approved", "approved"]);
		expect(texts()).toHaveLength(2);
	});
});

describe("ST12: the same message again", () => {
	const message = { session: "main", text: "hi", idempotencyKey: "k" };

	test("in the same tick is one message, and the store is asked once", async () => {
		const { nex, ledger, look } = nexRig(stuck, { connection: "bad" });
		let reads = 0;
		const { byKey } = ledger.inbox;
		Object.assign(ledger.inbox, {
			byKey: (...args: Parameters<typeof byKey>) => {
				reads++;
				return byKey(...args);
			},
		});
		const all = await Promise.all([nex.receive(message), nex.receive(message), nex.receive(message)]);
		expect(new Set(all.map((accepted) => JSON.stringify(accepted))).size).toBe(1);
		expect(reads).toBe(1);
		expect(look.events({ limit: 9 })).toHaveLength(1);
		expect(nex.stats()).toMatchObject({ received: 3, duplicates: 2 });
	});

	test.each(["idle", "busy"])(
		"that another daemon took first is answered with what became of it (%s)",
		async (session) => {
			const path = tempFile();
			const first = nexRig(stuck, { path, dies: true });
			if (session === "busy") await first.nex.receive({ session: "main", text: "before" });
			const taken = await first.nex.receive(message);
			const { nex, ledger, look } = nexRig(stuck, { path });
			if (session === "busy") await nex.receive({ session: "main", text: "meanwhile" }).catch(() => {});
			// It was not there yet when it was looked for.
			const { byKey } = ledger.inbox;
			let reads = 0;
			Object.assign(ledger.inbox, {
				byKey: (...args: Parameters<typeof byKey>) => (reads++ === 0 ? undefined : byKey(...args)),
			});
			expect(await nex.receive(message)).toEqual(taken);
			expect(look.events({ limit: 9 }).filter(({ idempotencyKey }) => idempotencyKey === "k")).toHaveLength(1);
			await expect(nex.receive({ ...message, text: "other" })).rejects.toMatchObject({ code: "conflict" });
		},
	);
});
