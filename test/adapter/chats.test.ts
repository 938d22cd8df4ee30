/** A chat has several spellings; two spellings of one chat are one delivery. */

import { describe, expect, test } from "vitest";
import type { Target } from "../../packages/adapter/src/port.ts";
import { isSameChat } from "../../packages/platforms/src/platforms.ts";

const NPUB = "npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6";
const NPUB_HEX = "3bf0c63fcb93463407af97a5e5ee64fa883d107ef9e558472c4eb9aaaefa459d";

/** The target that an inbound message stores, then targets that a person may type for the same chat, then other chats. */
const CHATS: Readonly<Record<string, { stored: Target; same: readonly Target[]; other: readonly Target[] }>> = {
	telegram: {
		stored: { to: "1001", direct: true },
		same: [{ to: "1001" }, { to: "1001", direct: false, reply_to: "7" }],
		other: [{ to: "-1001" }, { to: "1001", thread_id: "5" }],
	},
	discord: {
		stored: { to: "77", user_id: "1", direct: true, since: "1000" },
		same: [{ to: "77" }, { to: "channel:77" }, { to: "user:1" }, { to: "5", thread_id: "77" }],
		other: [{ to: "78" }, { to: "user:2" }, { to: "1" }, { to: "77", thread_id: "78" }],
	},
	slack: {
		stored: { to: "D1", reply_to: "1.1", direct: true, user_id: "U1", team_id: "T1" },
		same: [{ to: "D1" }, { to: "U1" }],
		other: [{ to: "D2" }, { to: "U2" }, { to: "D1", thread_id: "1.1" }],
	},
	whatsapp: {
		stored: { to: "15551230001", reply_to: "wamid.1", direct: true },
		same: [{ to: "15551230001" }, { to: "+1 (555) 123-0001" }],
		other: [{ to: "15551230002" }, { to: "US.15551230001" }],
	},
	sms: {
		stored: { to: "+15551230001", direct: true, from: "+15550000000" },
		same: [{ to: "+15551230001" }, { to: "+1 555 123-0001" }],
		other: [{ to: "+15551230002" }],
	},
	signal: {
		stored: { to: "+15551230001", direct: true, uuid: "0aB1" },
		same: [{ to: "+1 555 1230001" }, { to: "0ab1" }],
		other: [{ to: "+15551230002" }, { to: "group:0aB1" }],
	},
	imessage: {
		stored: { to: "iMessage;-;+15551230001", direct: true },
		same: [{ to: "any;-;+15551230001" }, { to: "+1 (555) 123-0001" }],
		other: [{ to: "+15551230002" }, { to: "iMessage;+;+15551230001" }],
	},
	gmail: {
		stored: { to: "Bob@Example.com", thread_id: "t1", direct: true, subject: "Hi", reply_to: "<1@x>" },
		same: [{ to: "bob@example.com", thread_id: "t1" }],
		other: [
			{ to: "bob@example.com" },
			{ to: "bob@example.com", thread_id: "t2" },
			{ to: "eve@example.com", thread_id: "t1" },
		],
	},
	nostr: {
		stored: { to: NPUB_HEX, direct: true, reply_to: "e1" },
		same: [{ to: NPUB }, { to: `nostr:${NPUB}` }, { to: NPUB_HEX.toUpperCase() }],
		other: [{ to: "0".repeat(64) }, { to: `thread:${NPUB_HEX}` }],
	},
	unknown: {
		stored: { to: "x", thread_id: "t", extra: 1 },
		same: [{ to: "x", thread_id: "t" }],
		other: [{ to: "x" }, { to: "X", thread_id: "t" }],
	},
};

describe.each(Object.entries(CHATS))("%s", (channel, { stored, same, other }) => {
	test.each(same)("is the same chat: %j", (target) => {
		expect([isSameChat(channel, stored, target), isSameChat(channel, target, stored)]).toEqual([true, true]);
	});
	test.each(other)("is another chat: %j", (target) => {
		expect([isSameChat(channel, stored, target), isSameChat(channel, target, stored)]).toEqual([false, false]);
	});
});

test("groups and mails are told apart by what makes them different", () => {
	expect(isSameChat("imessage", { to: "iMessage;+;chat9" }, { to: "any;+;chat9" })).toBe(true);
	expect(isSameChat("signal", { to: "group:aB=" }, { to: "group:ab=" })).toBe(false);
	expect(isSameChat("telegram", { to: "@Team" }, { to: "@team" })).toBe(true);
	expect(isSameChat("gmail", { to: "a@x, Bob <b@x>" }, { to: "b@x,A@x" })).toBe(true);
	expect(isSameChat("gmail", { to: "a@x", subject: "one" }, { to: "a@x", subject: "two" })).toBe(false);
	expect(isSameChat("__proto__", { to: "a" }, { to: "a" })).toBe(true);
});
