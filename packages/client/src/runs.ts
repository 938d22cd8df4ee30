/** The frames of a stream, run by run: a session's stream holds many runs, and each is verified or folded on its own. */

import {
	createFold,
	createVerifier,
	type EndFrame,
	type Fold,
	type Frame,
	type RunView,
	runIdOf,
	type Verifier,
	type Violation,
} from "@nexus-stream/protocol";

const runOf = (frame: Frame): string => (frame.type === "stream.begin" ? frame.run_id : runIdOf(frame.message_id));

const finalOf = (frame: Frame): EndFrame | undefined =>
	frame.type === "stream.end" && frame.final ? frame : undefined;

export interface RunCheck {
	runId: string;
	/** The run's final end, when this is it. */
	end?: EndFrame;
	/** The first rule that the run's frames have broken. */
	violation?: Violation;
}

export interface RunVerifier {
	push(frame: Frame): RunCheck;
}

/** `partial`: reading begins in the middle of a run, which can then not be verified; the runs after it are. */
export function createRunVerifier({ partial = false } = {}): RunVerifier {
	const runs = new Map<string, { verifier?: Verifier; violation?: Violation }>();
	let isFirst = true;
	return {
		push(frame) {
			const runId = runOf(frame);
			let run = runs.get(runId);
			if (!run) {
				run = partial && isFirst ? {} : { verifier: createVerifier() };
				runs.set(runId, run);
				isFirst = false;
			}
			const violation = run.violation ?? run.verifier?.push(frame);
			if (violation) run.violation = violation;
			const end = finalOf(frame);
			if (end) runs.delete(runId);
			return { runId, end, violation };
		},
	};
}

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
			const runId = runOf(frame);
			let fold = folds.get(runId);
			const began = fold === undefined;
			if (!fold) {
				fold = createFold();
				folds.set(runId, fold);
			}
			fold.push(frame);
			dirty.add(runId);
			return { runId, began, settled: finalOf(frame) !== undefined };
		},
		changed() {
			const views: RunView[] = [];
			for (const runId of dirty) {
				const fold = folds.get(runId);
				if (!fold) continue;
				const view = fold.view();
				views.push(view);
				// A settled run does not change any more.
				if (view.final) folds.delete(runId);
			}
			dirty.clear();
			return views;
		},
	};
}
