/** Whether an interrupted run can be continued, and from where (A1), or its messages answered by a new run. */

import { isShown, NexusError } from "@nexus-stream/protocol";
import type { Continued, Engine } from "../../engine/engine.ts";
import type { CheckpointInfo, StoredCheckpoint } from "../../ledger/checkpoints/port.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Turn } from "../../ledger/turns/port.ts";
import { answerOf, isPersons } from "../approval-rows.ts";
import type { Continuation } from "../port.ts";

export interface ContinuationDeps {
	ledger: Pick<Ledger, "turns" | "checkpoints" | "approvals">;
	engine: Pick<Engine, "name" | "continues" | "configHash">;
	isBusy(session: string): boolean;
}

export async function canContinue(deps: ContinuationDeps, turn: Turn): Promise<boolean> {
	const because = await refusalOf(deps, turn, () => deps.ledger.checkpoints.info(turn.runId));
	return because === undefined && (await openQuestionOf(deps, turn.runId)) === undefined;
}

/** Throws `not_found`, or `conflict` with the reason. `answered`: a decision about the run continues it. */
export async function continuationOf(deps: ContinuationDeps, runId: string, answered: boolean): Promise<Continuation> {
	const turn = await deps.ledger.turns.get(runId);
	if (!turn) throw new NexusError("not_found", `there is no run ${runId} that has ended`);
	const checkpoint = await deps.ledger.checkpoints.get(runId);
	const open = answered ? undefined : await openQuestionOf(deps, runId);
	const because = open ?? (await refusalOf(deps, turn, () => checkpoint));
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

/** Why the messages of a run are not answered by a new one; undefined = they can be. */
export async function retryRefusalOf(
	deps: ContinuationDeps,
	{ runId, session, ...turn }: Turn,
): Promise<string | undefined> {
	if (turn.status === "completed") return "it has completed";
	if (turn.rolledBack) return "it was taken back for a newer message";
	if (turn.continuedBy !== undefined) return `run ${turn.continuedBy} continues it already`;
	if (deps.isBusy(session)) return `session ${session} is being answered`;
	if ((await deps.ledger.turns.newest(session)) !== runId) return `session ${session} has a newer turn`;
	return openQuestionOf(deps, runId);
}

/** A new run of the session would silently withdraw an open approval or question. */
async function openQuestionOf({ ledger }: ContinuationDeps, runId: string): Promise<string | undefined> {
	const [open] = await ledger.approvals.list({ runId, state: "pending", limit: 1 });
	if (!open) return undefined;
	return open.kind === "question"
		? `it waits for an answer to ${open.id}; the answer continues it`
		: `it waits for a decision about ${open.tool} (${open.id}); allow or deny it, and the run continues`;
}

async function refusalOf(
	{ ledger, engine, isBusy }: ContinuationDeps,
	turn: Turn,
	find: () => CheckpointInfo | undefined | Promise<CheckpointInfo | undefined>,
): Promise<string | undefined> {
	const { runId, session, status, continuedBy, rolledBack } = turn;
	if (status === "completed") return "it has completed";
	if (rolledBack) return "it was taken back for a newer message";
	if (continuedBy !== undefined) return `run ${continuedBy} continues it already`;
	if (!engine.continues) return `the engine "${engine.name}" keeps no checkpoints; retry the run instead`;
	if (turn.engine !== engine.name)
		return `it was answered by the engine "${turn.engine}", and "${engine.name}" is in use`;
	if (isBusy(session)) return `session ${session} is being answered`;
	if ((await ledger.turns.newest(session)) !== runId) return `session ${session} has a newer turn`;
	const checkpoint = await find();
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
