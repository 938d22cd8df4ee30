/** Runs, read from Ledger, Broker and Bus together: a run is live until its turn is saved. */

import { NexusError } from "@nexus-stream/protocol";
import { z } from "zod";
import type { LiveRun } from "../../broker/broker.ts";
import type { Turn } from "../../ledger/turns/port.ts";
import type { EdgeDeps, EdgeLimits } from "../port.ts";
import { writerOf } from "./messages.ts";
import {
	beforeId,
	component,
	get,
	type HandlersOf,
	LIMIT_DEFAULT,
	limit,
	post,
	runParams,
	sessionLabel,
} from "./resource.ts";
import { type RunFields, RunView, runView } from "./run-view.ts";

const RunList = component("RunList", { runs: z.array(RunView) });
const RunStatus = component("RunStatus", RunView.pick({ run_id: true, status: true }));
const RunContinued = component("RunContinued", { run_id: z.string(), continues: z.string() });
const RunRetried = component("RunRetried", { run_id: z.string(), retries: z.string() });

export const pageQuery = z.object({
	limit,
	before: beforeId("run", "the id of a run").describe("A run id: only older runs."),
});

export const RUN_ROUTES = {
	listRuns: get("/v1/runs", "Runs, newest first, live ones included.", {
		query: z.object({ session: sessionLabel.optional(), ...pageQuery.shape }),
		answer: RunList,
	}),
	getRun: get("/v1/runs/{run}", "One run: the settled turn, or how far it is.", {
		params: runParams,
		answer: RunView,
		errors: ["not_found"],
	}),
	continueRun: post(
		"/v1/runs/{run}/continue",
		"Continues a run that was stopped, failed or crashed, as a new run; a repeated request returns the same run.",
		{ params: runParams, status: 202, answer: RunContinued, errors: ["not_found", "conflict"] },
	),
	retryRun: post(
		"/v1/runs/{run}/retry",
		"Answers the messages of a run that was stopped, failed or crashed with a new run, from the start.",
		{ params: runParams, status: 202, answer: RunRetried, errors: ["not_found", "conflict"] },
	),
	abortRun: post("/v1/runs/{run}/abort", "Stops a run and answers once it has settled; what was said so far is kept.", {
		params: runParams,
		answer: RunStatus,
		errors: ["not_found"],
	}),
};

export function runHandlers(deps: EdgeDeps, { listItemsMax }: EdgeLimits): HandlersOf<typeof RUN_ROUTES> {
	const { broker, ledger } = deps;
	const { settled, running } = runReader(deps);
	return {
		async listRuns({ query: { session, limit = LIMIT_DEFAULT, before } }) {
			const most = Math.min(limit, listItemsMax);
			const begun = broker
				.liveRuns()
				.filter((run) => (!session || run.session === session) && (!before || run.runId < before));
			const saved = await Promise.all(begun.map(async (run) => ledger.turns.get(run.runId)));
			const turns = await ledger.turns.begun({
				limit: most,
				session: session || undefined,
				before: before || undefined,
			});
			// A run that settled between the reads is already among the turns.
			const live = begun.filter(({ runId }, n) => !saved[n] && turns.every((turn) => turn.runId !== runId));
			const runs = await Promise.all([...live.map(running), ...turns.map(settled)]);
			return { runs: runs.sort((left, right) => (left.run_id < right.run_id ? 1 : -1)).slice(0, most) };
		},
		async getRun({ params: { run: runId } }) {
			// Asked before the Ledger: a run that settles meanwhile is a turn then.
			const run = broker.live(runId);
			const turn = await ledger.turns.get(runId);
			if (turn) return settled(turn);
			if (!run) throw new NexusError("not_found", `there is no run ${runId}`);
			return running(run);
		},
		async continueRun({ params: { run } }) {
			const { runId } = await deps.proceed(run);
			return { run_id: runId, continues: run };
		},
		async retryRun({ params: { run } }) {
			const { runId } = await deps.retry(run);
			return { run_id: runId, retries: run };
		},
		async abortRun({ params: { run } }, { caller }) {
			const aborting = broker.abort(run);
			if (aborting) deps.abortAsked(run, caller.address);
			const turn = (await aborting) ?? (await ledger.turns.get(run));
			if (!turn) throw new NexusError("not_found", `there is no run ${run}`);
			return { run_id: run, status: turn.status };
		},
	};
}

/** Runs as their readers see them, with the authors of their messages. */
export function runReader({ bus, ledger, broker }: Pick<EdgeDeps, "bus" | "ledger" | "broker">) {
	/** Adds the author to messages of other people; the owner's messages carry no name. */
	const withWriters = async (run: RunFields): Promise<RunFields> => {
		const eventIds = run.messages.flatMap(({ event_id: eventId }) => eventId ?? []);
		const authors = eventIds.length === 0 ? [] : await ledger.inbox.authors(eventIds);
		const writers = new Map(authors.map(({ eventId, origin }) => [eventId, writerOf(origin)]));
		return { ...run, messages: run.messages.map((said) => ({ ...said, ...writers.get(said.event_id ?? "") })) };
	};
	return {
		async settled(turn: Turn): Promise<RunFields> {
			const framesAvailable = (await bus.describe(turn.runId)) !== undefined;
			if (turn.status === "completed") return withWriters(runView(turn, { framesAvailable }));
			const { canContinue, retryRefusal } = await broker.resumption(turn);
			return withWriters(runView(turn, { framesAvailable, canContinue, canRetry: retryRefusal === undefined }));
		},
		running: (run: LiveRun): Promise<RunFields> => withWriters(runView(run, { framesAvailable: true })),
	};
}
