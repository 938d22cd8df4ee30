/** Folds the frames of a session into one view per run, and says which runs changed since it was last asked. */

import { createFold, type Fold, type Frame, type RunView, runIdOf } from "../protocol/protocol.ts";

export interface RunFolds {
	/** The run that the frame belongs to, and whether the frame opened or settled it. */
	push(frame: Frame): { runId: string; began: boolean; settled: boolean };
	/** Views of the runs that changed since the last call. */
	changed(): RunView[];
}

export function createRunFolds(): RunFolds {
	const folds = new Map<string, Fold>();
	const dirty = new Set<string>();
	return {
		push(frame) {
			const runId = frame.type === "stream.begin" ? frame.run_id : runIdOf(frame.message_id);
			let fold = folds.get(runId);
			const began = fold === undefined;
			if (!fold) {
				fold = createFold();
				folds.set(runId, fold);
			}
			fold.push(frame);
			dirty.add(runId);
			return { runId, began, settled: frame.type === "stream.end" && frame.final };
		},
		changed() {
			const views: RunView[] = [];
			for (const runId of dirty) {
				const fold = folds.get(runId);
				if (!fold) continue;
				const view = fold.view();
				views.push(view);
				// A settled run does not change any more; its view is in the state.
				if (view.final) folds.delete(runId);
			}
			dirty.clear();
			return views;
		},
	};
}
