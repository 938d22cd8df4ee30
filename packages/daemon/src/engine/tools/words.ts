/** Foreign text that the model of a run has read, and the tools that such text may use only with a person's approval. */

import type { Among, ApprovalPolicy, EngineRequest } from "@nexus-stream/protocol/engine";
import { fitsSome } from "../../std/globs.ts";
import { isToolAllowed, needsApproval, policyOf } from "./policy.ts";

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
		...configured: Parameters<typeof policyOf> extends [unknown, ...infer Rest] ? Rest : never
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
