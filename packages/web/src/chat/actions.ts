/** The actions of a person: sending messages and taking them back; stopping, continuing and retrying runs; and answering their questions. */

import { newId } from "@nexus-stream/protocol";
import { api } from "../app/api.ts";
import type { ApprovalActions } from "./approvals.ts";
import { discarded, liveTurnOf, putTurn, sendFailed, sending, sent } from "./chat.ts";
import { type ChatModel, keepUnsent, unsentOf } from "./chat-model.ts";

export class Outbox {
	readonly #model: ChatModel;
	/** Makes sure that the session's stream is open and connected. */
	readonly #follow: () => Promise<void>;

	constructor(model: ChatModel, follow: () => Promise<void>) {
		this.#model = model;
		this.#follow = follow;
	}

	/** `key`: the idempotency key of a failed message that is sent again. */
	send(text: string, key = newId("msg")): void {
		void this.#deliver(key, text);
	}

	discard(key: string): void {
		this.#model.change(discarded(this.#model.newest, key));
	}

	/** Takes back a message that waits. If it is too late, the refresh shows how the message was handled. */
	async cancel(eventId: string): Promise<void> {
		const model = this.#model;
		try {
			await api.cancel(eventId);
		} catch (cause) {
			console.warn(`nexus: ${eventId} could not be canceled:`, model.messageOf(cause));
		}
		await Promise.all([model.loadQueue(), model.loadEvents()]);
	}

	async #deliver(key: string, text: string): Promise<void> {
		const model = this.#model;
		const { session, context } = model;
		model.change(sending(model.newest, key, text));
		try {
			const accepted = await api.send(session, { text, idempotency_key: key });
			if (!model.isClosed) {
				model.change(sent(model.newest, key, accepted));
				await this.#follow();
				// The message may have replaced an older one that waited.
				if (accepted.disposition !== "started") void model.loadEvents();
				context.onRunChange();
			}
		} catch (cause) {
			const error = model.messageOf(cause);
			if (model.isClosed) keepUnsent(session, [...unsentOf(session), { key, text, state: "failed", error }]);
			model.change(sendFailed(model.newest, key, error));
		}
		context.onSent(session);
	}
}

export class RunActions {
	readonly #model: ChatModel;

	constructor(model: ChatModel) {
		this.#model = model;
	}

	/** Stops the live run. */
	async stop(): Promise<void> {
		const model = this.#model;
		const turn = liveTurnOf(model.newest);
		if (!turn || turn.stopping) return;
		const { runId } = turn;
		model.change(putTurn(model.newest, runId, { stopping: true, stopError: undefined }));
		try {
			await api.abort(runId);
		} catch (cause) {
			model.change(putTurn(model.newest, runId, { stopping: false, stopError: model.messageOf(cause) }));
		}
	}

	/** Resumes an interrupted run, or answers its messages from the start. Rejects with the daemon's reason. */
	async resume(runId: string, action: "continue" | "retry"): Promise<void> {
		await api[action](runId);
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
