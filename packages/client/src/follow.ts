/** A followed stream as an async generator: its records, each verified, or what they fold into. */

import { NexusError, type RunView, type Violation } from "@nexus-stream/protocol";
import type { Http } from "./http.ts";
import { isOver, type LinkState } from "./link.ts";
import { createRunFolds, createRunVerifier, type RunCheck } from "./runs.ts";
import { closeModeOf, openStream, type Source, type StreamOptions, type StreamRecord } from "./stream.ts";

export interface FollowOptions extends Pick<StreamOptions, "after" | "onState" | "limits" | "clock" | "random"> {
	/** Ends the iteration, which then throws the signal's reason. */
	signal?: AbortSignal;
	/** `after` is inside a run, whose frames can then not be verified. Left out: a run's `after` above 0, and never a session's. */
	partial?: boolean;
}

export interface FollowedRecord extends StreamRecord, RunCheck {}

/**
 * Every record, once and in order, across lost connections and restarts (I4). A run's records end with its final end; a session's do not
 * end. Throws what the server refused with, `data_loss` after the end of a run that is damaged, and the signal's reason.
 */
export async function* follow(
	http: Pick<Http, "request">,
	source: Source,
	options: FollowOptions = {},
): AsyncGenerator<FollowedRecord> {
	const isRun = closeModeOf(source) === "A";
	const partial = options.partial ?? (isRun && (options.after ?? 0) > 0);
	const verifier = createRunVerifier({ partial });
	let hasEnded = false;
	for await (const records of batches(http, source, options)) {
		for (const record of records) {
			const checked = verifier.push(record.frame);
			yield { ...record, ...checked };
			if (checked.end) hasEnded = true;
			if (checked.end && checked.violation && isRun) throw damaged(checked.violation);
		}
	}
	if (!hasEnded && !partial) throw unfinished(source);
}

/**
 * The view of the run, or of each run of the session, after every change; a slow reader gets fewer, newer views.
 * A run is read from its beginning, whatever `after` says.
 */
export async function* watch(
	http: Pick<Http, "request">,
	source: Source,
	{ after, ...options }: Omit<FollowOptions, "partial"> = {},
): AsyncGenerator<RunView> {
	const isRun = closeModeOf(source) === "A";
	const folds = createRunFolds();
	let last: RunView | undefined;
	const start = isRun || after === undefined ? {} : { after };
	for await (const records of batches(http, source, { ...options, ...start })) {
		for (const { frame } of records) folds.push(frame);
		for (last of folds.changed()) yield last;
	}
	if (!isRun) return;
	if (!last?.final) throw unfinished(source);
	const [violation] = last.violations;
	if (violation) throw damaged(violation);
}

const damaged = ({ message, rule }: Violation): NexusError =>
	new NexusError("data_loss", `the answer is damaged: ${message} (${rule})`);

const unfinished = (source: Source): NexusError => {
	const name = "run" in source ? source.run : source.session;
	return new NexusError("data_loss", `the stream of ${name} ended without its final end (P1.12)`);
};

/** The stream's batches, pulled: while one is being worked on, the next is not read. */
async function* batches(
	http: Pick<Http, "request">,
	source: Source,
	{ signal, onState, ...options }: FollowOptions,
): AsyncGenerator<readonly StreamRecord[]> {
	signal?.throwIfAborted();
	const queue: (readonly StreamRecord[] | NexusError)[] = [];
	let over: LinkState | undefined;
	let wake = () => {};
	let taken = () => {};
	const stream = openStream(http, source, {
		...options,
		onRecords(records) {
			queue.push(records);
			wake();
			return new Promise((resolve) => (taken = resolve));
		},
		onDamage(error) {
			queue.push(error);
			wake();
		},
		onState(state) {
			if (isOver(state)) {
				over = state;
				wake();
			}
			onState?.(state);
		},
	});
	const stop = () => stream.send({ type: "stop" });
	signal?.addEventListener("abort", stop);
	try {
		for (;;) {
			signal?.throwIfAborted();
			const next = queue.shift();
			if (next instanceof NexusError) throw next;
			if (next) {
				yield next;
				taken();
			} else if (over) {
				if (over.phase !== "ended") throw over.error ?? new NexusError("aborted", "the stream was stopped");
				return;
			} else await new Promise<void>((resolve) => (wake = resolve));
		}
	} finally {
		signal?.removeEventListener("abort", stop);
		stop();
	}
}
