/** Makes the parts of a run: its framer, its transcript and its recorder. */

import { Framer } from "../frames/framer.ts";
import { Recorder } from "../frames/recorder.ts";
import { Transcript } from "../frames/transcript.ts";
import { keptOf } from "../limits.ts";
import type { ExecuteRequest } from "../port.ts";
import type { RunDeps } from "./run-deps.ts";
import { type RunMeta, storedQuestion } from "./run-log.ts";

/** A run that continues another has no messages itself. */
const ownEvents = ({ events, continues }: ExecuteRequest): ExecuteRequest["events"] => (continues ? [] : events);

/** For recovery and listing. */
export const metaOf = (request: ExecuteRequest, engine: string, startedAt: number): RunMeta => ({
	session: request.session,
	engine,
	startedAt,
	events: ownEvents(request).map(({ eventId }) => ({ eventId })),
	continues: request.continues?.runId,
});

export function partsOf({ engine, limits, withArguments, log }: RunDeps, request: ExecuteRequest, startedAt: number) {
	const { runId, session, target, traceId, disableStreaming: whole = false } = request;
	const continues = request.continues?.runId;
	const framer = new Framer({ runId, session, continues, target, traceId, whole, ...limits });
	const transcript = new Transcript({
		runId,
		session,
		continues,
		engine: engine.name,
		startedAt,
		...keptOf(limits),
		userMessages: ownEvents(request).map(storedQuestion),
	});
	const recorder = new Recorder({
		runId,
		session,
		engine,
		continues: request.continues,
		limits,
		withArguments,
		log,
		lengths: () => transcript.lengths,
	});
	return { framer, transcript, recorder };
}
