/** Sends the messages of this tab, and takes them back. */

import { newId } from "@nexus-stream/protocol";
import { api } from "../app/api.ts";
import type { ChatModel } from "./chat-model.ts";
import { keepUnsent, unsentOf } from "./unsent.ts";

export class Outbox {
	readonly #model: ChatModel;
	/** Makes sure that the session's stream is open and connected. */
	readonly #follow: () => Promise<void>;

	constructor(model: ChatModel, follow: () => Promise<void>) {
		this.#model = model;
		this.#follow = follow;
	}

	send(text: string): void {
		void this.#deliver(newId("msg"), text);
	}

	/** Sends a failed message again with its idempotency key. */
	retry(key: string, text: string): void {
		void this.#deliver(key, text);
	}

	discard(key: string): void {
		this.#model.dispatch({ type: "discard", key });
	}

	/** Takes back a message that waits. If it is too late, the refresh shows how the message was handled. */
	async cancel(eventId: string): Promise<void> {
		const model = this.#model;
		try {
			await api.cancel(eventId);
		} catch (cause) {
			console.warn(`nexus: ${eventId} could not be canceled:`, model.failed(cause).message);
		}
		await Promise.all([model.loadQueue(), model.loadEvents()]);
	}

	async #deliver(key: string, text: string): Promise<void> {
		const model = this.#model;
		const { session, context } = model;
		model.dispatch({ type: "sending", key, text });
		try {
			const accepted = await api.send(session, { text, idempotency_key: key });
			if (!model.isClosed) {
				model.dispatch({ type: "sent", key, accepted });
				await this.#follow();
				// The message may have replaced an older one that waited.
				if (accepted.disposition !== "started") void model.loadEvents();
				context.onRunChange();
			}
		} catch (cause) {
			const error = model.failed(cause).message;
			if (model.isClosed) keepUnsent(session, [...unsentOf(session), { key, text, state: "failed", error }]);
			model.dispatch({ type: "send-failed", key, message: error });
		}
		context.onSent(session);
	}
}
