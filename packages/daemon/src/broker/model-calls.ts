/** Model calls without a session: starts and stops them, and ends those that a dead daemon left. */

import { type LogKind, NexusError } from "@nexus-stream/protocol";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import type { LogInfo } from "../bus/bus.ts";
import type { Write } from "../std/write.ts";
import { CRASHED, type Ending, UNWRITTEN } from "./ending.ts";
import { Framer } from "./frames/framer.ts";
import {
	type CallRequest,
	ModelCall,
	type ModelCallDeps,
	type ModelCallEnd,
	sealWith,
	UNKNOWN_USAGE,
} from "./model-call.ts";
import { BROKER_LIMITS, type BrokerLimits } from "./port.ts";
import { drainAll, endingOf, type RecoveryDeps, reopenOrphan, settleOrphans, untilSettled } from "./recovery.ts";

export interface ModelCallsOptions extends RecoveryDeps {
	limits?: Partial<BrokerLimits>;
	/** Returns the writes that commit with the end of a call that another process began, or that the store gave up. */
	settleOrphan(info: LogInfo, end: ModelCallEnd): readonly Write[];
}

export class ModelCalls {
	readonly #deps: ModelCallDeps & { limits: BrokerLimits };
	readonly #settleOrphan: ModelCallsOptions["settleOrphan"];
	readonly #calls = new Map<string, ModelCall>();
	/** Logs that could not be ended yet. */
	readonly #unsettled = new Set<string>();
	#draining = false;

	constructor({ bus, limits, clock, log, settleOrphan }: ModelCallsOptions) {
		const settleLate = (runId: string) => void this.#later(runId, UNWRITTEN);
		this.#deps = { bus, clock, log, limits: withDefaults(BROKER_LIMITS, limits), settleLate };
		this.#settleOrphan = settleOrphan;
	}

	get live(): number {
		return this.#calls.size;
	}

	/**
	 * Resolves once the beginning of the log is durable; rejects when the call could not be started and left nothing behind. `ended` never
	 * rejects: a failure is an end.
	 */
	async start(request: CallRequest): Promise<{ ended: Promise<ModelCallEnd> }> {
		const { runId } = request;
		if (this.#draining) throw new NexusError("unavailable", "The daemon is stopping.", { reason: "STOPPING" });
		if (this.#calls.has(runId)) throw new NexusError("conflict", `Run ${runId} is already live.`);
		const run = new ModelCall(this.#deps, request);
		this.#calls.set(runId, run);
		const leave = () => this.#calls.delete(runId);
		run.result.then(leave, leave);
		await run.establish();
		return { ended: run.result };
	}

	/** The request of a live call. */
	find(runId: string): CallRequest | undefined {
		return this.#calls.get(runId)?.request;
	}

	/** Undefined when no such call is live here. Never rejects. */
	abort(runId: string): Promise<ModelCallEnd> | undefined {
		const run = this.#calls.get(runId);
		run?.abort();
		return run?.result;
	}

	/** Ends every log of a kind that a dead daemon left; returns how many. Logs that cannot be ended yet are retried. */
	async recover(kind: LogKind): Promise<number> {
		const { settled, later } = await settleOrphans(this.#deps, kind, this.#unsettled, (info) =>
			this.#endOrphan(info, CRASHED),
		);
		for (const { log } of later) void this.#later(log, CRASHED);
		return settled.length;
	}

	/** Refuses new calls, waits for the live ones, and aborts the rest at the deadline. */
	async drain(deadlineMs: number): Promise<void> {
		this.#draining = true;
		await drainAll(this.#deps, "model calls", this.#calls, deadlineMs);
	}

	#later(runId: string, ending: Ending): Promise<unknown> {
		const stopping = () => this.#draining;
		this.#unsettled.add(runId);
		return untilSettled(this.#deps, stopping, runId, async (info) => {
			if (info) await this.#endOrphan(info, ending);
		}).finally(() => this.#unsettled.delete(runId));
	}

	/** Writes the end. The call itself is never repeated. */
	async #endOrphan(info: LogInfo, why: Ending): Promise<void> {
		const { limits, log } = this.#deps;
		const framer = new Framer({ runId: info.log, ...limits });
		const orphan = await reopenOrphan(this.#deps, info, info.createdAt, (frame) => framer.streams.replay(frame));
		const ending = endingOf(orphan, why);
		const records = framer.lastRecords(ending, UNKNOWN_USAGE, orphan.now);
		const { reason, error } = ending;
		await sealWith(log, orphan.writer, records, this.#settleOrphan(info, { reason, usage: UNKNOWN_USAGE, error }));
	}
}
