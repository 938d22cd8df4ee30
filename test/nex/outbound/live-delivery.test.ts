import { expect, it } from "vitest";
import { trackDelivery } from "./live-delivery-rig.ts";

it("I7: a failure reported before the message's own answer waits for it", async () => {
	const { live, stored } = await trackDelivery();
	live.intend({ ordinal: 1, nonce: "n1", from: 0, to: 3, text: "one" });
	live.change("failed", "n1", { messageId: "m1", error: "no phone" });
	expect(live.unfinished).toMatchObject({ nonce: "n1", state: "intended" });
	live.change("sent", "n1", { messageId: "m1", to: 3 });
	await live.recorded();
	expect(live.unfinished).toBeUndefined();
	expect(stored()).toEqual(live.row);
	expect(live.row.messages).toMatchObject([{ state: "failed", error: "no phone", messageId: "m1" }]);
});

it("I7: the range of a message that was announced complete is given back after a crash", async () => {
	const { live, again } = await trackDelivery();
	live.intend({ ordinal: 1, nonce: "n1", from: 0, to: 42 });
	await live.recorded();
	expect(again().resume()).toEqual({ position: 0, ordinal: 1, uncertain: { nonce: "n1", to: 42 } });
});
