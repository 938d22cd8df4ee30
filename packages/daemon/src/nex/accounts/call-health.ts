/** Whether an account's platform answers, by the calls that its adapter reports. */

import type { StreamStatus } from "@nexus-stream/adapter/host";
import type { Clock } from "@nexus-stream/protocol/clock";

type CallReport = Pick<Extract<StreamStatus, { type: "call" }>, "ok" | "call" | "detail">;

export interface CallHealth {
	note(call: CallReport): void;
	/** Why the last call found no platform; undefined when it did, or was long ago. */
	error(): string | undefined;
}

/** What failed longer ago says nothing about now. */
const KEPT_MS = 60_000;
/** Other refusals are answers: about a chat, a text, or the pace. */
const UNANSWERED = /^(?:unavailable|unknown_outcome): /;

export function createCallHealth(clock: Clock): CallHealth {
	let failed: { error: string; at: number } | undefined;
	return {
		note({ ok, detail = "" }) {
			if (ok || !UNANSWERED.test(detail)) failed = undefined;
			else failed = { error: detail.replace(UNANSWERED, ""), at: clock.now() };
		},
		error: () => (failed && clock.now() - failed.at < KEPT_MS ? failed.error : undefined),
	};
}
