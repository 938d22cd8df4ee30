/** Which tools a run may use, and for which of them a person has to agree first. Pure. */

import { createHash } from "node:crypto";
import type { ApprovalOutcome, ApprovalPolicy, EngineRequest } from "@nexus-stream/protocol/engine";
import { fitsGlob, fitsSome } from "../../std/globs.ts";

type Policies = Readonly<Record<string, ApprovalPolicy>>;

/** Without a word from anybody. */
const DEFAULT_POLICIES: Policies = { bash: "always", write: "non-owner", edit: "non-owner", "mcp__*": "non-owner" };

const STRICTNESS: readonly ApprovalPolicy[] = ["never", "non-owner", "always"];

/** `configured` is what the agent's configuration says, then the house's: the first that names the tool has the word. */
export function policyOf(
	tool: { name: string; approval?: ApprovalPolicy },
	...configured: readonly (Policies | undefined)[]
): ApprovalPolicy {
	for (const policies of configured) {
		const said = policyIn(policies ?? {}, tool.name);
		if (said !== undefined) return said;
	}
	const ranks = [policyIn(DEFAULT_POLICIES, tool.name), tool.approval].map((one) => STRICTNESS.indexOf(one ?? "never"));
	// An invalid policy of a foreign tool must not count as no policy.
	return STRICTNESS[Math.max(...ranks)] ?? "always";
}

/** The exact name before globs, a longer glob before a shorter one. */
function policyIn(policies: Policies, name: string): ApprovalPolicy | undefined {
	if (Object.hasOwn(policies, name)) return policies[name];
	const globs = Object.keys(policies).filter((glob) => fitsGlob(name, glob));
	const longest = globs.toSorted((one, other) => other.length - one.length)[0];
	return longest === undefined ? undefined : policies[longest];
}

export function needsApproval(policy: ApprovalPolicy, { owner }: Pick<EngineRequest, "owner">): boolean {
	switch (policy) {
		case "never":
			return false;
		case "non-owner":
			return owner !== true;
		case "always":
			return true;
		default:
			return policy satisfies never;
	}
}

export const isToolAllowed = (
	name: string,
	{ allowedTools, deniedTools = [] }: Pick<EngineRequest, "allowedTools" | "deniedTools">,
): boolean => (allowedTools === undefined || fitsSome(name, allowedTools)) && !fitsSome(name, deniedTools);

/** The digest that an approval binds: the tool, its revision if any, and its arguments in any order of keys. */
export const digestOf = (tool: string, args: unknown, revision?: string): string =>
	createHash("sha256")
		.update(JSON.stringify([tool, sorted(args ?? null), ...(revision === undefined ? [] : [revision])]))
		.digest("base64url");

/** Why a call that waited for approval does not act after what a person said; undefined = it does. For the model to read. */
export function refusalOf(
	{ name, revision }: { name: string; revision?: string },
	args: unknown,
	{ state, by, reason, digest }: ApprovalOutcome,
): string | undefined {
	const why = reason === undefined ? "" : `: ${reason}`;
	switch (state) {
		case "approved":
			// Only the approved call runs (A13).
			if (digest === digestOf(name, args, revision)) return undefined;
			return `not run: the arguments of ${name} are not those that were approved`;
		case "answered":
			return `not run: ${name} waits for approval, and an answer does not approve it`;
		case "denied":
			return `not run: denied by ${by ?? "the person who was asked"}${why}`;
		case "expired":
			return "not run: no answer in time";
		case "withdrawn":
			return `not run: the question was withdrawn${why}`;
		default:
			return state satisfies never;
	}
}

/** As JSON would have it. */
function sorted(value: unknown): unknown {
	if (Array.isArray(value)) return value.map(sorted);
	if (typeof value !== "object" || value === null) return value;
	const entries = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
	return Object.fromEntries(entries.map(([key, entry]) => [key, sorted(entry)]));
}
