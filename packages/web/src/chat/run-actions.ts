/** The actions of a person on a run: stop, continue, retry, and answers to its approvals and questions. */

import { api } from "../app/api.ts";
import type { ApprovalActions } from "./approvals.ts";
import { liveTurnOf } from "./chat.ts";
import type { ChatModel } from "./chat-model.ts";

export class RunActions {
	readonly #model: ChatModel;

	constructor(model: ChatModel) {
		this.#model = model;
	}

	/** Stops the live run. */
	async stop(): Promise<void> {
		const model = this.#model;
		const turn = liveTurnOf(model.chat);
		if (!turn || turn.stopping) return;
		const { runId } = turn;
		model.dispatch({ type: "stopping", runId, on: true });
		try {
			await api.abort(runId);
		} catch (cause) {
			model.dispatch({ type: "stopping", runId, on: false, error: model.failed(cause).message });
		}
	}

	/** Resumes an interrupted run. Rejects with the daemon's reason. */
	async continue(runId: string): Promise<void> {
		await api.continue(runId);
		this.#model.context.onRunChange();
	}

	/** Answers the messages of an interrupted run from the start. Rejects with the daemon's reason. */
	async retry(runId: string): Promise<void> {
		await api.retry(runId);
		this.#model.context.onRunChange();
	}

	/** Reads again whether a run can be continued or retried. */
	refresh(runId: string): void {
		void this.#model.loadRow(runId);
	}

	approvalsOf(runId: string): Pick<ApprovalActions, "decide" | "answer"> {
		const { onRunChange } = this.#model.context;
		return {
			async decide(id, decision, remember) {
				await api.decideApproval(runId, id, { decision, remember: remember || undefined });
				onRunChange();
			},
			async answer(id, answer) {
				await api.answerQuestion(runId, id, { answer });
				onRunChange();
			},
		};
	}
}
