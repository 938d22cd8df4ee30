/** Whether an interrupted run can be continued, and from where (A1), or its messages answered by a new run. */

import { isShown, NexusError } from "@nexus-stream/protocol";
import type { Continued, Engine } from "@nexus-stream/protocol/engine";
import type { CheckpointInfo, StoredCheckpoint } from "../../ledger/checkpoints/port.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Turn } from "../../ledger/turns/port.ts";
import { answerOf, isPersons } from "../approvals.ts";
import type { Continuation } from "../port.ts";

export interface ContinuationDeps {
	ledger: Pick<Ledger, "turns" | "checkpoints" | "approvals">;
	engine: Pick<Engine, "name" | "continues" | "configHash">;
	isBusy(session: string): boolean;
}

/** Whether the run can be continued, and why its messages are not answered by a new one; undefined = they can be. */
export async function resumptionOf(
	deps: ContinuationDeps,
	turn: Turn,
): Promise<{ canContinue: boolean; retryRefusal: string | undefined }> {
	const retryRefusal = (await refusalOf(deps, turn)) ?? (await openQuestionOf(deps, turn.runId));
	if (retryRefusal !== undefined) return { canContinue: false, retryRefusal };
	const checkpoint = await deps.ledger.checkpoints.info(turn.runId);
	return { canContinue: checkpointRefusal(deps, turn, checkpoint) === undefined, retryRefusal };
}

/** Throws `not_found`, or `conflict` with the reason. `answered`: a decision about the run continues it. */
export async function continuationOf(deps: ContinuationDeps, runId: string, answered: boolean): Promise<Continuation> {
	const turn = await deps.ledger.turns.get(runId);
	if (!turn) throw new NexusError("not_found", `there is no run ${runId} that has ended`);
	const checkpoint = await deps.ledger.checkpoints.get(runId);
	const because =
		(answered ? undefined : await openQuestionOf(deps, runId)) ??
		(await refusalOf(deps, turn)) ??
		checkpointRefusal(deps, turn, checkpoint);
	if (because !== undefined) throw new NexusError("conflict", `run ${runId} cannot be continued: ${because}`);
	const { data, root, answer = await decidedIn(deps, turn) } = checkpoint!;
	return {
		runId,
		root,
		checkpoint: JSON.parse(data),
		shown: shownSince(checkpoint!, turn),
		answer: answer === undefined ? undefined : (answer as NonNullable<Continued["answer"]>),
	};
}

/**
 * The last decision in the run, or in those that it continues: the run may have died after the decision was stored and before it was used.
 * The engine knows whether its call still waits for it.
 */
async function decidedIn({ ledger }: ContinuationDeps, turn: Turn): Promise<Continued["answer"]> {
	for (let at: Turn | undefined = turn; at; at = await before(ledger, at)) {
		const decided = (await ledger.approvals.list({ runId: at.runId })).filter(isPersons);
		const [last] = decided.toSorted((one, other) => other.decidedAt! - one.decidedAt!);
		if (last) return { ...answerOf(last), callId: last.callId };
	}
	return undefined;
}

const before = ({ turns }: Pick<Ledger, "turns">, { continues }: Turn) =>
	continues === undefined ? undefined : turns.get(continues);

/** A new run of the session would silently withdraw an open approval or question. */
async function openQuestionOf({ ledger }: ContinuationDeps, runId: string): Promise<string | undefined> {
	const [open] = await ledger.approvals.list({ runId, state: "pending", limit: 1 });
	if (!open) return undefined;
	return open.kind === "question"
		? `it waits for an answer to ${open.id}; the answer continues it`
		: `it waits for a decision about ${open.tool} (${open.id}); allow or deny it, and the run continues`;
}

/** Why no run may follow this one, whether it continues it or answers its messages again. */
async function refusalOf({ ledger, isBusy }: ContinuationDeps, turn: Turn): Promise<string | undefined> {
	const { runId, session, status, continuedBy, rolledBack } = turn;
	if (status === "completed") return "it has completed";
	if (rolledBack) return "it was taken back for a newer message";
	if (continuedBy !== undefined) return `run ${continuedBy} continues it already`;
	if (isBusy(session)) return `session ${session} is being answered`;
	return (await ledger.turns.newest(session)) === runId ? undefined : `session ${session} has a newer turn`;
}

function checkpointRefusal(
	{ engine }: ContinuationDeps,
	turn: Turn,
	checkpoint: CheckpointInfo | undefined,
): string | undefined {
	if (!engine.continues) return `the engine "${engine.name}" keeps no checkpoints; retry the run instead`;
	if (turn.engine !== engine.name)
		return `it was answered by the engine "${turn.engine}", and "${engine.name}" is in use`;
	if (!checkpoint) return "there is no checkpoint of it any more; retry the run instead";
	if (checkpoint.configHash !== (engine.configHash ?? ""))
		return "its agents, tools or phases are configured differently now; retry the run instead";
	return undefined;
}

/** Text that people saw after the checkpoint. */
function shownSince({ shown, lengths }: StoredCheckpoint, { messages }: Turn): string {
	const later = messages.filter(isShown).flatMap(({ role, messageId = "", text }) => {
		const length = Object.hasOwn(lengths, messageId) ? lengths[messageId] : 0;
		const rest = role === "assistant" ? text.slice(length) : "";
		return rest === "" ? [] : [rest];
	});
	return shown + later.join("\n\n");
}
