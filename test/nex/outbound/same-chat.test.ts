/** The same chat in another spelling is the same delivery: the remainder is sent, and nothing is sent twice. */

import { afterEach, expect, it } from "vitest";
import { deliveryWrites } from "../../../packages/daemon/src/ledger/deliveries/port.ts";
import { createRigWith, finishedRun, type Rig } from "./rig.ts";

let rig: Rig | undefined;
afterEach(async () => {
	await rig?.close();
	rig = undefined;
});

it("I7: a run that was delivered to a chat is not delivered there again because a command names the chat alone", async () => {
	rig = createRigWith((channel) => ({ telegram: channel("full") }));
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

it("I7: a delivery that failed halfway resumes in its own chat when a command names only the chat", async () => {
	rig = createRigWith((channel) => ({ telegram: channel("full") }));
	const { outbound } = rig;
	const runId = await finishedRun(rig.bus, ["one two"]);
	const account = { channel: "telegram", id: "main" };
	const place = { channel: "telegram", account: "main", target: { to: "1001", direct: true } };
	await rig.bus.write([
		deliveryWrites.open({ id: "dlv_old", runId, ...place, options: {}, createdAt: 1 }),
		deliveryWrites.put(
			"dlv_old",
			{ ordinal: 1, nonce: "n1", from: 0, to: 4, state: "sent", messageId: "m1" },
			{ cursor: 4 },
			3,
		),
		deliveryWrites.finish("dlv_old", "failed", "the platform was down", 4),
	]);
	const again = await outbound.deliver({ account, target: { to: "1001" }, runId });
	expect(again.id).toBe("dlv_old");
	expect(await outbound.settled(again.id)).toMatchObject({ state: "complete" });
	expect(rig.visible("1001")).toEqual(["two"]);
});
