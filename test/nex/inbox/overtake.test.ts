/** Messages that plugins look at hold up their own chat only, and no command. */

import { describe, expect, test } from "vitest";
import { isCommand } from "../../../packages/daemon/src/nex/inbox/commands.ts";
import type { Plugin } from "../../../packages/daemon/src/nex/nex.ts";
import { gate, until } from "../../broker/rig.ts";
import { monitorOf, node } from "../outbound/process-kit.ts";
import { answering, lastOf, nexRig, telegram } from "./rig.ts";

test("ST11: a monitor's messages wait for those of their own chat only, and a command waits for none", async () => {
	const said = [
		["1", "a", "slow"],
		["2", "a", "behind it"],
		["3", "b", "another chat"],
		["4", "a", "/stop"],
		["5", "a", "after the command"],
	];
	const program = `
		for (const [eventId, id, text] of ${JSON.stringify(said)}) process.stdout.write(JSON.stringify({
			type: "message", eventId, chat: { id, type: "direct" }, from: { id: "s" }, target: { to: id }, text, ts: 1 }) + "\\n");
		process.stdin.resume();`;
	const door = gate();
	const heard: string[] = [];
	const ids: string[] = [];
	const monitor = monitorOf({
		command: node(program),
		isUrgent: (message) => isCommand({ channel: "c", account: "a", message }),
		async onMessage({ eventId }, id) {
			heard.push(eventId);
			ids[Number(eventId) - 1] = id;
			if (eventId === "1") await door.opened;
		},
	});
	try {
		await until(() => heard.length >= 3);
		// Different chats and a command start in any order.
		expect(heard.toSorted()).toEqual(["1", "3", "4"]);
		door.open();
		await until(() => heard.length === 5);
		expect(heard.slice(3)).toEqual(["2", "5"]);
		// They are numbered as they came.
		expect(ids).toEqual(ids.toSorted());
	} finally {
		await monitor.stop();
	}
});

/** A chat whose plugin looks at what is marked until the door opens. */
function watched() {
	const door = gate();
	const looked: string[] = [];
	const { asked, play } = answering();
	const plugin: Plugin = {
		name: "slow",
		async onReceive({ event }) {
			looked.push(event.text);
			if (event.text.startsWith("slow")) await door.opened;
			return {};
		},
	};
	const acl = { unknown: "allow", owner: ["olga"] } as const;
	const { hear: say, ...under } = nexRig(play, {
		plugins: [plugin],
		config: telegram({ acl, queue: { mode: "followup" } }),
	});
	return { ...under, door, looked, asked, say };
}

describe("A28: while a plugin looks at a message", () => {
	test("/status, /new and a decision of the same chat are taken up at once", async () => {
		const { say, looked, door, texts } = watched();
		const slow = say("slow one");
		await until(() => looked.length === 1);
		expect((await say("/status")).disposition).toEqual({ state: "handled", because: "/status" });
		expect((await say("approve K7Q2")).disposition).toMatchObject({ state: "answered" });
		expect((await say("/new")).disposition).toEqual({ state: "handled", because: "/new" });
		expect(texts()).toHaveLength(3);
		door.open();
		expect((await slow).disposition).toMatchObject({ state: "started" });
	});

	test("/stop stops that message, and it is on record as cancelled", async () => {
		const { say, looked, door, texts, asked, look } = watched();
		const slow = say("slow one");
		await until(() => looked.length === 1);
		await say("/stop");
		expect(texts()).toEqual(["Stopped."]);
		door.open();
		const { eventId, disposition } = await slow;
		expect(disposition).toEqual({ state: "cancelled" });
		expect(look.event(eventId)?.disposition).toEqual({ state: "cancelled" });
		await say("next");
		await until(() => asked.length === 1);
		expect(lastOf(asked)).toEqual(["next"]);
	});

	test("/stop all also takes back one's own messages that wait behind it, and none of others or later ones", async () => {
		const { say, looked, door, texts, asked } = watched();
		const bob = { from: { id: "bob" } };
		const said = [say("slow one"), say("two"), say("of Bob", bob)];
		await until(() => looked.length === 1);
		await say("/stop all");
		expect(texts()).toEqual(["Nothing is running. 1 message cancelled."]);
		door.open();
		const states = (await Promise.all(said)).map(({ disposition }) => disposition.state);
		expect(states).toEqual(["cancelled", "cancelled", "started"]);
		expect(looked).toEqual(["slow one", "of Bob"]);
		await say("three");
		await until(() => asked.length === 2);
		expect(lastOf(asked)).toEqual(["of Bob", "three"]);
	});

	test("/new begins a session for what comes after it, and not for what came before and is taken up later", async () => {
		const { say, looked, door, look } = watched();
		const slow = say("slow one");
		const behind = say("two");
		await until(() => looked.length === 1);
		await say("/new");
		const after = say("three");
		door.open();
		const [one, two, three] = (await Promise.all([slow, behind, after])).map(
			({ eventId }) => look.event(eventId)!.session,
		);
		expect(two).toBe(one);
		expect(three).not.toBe(one);
	});
});
