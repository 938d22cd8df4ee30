/** Stored approvals as writes, outcomes and errors. Pure. */

import { NexusError } from "@nexus-stream/protocol";
import type { ApprovalOutcome } from "../engine/engine.ts";
import type { Approval, Decided, OpenQuestion } from "../ledger/approvals/port.ts";
import { defined } from "../std/defined.ts";

/** Without the arguments: a write only identifies the question. */
export const openOf = ({ id, runId, session, tool, agent }: Approval): OpenQuestion => ({
	id,
	runId,
	session,
	tool,
	agent,
});

export const rowFields = ({ at, state, ...words }: Decided) => ({ state, decidedAt: at, ...defined(words) });

/** A person decided it, not a timeout. */
export const isPersons = ({ state }: Pick<Approval, "state">): boolean =>
	state === "approved" || state === "denied" || state === "answered";

/** The outcome as the engine gets it. */
export function answerOf({ id, state, by, reason, text, digest }: Approval): ApprovalOutcome {
	if (state === "pending") throw new NexusError("internal", `${id} has no answer yet`);
	return { id, state, digest, by, reason, text };
}

export function conflict({ id, state, by, reason }: Approval): NexusError {
	const who = by === undefined || by === "nexus" ? "" : ` by ${by}`;
	const why = state === "withdrawn" && reason !== undefined ? `: ${reason}` : "";
	return new NexusError("conflict", `${id} is ${state === "pending" ? "expired" : state} already${who}${why}`);
}
