import fc from "fast-check";
import { expect, test } from "vitest";
import { type ChatAddress, checkSessionRule, sessionOf } from "../../../packages/daemon/src/nex/inbox/config.ts";
import { isSessionLabel } from "../../../packages/protocol/src/protocol.ts";

const place: ChatAddress = { channel: "telegram", account: "bot", chat: "-100123", sender: "7" };

test.each([
	["chat", place, "telegram:bot:-100123"],
	["chat", { ...place, thread: "9" }, "telegram:bot:-100123:9"],
	["sender", place, "telegram:bot:from:7"],
	["office", place, "office"],
])("%s: a label that a person can read", (rule, where, label) => expect(sessionOf(rule, where)).toBe(label));

test("for all places the label is allowed, stays the same, and differs from that of any other place", () => {
	const id = fc.oneof(
		fc.string({ maxLength: 60 }),
		fc.constantFrom("a", "a:b", "b", ":", "", "+49 1", "x@y.z", "日本", "本日", "😀"),
	);
	const places = fc.record(
		{ channel: id, account: id, chat: id, sender: fc.constant("s"), thread: id },
		{ requiredKeys: ["channel", "account", "chat", "sender"] },
	);
	fc.assert(
		fc.property(fc.array(places, { minLength: 1, maxLength: 8 }), (all) => {
			const labels = new Map<string, string>();
			for (const { sender, ...where } of all) {
				const label = sessionOf("chat", { ...where, sender });
				expect(isSessionLabel(label), label).toBe(true);
				expect(sessionOf("chat", { ...where, sender: "another" })).toBe(label);
				const identity = JSON.stringify([where.channel, where.account, where.chat, where.thread]);
				expect(labels.get(label) ?? identity).toBe(identity);
				labels.set(label, identity);
			}
		}),
	);
});

test("a label that cannot be one is refused with what is allowed", () => {
	for (const rule of ["chat", "sender", "my-office"]) checkSessionRule(rule, "channels.x.session");
	expect(() => checkSessionRule("../etc", "channels.x.session")).toThrow(
		expect.objectContaining({ code: "config", message: expect.stringContaining("channels.x.session") }),
	);
});
