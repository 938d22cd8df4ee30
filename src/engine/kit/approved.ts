/** Has a person agree before a tool acts whose agent knows nothing of approvals. */

import type { Answer, EngineContext, EngineEvent, EngineRequest } from "../port.ts";
import { describeWanted, needsApproval, policyOf, refusalOf } from "../tools/tools.ts";
import type { Wrappable } from "./wrappable.ts";

/** Says what is asked about the call of this id, as the model calls it, and resolves once whoever reads the run has it. */
export interface ApprovalTeller {
	asked(id: string, name: string, args: unknown): Promise<string>;
	answered(id: string, answer: Answer): void;
}

export const asksFirst = (name: string, request: EngineRequest): boolean =>
	needsApproval(policyOf({ name }, request.approval), request);

/** The same tool; a rejection is what the model is told, and the run goes on. The wait is not a part of the tool's time. */
export function approved<Tool extends Wrappable>(
	tool: Tool,
	request: EngineRequest,
	answer: EngineContext["answer"],
	teller: ApprovalTeller,
): Tool {
	if (!asksFirst(tool.name, request)) return tool;
	const execute: Wrappable["execute"] = async (id, params, signal, onUpdate, ...rest) => {
		if (answer === undefined) throw new Error(`${tool.name} needs somebody's approval, and nobody can be asked`);
		const handle = await teller.asked(id, tool.name, params);
		const given = await answer(handle, signal ?? new AbortController().signal);
		teller.answered(id, given);
		const refusal = refusalOf(tool, params, given);
		if (refusal !== undefined) throw new Error(refusal);
		return tool.execute(id, params, signal, onUpdate, ...rest);
	};
	return { ...tool, execute };
}

/** What is yielded about a question. */
export const askingEvent = (
	call: { callId: string; name: string; args: unknown },
	handle: string,
	answer?: Answer,
): EngineEvent => ({
	type: "tool",
	callId: call.callId,
	name: call.name,
	status: "progress",
	...(answer === undefined && { args: call.args, summary: describeWanted(call.name, call.args) }),
	asking: {
		id: handle,
		kind: "approval",
		state: answer?.state ?? "pending",
		...(answer?.by !== undefined && { by: answer.by }),
	},
});
