/** A live run as a person would want to see it. */

import type { Transcript } from "../frames/transcript.ts";
import type { ExecuteRequest, LiveRun } from "../port.ts";

export function snapshotOf(
	transcript: Transcript,
	{ runId, session, continues }: ExecuteRequest,
	facts: Pick<LiveRun, "engine" | "startedAt" | "status" | "compacting">,
): LiveRun {
	const { firstTokenMs } = transcript;
	return {
		runId,
		session,
		...facts,
		continues: continues?.runId,
		firstTokenMs,
		toolCalls: transcript.toolCalls,
		// Made when they are asked for: most who look at live runs want to know which there are.
		get text() {
			return transcript.text;
		},
		get messages() {
			return transcript.messages;
		},
	};
}
