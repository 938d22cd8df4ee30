/** How a run ends: the reason with the status of its turn, and the commit of turn and final frame together (I5). */

import {
	decodeFrame,
	type EndError,
	type EndReason,
	encodeFrame,
	NexusError,
	Refused,
	toNexusError,
	wordsOf,
} from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { type Backoff, backoffMs, sleep } from "@nexus-stream/protocol/retry";
import type { LogWriter } from "../bus/bus.ts";
import { type Turn, type TurnStatus, turnWrites } from "../ledger/turns/port.ts";
import type { Write } from "../std/write.ts";
import { clippedText } from "./frames/text.ts";
import type { Settle } from "./port.ts";

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
	error: { code: "data_loss", message: `${error?.message ?? ""} The stored part is damaged: ${damage}.`.trimStart() },
});

/** The ending for an error that an engine threw. */
export function failureOf(cause: unknown): Ending {
	const code = cause instanceof NexusError ? cause.code : "engine_failed";
	const message = clippedText(wordsOf(cause), ERROR_CHARS_MAX) || "the engine failed without a message";
	return { reason: "error", error: { code, message } };
}

export const statusOf = (reason: EndReason): TurnStatus =>
	reason === "completed" || reason === "aborted" ? reason : "failed";

/** The summary of a tool call that was running when its run ended, by the reason of that. */
export const UNPAIRED_SUMMARY: Readonly<Record<EndReason, string>> = {
	completed: "no result",
	aborted: "stopped",
	error: "the run failed",
	timeout: "timed out",
	crashed: "the process ended",
};

interface SettlementDeps {
	clock: Clock;
	log: Log;
}

export interface Settlement {
	writer: LogWriter;
	turn: Turn;
	/** The last frames; the very last is the run's final end. */
	records: readonly string[];
	/** Returns the writes that commit with the turn. */
	settleWith: Settle;
	/** The Ledger has refused the turn; it is retried. */
	onRefused(): void;
}

const BACKOFF: Backoff = { firstMs: 100, maxMs: 5_000 };
const PATIENCE_MS = 30_000;

/**
 * Returns the turn as saved. Rejects when the store itself gave up: recovery then settles the run from its log. A turn that the Ledger
 * refuses is retried, and in the end saved as failed with less: a session must not wait for a restart because of one answer.
 */
export async function settle(deps: SettlementDeps, settlement: Settlement): Promise<Turn> {
	const { clock, log } = deps;
	const { turn, writer, records, settleWith } = settlement;
	for (let tries = 0, waitedMs = 0; ; tries++) {
		const refused = await attempt(writer, records, [turnWrites.settle(turn), ...extraWrites(deps, settleWith, turn)]);
		if (!refused) return turn;
		settlement.onRefused();
		const waitMs = backoffMs(BACKOFF, tries);
		waitedMs += waitMs;
		if (waitedMs > PATIENCE_MS) return salvage(deps, settlement, refused);
		log.error({ runId: turn.runId, err: refused, againMs: waitMs }, "the turn cannot be saved; retrying");
		await sleep(clock, waitMs, undefined, "due");
	}
}

/** Undefined when it is saved. */
async function attempt(
	writer: LogWriter,
	records: readonly string[],
	writes: readonly Write[],
): Promise<Refused | undefined> {
	try {
		await writer.seal(records, writes);
		return undefined;
	} catch (cause) {
		if (cause instanceof Refused && cause.refusal !== "fenced") return cause;
		throw cause;
	}
}

/** A failure to make them must not keep the turn from being saved. */
function extraWrites({ log }: SettlementDeps, settleWith: Settle, turn: Turn): readonly Write[] {
	try {
		return settleWith(turn);
	} catch (cause) {
		log.error(
			{ runId: turn.runId, err: cause },
			"the writes that accompany a turn could not be made; saving the turn without them",
		);
		return [];
	}
}

/** Saves less and less of the turn; at the very least the log ends, so that the session can continue. */
async function salvage(deps: SettlementDeps, settlement: Settlement, cause: Refused): Promise<Turn> {
	const { turn, writer, records, settleWith } = settlement;
	const { log } = deps;
	const { runId } = turn;
	const message = `The answer could not be saved as it was: ${toNexusError(cause).message}`;
	const error = { code: "data_loss", message };
	const failed: Turn = { ...turn, status: "failed", reason: "error", error, toolCalls: [] };
	const bare: Turn = { ...failed, messages: [] };
	const failedRecords = failedEnd(records, error);
	const tries: [Turn, readonly Write[]][] = [
		[failed, extraWrites(deps, settleWith, failed)],
		[failed, []],
		[bare, []],
	];
	for (const [less, writes] of tries) {
		if (await attempt(writer, failedRecords, [turnWrites.settle(less), ...writes])) continue;
		log.error(
			{ runId, err: cause, messages: less.messages.length },
			"a turn was saved without the parts that the ledger refuses",
		);
		return less;
	}
	const refused = await attempt(writer, failedRecords, []);
	if (refused)
		throw new NexusError("internal", "a log that needs nothing of the ledger was refused", { cause: refused });
	log.error({ runId, err: cause }, "a turn could not be saved at all; only its frames remain");
	return bare;
}

/** The final frame says the same as the turn. */
function failedEnd(records: readonly string[], error: { code: string; message: string }): string[] {
	return records.map((record, n) => {
		const frame = n === records.length - 1 ? decodeFrame(record) : undefined;
		return frame?.type === "stream.end" ? encodeFrame({ ...frame, reason: "error", error }) : record;
	});
}
