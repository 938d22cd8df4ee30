import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { digestOf } from "../../packages/daemon/src/engine/engine.ts";
import { isToolAllowed, needsApproval, policyOf } from "../../packages/daemon/src/engine/policy.ts";
import { permitOf } from "../../packages/daemon/src/engine/reason-act/schedule.ts";
import { commonGlobs, fitsSome } from "../../packages/daemon/src/std/globs.ts";
import { toolOf } from "./reason-act/kit.ts";

describe("A11: a tool's policy", () => {
	test.each([
		["bash", {}, [], "always"],
		["write", {}, [], "non-owner"],
		["edit", {}, [], "non-owner"],
		["mcp__docs__search", {}, [], "non-owner"],
		["read", {}, [], "never"],
		["deploy", { approval: "always" }, [], "always"],
		["bash", { approval: "never" }, [], "always"],
		["mcp__x__y", { approval: "never" }, [], "non-owner"],
		["bash", {}, [{ bash: "never" }], "never"],
		["bash", {}, [undefined, { bash: "non-owner" }], "non-owner"],
		["bash", {}, [{ "b*": "never" }, { bash: "always" }], "never"],
		["mcp__a__b", {}, [{ "mcp__*": "always", "mcp__a__*": "never" }], "never"],
		["toString", {}, [{}], "never"],
	] as const)("%s %j %j is %s", (name, tool, configured, policy) => {
		expect(policyOf({ name, ...tool }, ...configured)).toBe(policy);
	});

	test("asks everyone, everyone but owners, or no one", () => {
		expect(needsApproval("always", { owner: true })).toBe(true);
		expect(needsApproval("non-owner", { owner: true })).toBe(false);
		expect(needsApproval("non-owner", { owner: false })).toBe(true);
		expect(needsApproval("non-owner", {})).toBe(true);
		expect(needsApproval("never", {})).toBe(false);
	});
});

test("A10: a tool is used within what is allowed and not denied", () => {
	expect(isToolAllowed("bash", {})).toBe(true);
	expect(isToolAllowed("bash", { deniedTools: ["bash"] })).toBe(false);
	expect(isToolAllowed("mcp__a", { allowedTools: ["mcp__*"] })).toBe(true);
	expect(isToolAllowed("mcp__a", { allowedTools: ["mcp__*"], deniedTools: ["mcp__a"] })).toBe(false);
	expect(isToolAllowed("bash", { allowedTools: [] })).toBe(false);
});

test("A10: what two lists of names let through is what both let through", () => {
	const glob = fc.stringMatching(/^[ab]{0,3}\*?$/);
	fc.assert(
		fc.property(fc.array(glob), fc.array(glob), fc.stringMatching(/^[ab]{0,4}$/), (some, others, name) => {
			expect(fitsSome(name, commonGlobs(some, others))).toBe(fitsSome(name, some) && fitsSome(name, others));
		}),
	);
});

describe("A13: the digest", () => {
	test("is of tool and arguments, whatever the order of keys", () => {
		expect(digestOf("bash", { a: 1, b: [{ c: 2, d: 3 }] })).toBe(digestOf("bash", { b: [{ d: 3, c: 2 }], a: 1 }));
		const others = [{ a: 2, b: [] }, { a: 1 }, [["a", 1]], { a: "1" }, null];
		const digests = others.map((args) => digestOf("bash", args));
		expect(new Set([...digests, digestOf("write", { a: 1 })]).size).toBe(others.length + 1);
	});

	test("arguments that changed after the approval are not run", () => {
		const args = { command: "ls" };
		const call = { callId: "c", tool: toolOf("bash"), args };
		const answer = { id: "K7Q2", state: "approved", digest: digestOf("bash", args) } as const;
		expect(permitOf(call, answer)).toEqual({ allowed: true });
		args.command = "rm -rf /";
		expect(permitOf(call, answer)).toMatchObject({ allowed: false, reason: expect.stringMatching(/not those/) });
		const { digest: _digest, ...unbound } = answer;
		expect(permitOf({ ...call, args: {} }, unbound)).toMatchObject({ allowed: false });
	});
});
