/** Reads the frames of finished turns, for their cards and checksums: few runs at a time, each at most once. */

import { createFold, decodeFrame, type RunView } from "@nexus-stream/protocol";
import { api } from "../app/api.ts";
import { withView } from "./chat.ts";
import type { ChatModel } from "./chat-model.ts";

/** Longer runs are shown from the ledger; the inspector reads all of their frames. */
const FRAMES_MAX = 100_000;
/** Few enough to decode without a noticeable pause. */
const FRAMES_PER_CALL = 4000;
const LOADS_MAX = 2;

export class HistoryFrames {
	readonly #model: ChatModel;
	readonly #requested = new Set<string>();
	readonly #queue: string[] = [];
	#inFlight = 0;

	constructor(model: ChatModel) {
		this.#model = model;
	}

	load(runId: string): void {
		if (this.#requested.has(runId)) return;
		this.#requested.add(runId);
		this.#queue.push(runId);
		this.#pump();
	}

	#pump(): void {
		while (this.#inFlight < LOADS_MAX && !this.#model.isClosed) {
			const runId = this.#queue.shift();
			if (runId === undefined) return;
			this.#inFlight += 1;
			void this.#read(runId).finally(() => {
				this.#inFlight -= 1;
				this.#pump();
			});
		}
	}

	async #read(runId: string): Promise<void> {
		const model = this.#model;
		try {
			const view = await foldHistory(runId, () => model.isClosed);
			if (!view || model.isClosed) return;
			model.change(withView(model.newest, view));
			await model.loadDecisions();
		} catch (cause) {
			console.warn(`nexus: the frames of ${runId} could not be read:`, model.messageOf(cause));
		}
	}
}

/** Folds all frames of a finished run; undefined when there are too many, or once the session is closed. */
async function foldHistory(runId: string, isClosed: () => boolean): Promise<RunView | undefined> {
	const fold = createFold();
	for (let after = 0; after < FRAMES_MAX; ) {
		const last = after + FRAMES_PER_CALL;
		for await (const line of api.frames(runId, { after, limit: FRAMES_PER_CALL })) {
			if (isClosed()) return undefined;
			fold.push(decodeFrame(line));
			after += 1;
		}
		if (after < last) return fold.view();
	}
	return undefined;
}
