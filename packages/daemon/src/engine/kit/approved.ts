/** Has a person agree before a tool acts whose agent knows nothing of approvals, and lets none act before its start is durable. */

import { AsyncLocalStorage } from "node:async_hooks";
import type { ApprovalOutcome, EngineContext, EngineEvent, EngineRequest } from "@nexus-stream/protocol/engine";
import { type ContextWords, describeWanted, type Needed, refusalOf } from "../tools/tools.ts";
import type { Wrappable } from "./wrappable.ts";

/** Says what becomes of the call of this id, as the model calls it. Each resolves once the reader of the run has taken it and asks for more (A4). */
export interface CallTeller {
	asked(id: string, name: string, args: unknown, needed: Needed): Promise<string>;
	/** An approved call has started with that. */
	answered(id: string, answer: ApprovalOutcome): Promise<void>;
	started(id: string, name: string, args: unknown): Promise<void>;
}

export interface Permitting {
	request: Pick<EngineRequest, "approval">;
	/** What the model of the run has read. */
	words: ContextWords;
	answer: EngineContext["answer"];
	teller: CallTeller;
}

const agreed = new AsyncLocalStorage<true>();

/** Whether what runs now is a call that a person has agreed to. */
export const isAgreed = (): boolean => agreed.getStore() === true;

/** The same tool; a rejection is what the model is told, and the run goes on. The wait is not a part of the tool's time. */
export function approved<Tool extends Wrappable>(tool: Tool, { request, words, answer, teller }: Permitting): Tool {
	const permit = async (needed: Needed, id: string, params: unknown, signal: AbortSignal) => {
		if (answer === undefined) throw new Error(`${tool.name} needs somebody's approval, and nobody can be asked`);
		const handle = await unlessStopped(signal, teller.asked(id, tool.name, params, needed));
		const given = await answer(handle, signal);
		await unlessStopped(signal, teller.answered(id, given));
		const refusal = refusalOf(tool, params, given);
		if (refusal !== undefined) throw new Error(refusal);
	};
	const execute: Wrappable["execute"] = async (
		id,
		params,
		signal = new AbortController().signal,
		onUpdate,
		...rest
	) => {
		const needed = words.approvalOf(tool, request.approval);
		if (needed) await permit(needed, id, params, signal);
		else await unlessStopped(signal, teller.started(id, tool.name, params));
		const act = () => tool.execute(id, params, signal, onUpdate, ...rest);
		try {
			return await (needed ? agreed.run(true, act) : act());
		} finally {
			words.took(tool.name);
		}
	};
	return { ...tool, execute };
}

/** A run that has lost its reader is stopped. */
async function unlessStopped<T>(signal: AbortSignal, taken: Promise<T>): Promise<T> {
	const { promise: stopped, reject } = Promise.withResolvers<never>();
	const stop = () => reject(new Error("stopped before it began"));
	if (signal.aborted) stop();
	else signal.addEventListener("abort", stop, { once: true });
	try {
		return await Promise.race([stopped, taken]);
	} finally {
		signal.removeEventListener("abort", stop);
	}
}

/** What is yielded about a question. */
export const approvalEvent = (
	call: { callId: string; name: string; args: unknown },
	handle: string,
	{ answer, needed }: { answer?: ApprovalOutcome; needed?: Needed },
): EngineEvent => ({
	type: "tool",
	callId: call.callId,
	name: call.name,
	status: "progress",
	...(answer === undefined && { args: call.args, summary: describeWanted(call.name, call.args) }),
	asking: { id: handle, kind: "approval", state: answer?.state ?? "pending", ...needed, by: answer?.by },
});
