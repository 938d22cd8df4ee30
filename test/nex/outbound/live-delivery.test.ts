import { expect, it } from "vitest";
import { trackDelivery } from "./live-delivery-rig.ts";

it("I7: a failure reported before the message's own answer waits for it", async () => {
	const { live, stored } = await trackDelivery();
	live.intend({ ordinal: 1, nonce: "n1", from: 0, to: 3, text: "one" });
	live.failed("n1", { messageId: "m1", error: "no phone" });
	expect(live.unfinished).toMatchObject({ nonce: "n1", state: "intended" });
	live.sent("n1", { messageId: "m1", to: 3 });
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

it("I7: the cursor moves only when a message is finished, and never back; its text is kept until then", async () => {
	const { live, stored } = await trackDelivery();
	live.intend({ ordinal: 1, nonce: "n1", from: 0, to: 9, text: "one", done: 1 });
	live.intend({ ordinal: 2, nonce: "n2", from: 0 });
	live.created("n2", "m2");
	live.shown("n2", 7);
	await live.recorded();
	expect(stored()).toMatchObject({
		cursor: 0,
		messages: [
			{ text: "one", done: 1 },
			{ state: "open", shown: 7, edits: 1 },
		],
	});
	live.sent("n1", { messageId: "m1", to: 9, carry: "```" });
	live.sent("n2", { messageId: "m2", to: 3 });
	await live.recorded();
	expect(stored()).toEqual(live.row);
	expect(live.row).toMatchObject({
		cursor: 9,
		messages: [
			{ state: "sent", to: 9 },
			{ state: "sent", to: 3, edits: 2 },
		],
	});
	expect(stored().carry).toBeUndefined();
	expect(stored().messages[0]).not.toHaveProperty("text", "one");
});

it("I7: a message that exists is not withdrawn; one in doubt is intended again under its place when it is announced again", async () => {
	const { live, stored } = await trackDelivery();
	for (const nonce of ["n1", "n2", "n3"]) live.intend({ ordinal: 1, nonce, from: 0 });
	live.created("n1", "m1");
	live.withdraw("n1");
	live.withdraw("n2");
	live.doubt("n3");
	live.intend({ ordinal: 1, nonce: "n3", from: 0, to: 4, text: "two!" });
	await live.recorded();
	expect(stored()).toEqual(live.row);
	expect(live.row.messages).toMatchObject([
		{ ordinal: 1, nonce: "n1", state: "open" },
		{ ordinal: 3, nonce: "n3", state: "intended", text: "two!" },
	]);
	live.remove("n1");
	expect(live.row.messages).toHaveLength(1);
});
