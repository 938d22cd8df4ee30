/** The same chat in another spelling is the same delivery: the remainder is sent, and nothing is sent twice. */

import { expect, it } from "vitest";
import { finishedRun, type Rig, rigForTest } from "./rig.ts";

let rig: Rig;

it("I7: a run that was delivered to a chat is not delivered there again because a command names the chat alone", async () => {
	rig = rigForTest((channel) => ({ telegram: channel("full") }));
	const { outbound } = rig;
	const runId = await finishedRun(rig.bus, ["the whole answer"]);
	const account = { channel: "telegram", id: "main" };
	const first = await outbound.deliver({ account, target: { to: "1001", direct: true }, runId });
	await outbound.settled(first.id);
	const again = await outbound.deliver({ account, target: { to: "1001" }, runId });
	expect(again).toMatchObject({ id: first.id, state: "complete", target: { to: "1001", direct: true } });
	expect(rig.visible("1001")).toEqual(["the whole answer"]);
	const other = await outbound.deliver({ account, target: { to: "1002" }, runId });
	expect(other.id).not.toBe(first.id);
	await outbound.settled(other.id);
});
