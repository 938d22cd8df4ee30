/** Whether a call may act: by its policy, or by what a person says. */

import type { ApprovalOutcome, EngineRequest, ToolApproval } from "@nexus-stream/protocol/engine";
import { type ContextWords, refusalOf } from "../tools/tools.ts";
import type { Permit, ReadyCall } from "./schedule.ts";
import type { AgentSpec } from "./setup.ts";

/** What a person is asked about a call. */
export type ApprovalQuestion = Pick<ToolApproval, "kind" | "question" | "choices" | "revision" | "because" | "once">;

/** Asks the person and waits. Left out where nobody can be asked. */
export type Ask = (about: ApprovalQuestion) => Promise<ApprovalOutcome>;

/** `answer`: what the person said to the tool's own question. */
export type AnsweredPermit = Permit & { answer?: ApprovalOutcome };

/** Undefined: the call acts without anybody being asked. */
export function approvalQuestionOf(
	{ tool, args }: ReadyCall,
	agent: Pick<AgentSpec, "approval">,
	request: Pick<EngineRequest, "approval">,
	words: ContextWords,
): ApprovalQuestion | undefined {
	if (tool.asks) return { kind: "question", ...tool.asks(args) };
	const needed = words.approvalOf(tool, agent.approval, request.approval);
	if (needed === undefined) return undefined;
	return { kind: "approval", ...needed, revision: tool.revision };
}

export async function permitted(
	call: ReadyCall,
	about: ApprovalQuestion,
	ask: Ask | undefined,
): Promise<AnsweredPermit> {
	const { tool } = call;
	if (ask === undefined) {
		const needs = about.kind === "approval" ? "needs somebody's approval" : "has a question";
		return { allowed: false, reason: `${tool.name} ${needs}, and nobody can be asked` };
	}
	return permitOf(call, await ask(about));
}

/** What an answer means for the call. */
export function permitOf({ tool, args }: ReadyCall, answer: ApprovalOutcome): AnsweredPermit {
	if (answer.state === "answered" && tool.asks) return { allowed: true, answer };
	const reason = refusalOf(tool, args, answer);
	return reason === undefined ? { allowed: true } : { allowed: false, reason };
}
