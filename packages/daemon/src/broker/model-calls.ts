/** Model calls without a session: starts them, stops them, and ends what a dead daemon left of them. */

import { type LogKind, NexusError } from "@nexus-stream/protocol";
import { type Clock, systemClock, within } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import { type Log, silentLog } from "@nexus-stream/protocol/log";
import type { Bus, LogInfo } from "../bus/bus.ts";
import type { Write } from "../std/write.ts";
import { Framer } from "./frames/framer.ts";
import { BROKER_LIMITS, type BrokerLimits } from "./limits.ts";
import {
	type CallRequest,
	ModelCall,
	type ModelCallDeps,
	type ModelCallEnd,
	sealWith,
	UNKNOWN_USAGE,
} from "./model-call.ts";
import { readWhole, untilSettled } from "./recovery.ts";
import { CRASHED, damagedEnding, type Ending, UNWRITTEN } from "./settle/ending.ts";

export interface ModelCallsOptions {
	bus: Bus;
	limits?: Partial<BrokerLimits>;
	clock?: Clock;
	log?: Log;
	/** What commits with the end of a call that another process began, or that the store gave up. */
	settleOrphan?(info: LogInfo, end: ModelCallEnd): readonly Write[];
}

export interface ModelCallExecution {
	/** Never rejects: a failure is an end. */
	ended: Promise<ModelCallEnd>;
}

export interface ModelCalls {
	/** Resolves once the beginning of the log is durable; rejects when the call could not be started, which then left nothing. */
	start(request: CallRequest): Promise<ModelCallExecution>;
	/** What one that is under way here was started with. */
	find(runId: string): CallRequest | undefined;
	/** Undefined when no such call is under way here. Never rejects. */
	abort(runId: string): Promise<ModelCallEnd> | undefined;
	/** Ends every log of a kind that a dead daemon left; returns how many. Those that cannot be ended yet are tried again. */
	recover(kind: LogKind): Promise<number>;
	readonly live: number;
	/** Refuses new ones, waits for those under way, and aborts what is left at the deadline. */
	drain(deadlineMs: number): Promise<void>;
}

/** How long the last commit may take once every call has ended. */
const SEAL_MS_MAX = 5000;

export const createModelCalls = (options: ModelCallsOptions): ModelCalls => new LiveModelCalls(options);

class LiveModelCalls implements ModelCalls {
	readonly #deps: ModelCallDeps & { limits: BrokerLimits };
	readonly #settleOrphan: (info: LogInfo, end: ModelCallEnd) => readonly Write[];
	readonly #calls = new Map<string, ModelCall>();
	#draining = false;

	constructor({ bus, limits, clock = systemClock, log = silentLog, settleOrphan = () => [] }: ModelCallsOptions) {
		const settleLate = (runId: string) => void this.#later(runId, UNWRITTEN);
		this.#deps = { bus, clock, log, limits: withDefaults(BROKER_LIMITS, limits), settleLate };
		this.#settleOrphan = settleOrphan;
	}

	get live(): number {
		return this.#calls.size;
	}

	async start(request: CallRequest): Promise<ModelCallExecution> {
		const { runId } = request;
		if (this.#draining) throw new NexusError("unavailable", "The daemon is stopping.", { reason: "STOPPING" });
		if (this.#calls.has(runId)) throw new NexusError("conflict", `Run ${runId} is live already.`);
		const run = new ModelCall(this.#deps, request);
		this.#calls.set(runId, run);
		const leave = () => this.#calls.delete(runId);
		run.ended.then(leave, leave);
		await run.establish();
		return { ended: run.ended };
	}

	find(runId: string): CallRequest | undefined {
		return this.#calls.get(runId)?.request;
	}

	abort(runId: string): Promise<ModelCallEnd> | undefined {
		const run = this.#calls.get(runId);
		run?.abort();
		return run?.ended;
	}

	async recover(kind: LogKind): Promise<number> {
		let count = 0;
		for (const info of await this.#deps.bus.list({ kind, orphaned: true })) {
			try {
				await this.#endOrphans(info, CRASHED);
				count++;
			} catch (cause) {
				this.#deps.log.error(
					{ runId: info.log, err: cause },
					"a model call of the last process could not be ended yet",
				);
				void this.#later(info.log, CRASHED);
			}
		}
		return count;
	}

	async drain(deadlineMs: number): Promise<void> {
		this.#draining = true;
		const { clock, limits, log } = this.#deps;
		const ended = () => Promise.allSettled([...this.#calls.values()].map((run) => run.ended));
		if (await within(clock, deadlineMs, ended())) return;
		log.info({ calls: this.#calls.size }, "stopping the model calls that are left");
		for (const run of this.#calls.values()) run.shutDown();
		if (await within(clock, limits.abortGraceMs + SEAL_MS_MAX, ended())) return;
		log.error({ calls: [...this.#calls.keys()] }, "model calls did not end; recovery ends them at the next start");
	}

	#later(runId: string, ending: Ending): Promise<unknown> {
		return untilSettled(
			this.#deps,
			() => this.#draining,
			runId,
			async () => {
				const info = await this.#deps.bus.describe(runId);
				if (info && info.sealedAt === undefined) await this.#endOrphans(info, ending);
			},
		);
	}

	/** Nothing of it is done again: what is on record is given its end. */
	async #endOrphans(info: LogInfo, why: Ending): Promise<void> {
		const { bus, clock, limits, log } = this.#deps;
		const writer = await bus.reopen(info.log);
		const framer = new Framer({ runId: info.log, ...limits });
		// The clock may have been set back since; an answer does not end before its last token.
		let now = Math.max(clock.now(), info.createdAt);
		const damage = await readWhole(this.#deps, info, (frame) => {
			framer.replay(frame);
			now = Math.max(now, frame.ts);
		});
		const ending = damage === undefined ? why : damagedEnding(why, damage);
		const records: string[] = [];
		if (!framer.finished) framer.end(ending, UNKNOWN_USAGE, now, (record) => records.push(record));
		const { reason, error } = ending;
		const end = { reason, usage: UNKNOWN_USAGE, error };
		await sealWith(log, writer, records, this.#settleOrphan(info, end));
		log.info({ runId: info.log }, "ended a model call that was left");
	}
}
