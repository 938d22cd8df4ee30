import { describe, expect, test } from "vitest";
import { type AclConfig, type AclQuestion, aclOf, decide } from "../../../packages/daemon/src/nex/access/acl.ts";

const direct = { id: "c1", type: "direct" } as const;
const group = { id: "g1", type: "group" } as const;
const question = (fields: Partial<AclQuestion> = {}): AclQuestion => ({
	channel: "telegram",
	account: "bot",
	agent: "main",
	sender: "ann",
	chat: direct,
	mention: false,
	public: true,
	paired: false,
	...fields,
});
const allow = { verdict: "allow", owner: false };
const deny = { verdict: "deny" };
const pair = { verdict: "pair" };

describe("who may talk", () => {
	test.each<[string, AclConfig, Partial<AclQuestion>, object]>([
		["a stranger on a public platform is to be paired", {}, {}, pair],
		["a stranger on a private platform may", {}, { public: false }, allow],
		["a stranger may where the config says so", { unknown: "allow" }, {}, allow],
		["a stranger may not where the config says so", { unknown: "deny" }, { public: false }, deny],
		["a paired sender may", {}, { paired: true }, allow],
		["an allowed sender may", { allow: ["ann"] }, {}, allow],
		["another sender is still a stranger", { allow: ["bob"] }, {}, pair],
		["everybody may", { allow: ["*"] }, {}, allow],
		["the owner may, and is known as such", { owner: ["ann"] }, {}, { verdict: "allow", owner: true }],
		["deny is stronger than allow", { allow: ["ann"], deny: ["ann"] }, {}, deny],
		["deny is stronger than owner", { owner: ["ann"], deny: ["ann"] }, {}, deny],
		["deny is stronger than being paired", { deny: ["*"] }, { paired: true }, deny],
		["a choice of chat fits", { allow: [{ chat: "c1" }] }, {}, allow],
		["a choice of another chat does not", { allow: [{ chat: "c2" }] }, {}, pair],
		["everything of a choice has to fit", { allow: [{ sender: "ann", agent: "support" }] }, {}, pair],
		["a choice of agent fits", { allow: [{ sender: "ann", agent: "support" }] }, { agent: "support" }, allow],
		["a denied agent only", { allow: ["ann"], deny: [{ agent: "support" }] }, {}, allow],
		["a group without a mention is not meant for us", { allow: ["ann"] }, { chat: group }, deny],
		["not even from the owner", { owner: ["ann"] }, { chat: group }, deny],
		["a group with a mention", { allow: ["ann"] }, { chat: group, mention: true }, allow],
		["every group message", { allow: ["ann"], groups: "always" }, { chat: group }, allow],
		["no group at all", { allow: ["ann"], groups: "never" }, { chat: group, mention: true }, deny],
		["a stranger in a group gets no code", {}, { chat: group, mention: true }, deny],
		["a whole group", { allow: [{ chat: "g1" }] }, { chat: group, mention: true }, allow],
	])("%s", (_, acl, fields, verdict) => {
		expect(decide(acl, question(fields))).toMatchObject(verdict);
	});

	test("a denial says why", () => {
		expect(decide({ deny: ["ann"] }, question())).toEqual({ verdict: "deny", because: "ann is denied on telegram" });
	});
});

test("an account adds to the channel's lists and overrides its words", () => {
	const acl = aclOf(
		{ owner: ["o1"], allow: ["a1"], deny: ["d1"], unknown: "allow", groups: "never" },
		{ owner: ["o2"], allow: ["a2"], deny: ["d2"], unknown: "deny" },
	);
	expect(acl).toEqual({
		owner: ["o1", "o2"],
		allow: ["a1", "a2"],
		deny: ["d1", "d2"],
		unknown: "deny",
		groups: "never",
	});
});
