/** Has a person agree before a tool acts whose agent knows nothing of approvals, and lets none act before its start is durable. */

import { AsyncLocalStorage } from "node:async_hooks";
import { systemClock } from "@nexus-stream/protocol/clock";
import type { ApprovalOutcome, EngineContext, EngineEvent, EngineRequest } from "@nexus-stream/protocol/engine";
import { type ContextWords, isToolAllowed, type Needed, refusalOf } from "../policy.ts";
import { describeWanted } from "../tools/tools.ts";

/** Says what becomes of the call of this id, as the model calls it. Each resolves once the reader of the run has taken it and asks for more (A4). */
export interface CallTeller {
	asked(id: string, name: string, args: unknown, needed: Needed): Promise<string>;
	/** An approved call has started with that. */
	answered(id: string, answer: ApprovalOutcome): Promise<void>;
	started(id: string, name: string, args: unknown): Promise<void>;
}

export interface Permitting {
	request: Pick<EngineRequest, "approval">;
	/** Tracks what the model of the run has read. */
	words: ContextWords;
	answer: EngineContext["answer"];
	teller: CallTeller;
}

const agreed = new AsyncLocalStorage<true>();

/** Whether what runs now is a call that a person has agreed to. */
export const isAgreed = (): boolean => agreed.getStore() === true;

/** Wraps a tool with its approval. A rejection goes to the model as the result, and the run continues. The wait does not count as the tool's time. */
export function approved<Tool extends Wrappable>(tool: Tool, { request, words, answer, teller }: Permitting): Tool {
	const permit = async (needed: Needed, id: string, params: unknown, signal: AbortSignal) => {
		if (answer === undefined) throw new Error(`${tool.name} requires approval, but this run has no approver`);
		const handle = await unlessAborted(signal, teller.asked(id, tool.name, params, needed));
		const given = await answer(handle, signal);
		await unlessAborted(signal, teller.answered(id, given));
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
		else await unlessAborted(signal, teller.started(id, tool.name, params));
		const act = () => tool.execute(id, params, signal, onUpdate, ...rest);
		try {
			return await (needed ? agreed.run(true, act) : act());
		} finally {
			words.took(tool.name);
		}
	};
	return { ...tool, execute };
}

/** The work, or a rejection as soon as the signal aborts: a run that has lost its reader is stopped. */
export async function unlessAborted<T>(
	signal: AbortSignal,
	work: Promise<T>,
	why = () => "stopped before it began",
): Promise<T> {
	const { promise: aborted, reject } = Promise.withResolvers<never>();
	const stop = () => reject(new Error(why()));
	if (signal.aborted) stop();
	else signal.addEventListener("abort", stop, { once: true });
	try {
		return await Promise.race([aborted, work]);
	} finally {
		signal.removeEventListener("abort", stop);
	}
}

/** The event about an approval. */
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

export interface Wrappable {
	name: string;
	execute(
		id: string,
		params: never,
		signal: AbortSignal | undefined,
		onUpdate: never,
		...rest: never[]
	): Promise<unknown>;
}

/** In the engine's order. A name that no tool has allows nothing. */
export const allowedTools = <Tool extends { name: string }>(tools: readonly Tool[], request: EngineRequest): Tool[] =>
	tools.filter(({ name }) => isToolAllowed(name, request));

/** Wraps a tool with its time limit. A timeout goes to the model as the result, and the run continues. */
export function bounded<Tool extends Wrappable>(tool: Tool, timeoutMs: number): Tool {
	const execute: Wrappable["execute"] = async (id, params, signal, onUpdate, ...rest) => {
		if (signal?.aborted) throw new Error(`${tool.name} was stopped before it began`);
		const deadline = new AbortController();
		const disarm = systemClock.after(timeoutMs, () => deadline.abort(), "due");
		const either = signal === undefined ? deadline.signal : AbortSignal.any([signal, deadline.signal]);
		const why = () =>
			`${tool.name} ${deadline.signal.aborted ? `did not finish within ${timeoutMs} ms` : "was stopped before it finished"}`;
		try {
			return await unlessAborted(either, tool.execute(id, params, either, onUpdate, ...rest), why);
		} finally {
			disarm();
		}
	};
	return { ...tool, execute };
}
