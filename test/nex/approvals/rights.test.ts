import { describe, expect, test } from "vitest";
import {
	type AclConfig,
	type AclQuestion,
	commonRights,
	GUEST_RIGHTS,
	mayApprove,
	narrows,
	OWNER_RIGHTS,
	rightsOf,
} from "../../../packages/daemon/src/nex/access/acl.ts";
import { chatCommandIn } from "../../../packages/daemon/src/nex/approvals/prompts.ts";

const question = (fields: Partial<AclQuestion> = {}): AclQuestion => ({
	channel: "telegram",
	account: "bot",
	agent: "main",
	sender: "ann",
	mention: true,
	public: true,
	paired: false,
	chat: { id: "c1", type: "direct" },
	...fields,
});

describe("A11: the rights of a sender", () => {
	const acl: AclConfig = {
		owner: ["olga"],
		allow: [
			"*",
			{ sender: "ann", tools: ["read", "mcp__docs__*"], approve: ["mcp__*"] },
			{ sender: "ann", tools: ["bash"] },
		],
		deny: [{ sender: "ann", agent: "ops" }],
	};

	test("an owner's everything", () => {
		expect(rightsOf(acl, question({ sender: "olga" }), ["main", "ops"])).toEqual(OWNER_RIGHTS);
	});

	test("anybody else's no shell, no files, no MCP, and they approve nothing", () => {
		expect(rightsOf(acl, question({ sender: "bob" }), [])).toEqual(GUEST_RIGHTS);
		expect(GUEST_RIGHTS.denied).toEqual(["bash", "write", "edit", "mcp__*"]);
		expect(mayApprove(acl, question({ sender: "bob" }), "time")).toBe(false);
	});

	test("the tools that the rules name, and the agents that they may use", () => {
		expect(rightsOf(acl, question(), ["main", "ops"])).toEqual({
			owner: false,
			tools: ["read", "mcp__docs__*", "bash"],
			agents: ["main"],
		});
	});

	test("approving is for owners and whom a rule names; one who is denied approves nothing", () => {
		expect(mayApprove(acl, question({ sender: "olga" }), "bash")).toBe(true);
		expect(mayApprove(acl, question(), "mcp__docs__x")).toBe(true);
		expect(mayApprove(acl, question(), "bash")).toBe(false);
		expect(mayApprove({ ...acl, deny: ["olga"] }, question({ sender: "olga" }), "bash")).toBe(false);
		expect(mayApprove({ allow: [{ sender: "eve", approve: ["*"] }] }, question(), "bash")).toBe(false);
	});
});

describe("A10: the rights of a run", () => {
	test("are what all its senders may do", () => {
		expect(commonRights([OWNER_RIGHTS, OWNER_RIGHTS])).toEqual(OWNER_RIGHTS);
		expect(commonRights([OWNER_RIGHTS, GUEST_RIGHTS])).toEqual(GUEST_RIGHTS);
		expect(
			commonRights([
				{ owner: false, tools: ["mcp__*", "bash"], agents: ["a", "b"] },
				{ owner: false, tools: ["mcp__docs__*", "read"], denied: ["mcp__docs__write"], agents: ["b"] },
			]),
		).toEqual({ owner: false, tools: ["mcp__docs__*"], denied: ["mcp__docs__write"], agents: ["b"] });
	});

	test("a stranger's message would narrow an owner's run, an owner's never a stranger's", () => {
		expect(narrows(OWNER_RIGHTS, GUEST_RIGHTS)).toBe(true);
		expect(narrows(GUEST_RIGHTS, OWNER_RIGHTS)).toBe(false);
		expect(narrows(GUEST_RIGHTS, GUEST_RIGHTS)).toBe(false);
	});
});

describe("A12: the text form", () => {
	test.each([
		["approve K7Q2", "approve", ""],
		["  Approve k7q2  ", "approve", ""],
		["/deny K7Q2 not on production", "deny", "not on production"],
		["@bot approve `K7Q2`", "approve", ""],
		["<@U123>: approve K7Q2 always", "approve", "always"],
		["answer K7Q2: the second\none", "answer", "the second\none"],
	])("%j decides", (text, verb, rest) => {
		expect(chatCommandIn(text)).toEqual({ verb, id: "K7Q2", rest });
	});

	test.each([
		"yes",
		"y",
		"ok",
		"approve",
		"approve it",
		"deny that",
		"please approve K7Q2",
		"approve K7Q23",
		"K7Q2",
		"approve KQ72",
	])("%j is a message for the agent", (text) => {
		expect(chatCommandIn(text)).toBeUndefined();
	});
});
