/**
 * The end of a run: its turn and its final frame in one commit (I5). What the Ledger refuses is tried again, ever later, and in the end
 * settled as failed with what can be saved: a session must not wait for a restart because of one answer.
 */

import { decodeFrame, encodeFrame, NexusError, Refused, toNexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { LogWriter } from "../../bus/bus.ts";
import { type Turn, turnWrites } from "../../ledger/ledger.ts";
import type { Write } from "../../std/write.ts";
import type { Settle } from "../port.ts";

export interface SettlementDeps {
	clock: Clock;
	log: Log;
}

export interface Settlement {
	writer: LogWriter;
	turn: Turn;
	/** The last frames; the very last is the run's final end. */
	records: readonly string[];
	/** What commits beside the turn. */
	beside: Settle;
	/** The Ledger refuses it at the moment. */
	onRefused(): void;
}

const RETRY_MS = 100;
const RETRY_MS_MAX = 5_000;
const PATIENCE_MS = 30_000;

/** The turn as it was saved. Rejects when the store itself gave up; the run is settled from its log then, once that can be written. */
export async function settle(deps: SettlementDeps, settlement: Settlement): Promise<Turn> {
	const { clock, log } = deps;
	const { turn, writer, records, beside } = settlement;
	for (let tries = 0, waitedMs = 0; ; tries++) {
		const refused = await attempt(writer, records, [turnWrites.settle(turn), ...besides(deps, beside, turn)]);
		if (!refused) return turn;
		settlement.onRefused();
		const waitMs = Math.min(RETRY_MS * 2 ** tries, RETRY_MS_MAX);
		waitedMs += waitMs;
		if (waitedMs > PATIENCE_MS) return salvage(deps, settlement, refused);
		log.error({ runId: turn.runId, err: refused, againMs: waitMs }, "the turn cannot be saved; trying again");
		await new Promise<void>((resolve) => clock.after(waitMs, resolve, "due"));
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

/** What cannot even be said must not keep the turn from being saved. */
function besides({ log }: SettlementDeps, beside: Settle, turn: Turn): readonly Write[] {
	try {
		return beside(turn);
	} catch (cause) {
		log.error({ runId: turn.runId, err: cause }, "what belongs beside a turn could not be made");
		return [];
	}
}

/** Less and less of the turn; at the very least the log ends, so that the session goes on. */
async function salvage(deps: SettlementDeps, settlement: Settlement, cause: Refused): Promise<Turn> {
	const { turn, writer, records, beside } = settlement;
	const { log } = deps;
	const { runId } = turn;
	const message = `The answer could not be saved as it was: ${toNexusError(cause).message}`;
	const error = { code: "data_loss", message };
	const failed: Turn = { ...turn, status: "failed", reason: "error", error, toolCalls: [] };
	const bare: Turn = { ...failed, messages: [] };
	const told = failedEnd(records, error);
	const tries: [Turn, readonly Write[]][] = [
		[failed, besides(deps, beside, failed)],
		[failed, []],
		[bare, []],
	];
	for (const [less, writes] of tries) {
		if (await attempt(writer, told, [turnWrites.settle(less), ...writes])) continue;
		log.error(
			{ runId, err: cause, messages: less.messages.length },
			"a turn was saved without what the ledger refuses",
		);
		return less;
	}
	const refused = await attempt(writer, told, []);
	if (refused)
		throw new NexusError("internal", "a log that needs nothing of the ledger was refused", { cause: refused });
	log.error({ runId, err: cause }, "a turn could not be saved at all; its frames are all that is left of it");
	return bare;
}

/** Readers are told what the turn says. */
function failedEnd(records: readonly string[], error: { code: string; message: string }): string[] {
	return records.map((record, n) => {
		const frame = n === records.length - 1 ? decodeFrame(record) : undefined;
		return frame?.type === "stream.end" ? encodeFrame({ ...frame, reason: "error", error }) : record;
	});
}
