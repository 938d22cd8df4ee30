/** Which tools a run may use, and for which of them a person has to agree first: by policy, and because of text that others wrote. */

import { createHash } from "node:crypto";
import type { Among, ApprovalOutcome, ApprovalPolicy, EngineRequest } from "@nexus-stream/protocol/engine";
import { fitsGlob, fitsSome } from "../std/globs.ts";

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

export const needsApproval = (policy: ApprovalPolicy, { owner }: Pick<EngineRequest, "owner">): boolean =>
	policy !== "never" && !(policy === "non-owner" && owner === true);

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

/** Additional facts for the person who decides about a call. */
export interface Needed {
	/** Left out: the policy alone asks. */
	because?: string;
	/** The agreement holds for this call alone: others may have chosen its arguments. */
	once?: true;
}

/** Tools that need approval after foreign text: all that act, and all whose output later runs would read. */
const OUTSIDE_DENIED: readonly string[] = ["bash", "write", "edit", "mcp__*", "learn", "remember", "forget"];

export class ContextWords {
	readonly #request: EngineRequest;
	/** The tool that brought text from outside last. */
	#outside: string | undefined;

	constructor(request: EngineRequest) {
		this.#request = request;
		for (const { toolCalls = [] } of request.messages) for (const { name } of toolCalls) this.took(name);
	}

	/** From now on the tool's result is in the context. */
	took(tool: string): void {
		if (fitsSome(tool, this.#request.outsideTools ?? [])) this.#outside = tool;
	}

	/** The request as the tools of the run see it: with the rights that all words in its context have. */
	get request(): EngineRequest {
		const among = this.#among;
		return among ? { ...this.#request, owner: false, among } : this.#request;
	}

	/** The same for a call that a person has agreed to; whose words led to it stays known. */
	get agreed(): EngineRequest {
		const among = this.#among;
		return among ? { ...this.#request, among } : this.#request;
	}

	/** Undefined: the call acts without an approval. `configured` as in `policyOf`. */
	approvalOf(
		tool: { name: string; approval?: ApprovalPolicy },
		...configured: readonly (Policies | undefined)[]
	): Needed | undefined {
		if (this.#isBeyond(tool.name)) return this.#because();
		const policy = policyOf(tool, ...configured);
		if (needsApproval(policy, this.#request)) return {};
		return needsApproval(policy, this.request) ? this.#because() : undefined;
	}

	get #among(): Among | undefined {
		const { among } = this.#request;
		if (among || this.#outside === undefined) return among;
		return { whose: "", from: { channel: "outside", account: "tool", sender: this.#outside } };
	}

	#isBeyond(tool: string): boolean {
		const { among } = this.#request;
		if (among && !isToolAllowed(tool, among)) return true;
		return this.#outside !== undefined && fitsSome(tool, OUTSIDE_DENIED);
	}

	#because(): Needed {
		const { among } = this.#request;
		const people = among && `words of ${among.whose} are in the conversation`;
		const outside = this.#outside && `what ${this.#outside} answered from outside is in the conversation`;
		const because = [people, outside].filter((words) => words !== undefined).join("; ");
		return { because, once: people === undefined ? undefined : true };
	}
}
