import type { EngineRequest } from "@nexus-stream/protocol/engine";
import { describe, expect, test } from "vitest";
import { gate, type Play, tempFile, text, until } from "../../broker/rig.ts";
import { answering, nexRig, telegram } from "./rig.ts";

const config = telegram({
	acl: { owner: ["olga"], unknown: "allow" },
	session: "main",
	queue: { mode: "followup", messagesMax: 1, atCap: "summarise" },
});

/** The first run waits; what comes meanwhile becomes one line. */
async function crowded(senders: readonly string[], path?: string) {
	const asked: EngineRequest[] = [];
	const door = gate();
	const play: Play = async function* (request) {
		asked.push(request);
		yield text("…");
		if (asked.length === 1) await door.opened;
	};
	const parts = nexRig(play, { config, path });
	await parts.nex.load();
	const say = (sender: string, words: string) =>
		parts.hear(words, { from: { id: sender }, chat: { id: sender, type: "direct" }, target: { to: sender } });
	await say("olga", "first");
	await until(() => asked.length === 1);
	for (const sender of senders) await say(sender, `of ${sender}`);
	return { ...parts, parts, door, say, requests: asked };
}

const deliveredOf = (asked: readonly object[], runId: string) =>
	asked.flatMap((one) => ("runId" in one && one.runId === runId && "target" in one ? [one.target] : []));

describe("A10: a summary of waiting messages", () => {
	test("has the rights that all of their senders have, not those of the newest one", async () => {
		const { door, requests, asked, parts } = await crowded(["guest", "olga", "olga"]);
		door.open();
		await until(() => requests.length >= 2);
		const { messages, owner, deniedTools, sender } = requests[1]!;
		expect(messages.at(-1)?.text).toBe("[2 earlier messages, shortened] of guest · of olga");
		expect({ owner, deniedTools }).toEqual({ owner: false, deniedTools: ["bash", "write", "edit", "mcp__*"] });
		// No person's memory is used, and no approval of the one counts for the other.
		expect(sender).toMatchObject({ id: "olga", amongOthers: true });
		await until(() => requests.length >= 3);
		expect(requests[2]).toMatchObject({ owner: true, sender: { id: "olga" } });
		await parts.runSettled(requests[2]!.runId);
		expect(deliveredOf(asked, requests[2]!.runId)).toEqual([{ to: "olga" }]);
	});

	test("is answered in every chat that it holds a message of, once", async () => {
		const { door, requests, asked } = await crowded(["guest", "other", "guest", "olga", "olga"]);
		door.open();
		await until(() => requests.length >= 2);
		expect(requests[1]!.messages.at(-1)?.text).toContain("[4 earlier messages");
		const chats = deliveredOf(asked, requests[1]!.runId);
		expect(chats).toHaveLength(3);
		expect(chats).toEqual(expect.arrayContaining([{ to: "guest" }, { to: "other" }, { to: "olga" }]));
	});

	test("keeps both over a restart", async () => {
		const path = tempFile();
		const before = await crowded(["guest", "olga", "olga"], path);
		const [summary] = before.look.queued();
		expect(summary?.facts).toMatchObject({ rights: { owner: false }, sender: { owner: false } });
		before.nex.close();
		before.door.open();
		await before.bus.close();
		const { asked: requests, play } = answering();
		const after = nexRig(play, { config, path });
		await after.nex.load();
		await after.nex.recover(async () => {});
		await until(() => requests.length >= 2);
		expect(requests[0]).toMatchObject({ owner: false, sender: { amongOthers: true } });
		expect(deliveredOf(after.asked, requests[0]!.runId)).toEqual([{ to: "guest" }, { to: "olga" }]);
	});

	test("of one person has that person's rights and memory", async () => {
		const { door, requests } = await crowded(["olga", "olga", "olga"]);
		door.open();
		await until(() => requests.length >= 2);
		expect(requests[1]).toMatchObject({ owner: true });
		expect(requests[1]!.sender).toEqual({ id: "olga", channel: "telegram", account: "bot" });
	});
});
