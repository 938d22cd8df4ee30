/** How a run ended, and the resulting status of its turn and of its open tool calls. */

import { type EndError, type EndReason, NexusError, wordsOf } from "@nexus-stream/protocol";
import type { TurnStatus } from "../../ledger/turns/port.ts";
import { clippedText } from "../frames/pieces.ts";

/** Limit of an engine's error message. */
const ERROR_CHARS_MAX = 4000;

export interface Ending {
	reason: EndReason;
	error?: EndError;
	/** Recovery wrote it. */
	synthetic?: boolean;
}

export const COMPLETED: Ending = { reason: "completed" };
export const ABORTED: Ending = { reason: "aborted" };
export const SHUT_DOWN: Ending = {
	reason: "aborted",
	error: { code: "unavailable", message: "Nexus was shut down. What was written is kept.", reason: "STOPPING" },
};
export const CRASHED: Ending = {
	reason: "crashed",
	error: { code: "crashed", message: "The process ended while this answer was being written." },
	synthetic: true,
};

/** The store gave up on the run, and takes commits again. */
export const UNWRITTEN: Ending = {
	reason: "error",
	error: { code: "unavailable", message: "The answer could not be written to disk completely." },
	synthetic: true,
};

/** The stored log has holes: the end says so in addition to its reason. */
export const damagedEnding = ({ error, ...ending }: Ending, damage: string): Ending => ({
	...ending,
	error: {
		code: "data_loss",
		message: `${error?.message ?? ""} The stored part is damaged: ${damage}.`.trimStart(),
	},
});

/** The ending for an error that an engine threw. */
export function failureOf(cause: unknown): Ending {
	const code = cause instanceof NexusError ? cause.code : "engine_failed";
	const message = clippedText(wordsOf(cause), ERROR_CHARS_MAX) || "the engine failed without a message";
	return { reason: "error", error: { code, message } };
}

export function statusOf(reason: EndReason): TurnStatus {
	switch (reason) {
		case "completed":
			return "completed";
		case "aborted":
			return "aborted";
		case "error":
		case "timeout":
		case "crashed":
			return "failed";
		default:
			return reason satisfies never;
	}
}

/** The summary of a tool call that was running when its run ended. */
export function unpairedSummary(reason: EndReason): string {
	switch (reason) {
		case "completed":
			return "no result";
		case "aborted":
			return "stopped";
		case "error":
			return "the run failed";
		case "timeout":
			return "timed out";
		case "crashed":
			return "the process ended";
		default:
			return reason satisfies never;
	}
}
