/** The Broker: runs one turn and settles it, or settles a run that a dead daemon left. The door of this folder. */

import { isSessionLabel, NexusError, type Random, Refused, toNexusError, traceIdOf } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import type { Engine } from "@nexus-stream/protocol/engine";
import type { Log } from "@nexus-stream/protocol/log";
import type { Bus } from "../bus/bus.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Turn, TurnStatus } from "../ledger/turns/port.ts";
import { APPROVAL_LIMITS, Approvals } from "./approvals.ts";
import { CRASHED } from "./ending.ts";
import { History } from "./history.ts";
import { sessionPhases } from "./phases.ts";
import {
	type ApprovalLimits,
	type ApprovalsPort,
	BROKER_LIMITS,
	type Broker,
	type BrokerLimits,
	type Continuation,
	type ExecuteRequest,
	type Execution,
	type LiveRun,
	type PhasesPort,
	type Recovered,
	type RunObserver,
	type SettleOrphan,
} from "./port.ts";
import { drainAll } from "./recovery.ts";
import { type ContinuationDeps, continuationOf, resumptionOf } from "./run/continuation.ts";
import { Run } from "./run/run.ts";
import type { RunDeps } from "./run/run-parts.ts";
import { settleOrphanedRuns, settleWhenPossible } from "./run/run-recovery.ts";

export { answerOf, isPersons } from "./approvals.ts";
export { currentRun } from "./driver.ts";
export type { CallEvent, ModelCallEnd } from "./model-call.ts";
export { ModelCalls } from "./model-calls.ts";
export {
	type ApprovalDecision,
	type ApprovalLimits,
	BROKER_LIMITS,
	type Broker,
	type Continuation,
	type ExecuteRequest,
	type Execution,
	type Joining,
	type LiveRun,
	type PassedOn,
	type RunInbox,
	type RunObserver,
} from "./port.ts";
export { chainOf, type RunMeta } from "./run/run-parts.ts";

export interface BrokerOptions {
	bus: Bus;
	ledger: Ledger;
	engine: Engine;
	limits?: Partial<BrokerLimits>;
	/** The execution log includes arguments, results and prompts. */
	execution?: { arguments?: boolean };
	observer?: RunObserver;
	clock: Clock;
	log: Log;
	approvals?: Partial<ApprovalLimits>;
	random?: Random;
}

export const createBroker = (options: BrokerOptions): Broker => new TurnBroker(options);

class TurnBroker implements Broker {
	readonly #deps: RunDeps;
	readonly #runs = new Map<string, Run>();
	readonly #bySession = new Map<string, Set<Run>>();
	readonly phases: PhasesPort;
	readonly settled: Record<TurnStatus, number> = { completed: 0, aborted: 0, failed: 0 };
	/** Runs of dead daemons that could not be settled yet. */
	readonly #unsettled = new Set<string>();
	#draining = false;

	constructor({ bus, ledger, engine, clock, log, ...options }: BrokerOptions) {
		const limits = withDefaults(BROKER_LIMITS, options.limits);
		const approvals = new Approvals({
			bus,
			ledger,
			clock,
			log,
			random: options.random ?? secureRandom,
			limits: withDefaults(APPROVAL_LIMITS, options.approvals),
		});
		this.phases = sessionPhases({ bus, ledger, engine, clock });
		this.#deps = {
			bus,
			ledger,
			engine,
			clock,
			log,
			limits,
			approvals,
			history: new History(ledger, limits),
			observer: options.observer,
			withArguments: options.execution?.arguments === true,
			stopping: () => this.#draining,
			settleLate: (...run) => settleWhenPossible(this.#deps, ...run),
		};
	}

	get approvals(): ApprovalsPort {
		return this.#deps.approvals;
	}

	execute(request: ExecuteRequest): Execution {
		try {
			return this.#start(request);
		} catch (cause) {
			return neverBegun(toNexusError(cause));
		}
	}

	#start(request: ExecuteRequest): Execution {
		const { session, runId } = request;
		if (!isSessionLabel(session))
			throw new NexusError("invalid", `${JSON.stringify(session)} is not a session's label.`);
		if (this.#draining)
			throw new NexusError("unavailable", "The daemon is stopping; send the message again when it is back.");
		if (this.#runs.has(runId)) throw new NexusError("conflict", `Run ${runId} is already live.`);
		if (this.#isBusy(session))
			throw new Refused("conflict", `Session ${session} has a run already; wait until it has settled.`);
		const run = new Run(this.#deps, request);
		this.#admit(run);
		const established = run.establish();
		// A caller may handle either promise.
		established.catch(() => {});
		const saved = run.saved.then((turn) => {
			this.#dismiss(run);
			if (turn && turn !== "lost") {
				this.settled[turn.status]++;
				this.#deps.history.settled(turn);
				this.#deps.observer?.settled(turn, request.traceId ?? traceIdOf(runId));
			}
			return turn;
		});
		return {
			established,
			result: run.result,
			saved,
			abort: () => run.abort(),
			get chunks() {
				return run.chunks;
			},
		};
	}

	#admit(run: Run): void {
		const { runId, session } = run.request;
		this.#runs.set(runId, run);
		this.#bySession.set(session, (this.#bySession.get(session) ?? new Set()).add(run));
	}

	#dismiss(run: Run): void {
		const { runId, session } = run.request;
		this.#runs.delete(runId);
		const own = this.#bySession.get(session);
		own?.delete(run);
		if (own?.size === 0) this.#bySession.delete(session);
	}

	#isBusy(session: string): boolean {
		for (const run of this.#bySession.get(session) ?? []) if (run.streaming) return true;
		return false;
	}

	async recover(settle: SettleOrphan = () => []): Promise<Recovered> {
		await this.#deps.approvals.load();
		const { turns, later } = await settleOrphanedRuns(this.#deps, this.#unsettled, settle);
		if (!this.#deps.engine.continues) await this.#deps.approvals.abandon();
		for (const { status } of turns) this.settled[status]++;
		const settleLater = async (log: string) => {
			this.#unsettled.add(log);
			const turn = await this.#deps.settleLate(log, CRASHED, settle).finally(() => this.#unsettled.delete(log));
			if (turn && turn !== "lost") this.settled[turn.status]++;
			return turn;
		};
		const waiting = later.map(({ log, session }) => ({ session, saved: settleLater(log) }));
		return { recovered: turns.length, later: waiting };
	}

	get #continuing(): ContinuationDeps {
		const { ledger, engine } = this.#deps;
		return { ledger, engine, isBusy: (session) => this.#isBusy(session) };
	}

	continuation(runId: string, answered = false): Promise<Continuation> {
		if (this.#runs.has(runId))
			return Promise.reject(new NexusError("conflict", `run ${runId} cannot be continued: it is still live`));
		return continuationOf(this.#continuing, runId, answered);
	}

	resumption(turn: Turn) {
		return resumptionOf(this.#continuing, turn);
	}

	abort(runId: string): Promise<Turn> | undefined {
		const run = this.#runs.get(runId);
		run?.abort();
		return run?.result;
	}

	live(runId: string): LiveRun | undefined {
		const run = this.#runs.get(runId);
		return run?.streaming ? run.snapshot() : undefined;
	}

	liveRuns(): LiveRun[] {
		return [...this.#runs.values()].filter((run) => run.streaming).map((run) => run.snapshot());
	}

	get unsaved(): number {
		return [...this.#runs.values()].filter((run) => run.refused).length;
	}

	async drain(deadlineMs: number): Promise<void> {
		this.#draining = true;
		// A person may take longer than any deadline.
		for (const run of this.#runs.values()) if (run.isWaiting) run.shutDown();
		await drainAll(this.#deps, "runs", this.#runs, deadlineMs, () => this.#deps.approvals.close());
	}
}

const secureRandom: Random = () => crypto.getRandomValues(new Uint32Array(1))[0]! / 2 ** 32;

function neverBegun(cause: NexusError): Execution {
	const failed = Promise.reject<never>(cause);
	failed.catch(() => {});
	return { established: failed, result: failed, saved: Promise.resolve(undefined), abort() {}, chunks: 0 };
}
