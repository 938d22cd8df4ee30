/** The Broker: takes messages in, runs one turn at a time per session, and settles what it runs. The door of this folder. */

import type { Bus, Participant } from "../bus/bus.ts";
import type { Engine } from "../engine/engine.ts";
import type { InboundEvent, Ledger, Turn } from "../ledger/ledger.ts";
import { NexusError, newEventId, newRunId, toNexusError } from "../protocol/protocol.ts";
import { type Clock, neverBack, systemClock } from "../std/clock.ts";
import { type Log, silentLog } from "../std/log.ts";
import { CRASHED, type Ending } from "./ending.ts";
import { History } from "./history.ts";
import { acceptedOf, Lanes, type Launched } from "./lanes.ts";
import { BROKER_LIMITS, type BrokerLimits } from "./limits.ts";
import { listen } from "./listen.ts";
import type {
	Accepted,
	Broker,
	ExecuteRequest,
	Execution,
	LiveRun,
	RunChanges,
	RunStages,
	RunStart,
	Submission,
} from "./port.ts";
import { settleLeftRuns, settleWhenPossible } from "./recovery.ts";
import { Run, type RunDeps } from "./run.ts";
import type { RunMeta } from "./run-log.ts";
import { checkSession, checkSubmission } from "./submission.ts";

export { currentRun } from "./current-run.ts";
export { acceptedOf } from "./lanes.ts";
export { BROKER_LIMITS, type BrokerLimits } from "./limits.ts";
export * from "./port.ts";
export { chainOf } from "./run-log.ts";

export interface BrokerOptions {
	bus: Bus;
	ledger: Ledger;
	engine: Engine;
	limits?: Partial<BrokerLimits>;
	clock?: Clock;
	log?: Log;
}

export const createBroker = (options: BrokerOptions): Broker => new TurnBroker(options);

class TurnBroker implements Broker {
	readonly #deps: RunDeps;
	readonly #lanes: Lanes;
	readonly #runs = new Map<string, Run>();
	/** Runs are listed by their ids: one that starts later must not stand before an earlier one. */
	readonly #idTime: () => number;
	/** Runs that are not started because their stages still prepare them. */
	#preparing = 0;
	#stages: RunStages = {};
	/** Submissions with a key that are not recorded yet. */
	readonly #inflight = new Map<string, Promise<Accepted>>();
	#draining = false;

	constructor({ bus, ledger, engine, clock = systemClock, log = silentLog, ...options }: BrokerOptions) {
		const limits = { ...BROKER_LIMITS, ...options.limits };
		this.#idTime = neverBack(clock);
		const settling = (turn: Turn) => this.#guarded(turn.runId, () => this.#stages.settling?.(turn)) ?? turn;
		const settleLate = (runId: string, ending: Ending) =>
			settleWhenPossible(this.#deps, runId, ending, () => this.#draining);
		this.#deps = {
			...{ bus, ledger, engine, clock, log, limits, settling, settleLate },
			history: new History(ledger, limits),
		};
		const settings = { mode: "followup", collectMs: 1500, messagesMax: limits.queueMessagesMax } as const;
		this.#lanes = new Lanes({
			...{ ledger, clock, log, settings: { ...settings, atCap: "drop_newest" } },
			launch: (...start) => this.#launch(...start),
		});
	}

	attach(stages: RunStages): void {
		this.#stages = stages;
	}

	execute(request: ExecuteRequest): Execution {
		const { bus, log } = this.#deps;
		const { run, established } = this.#tryStart(request);
		const result = run ? run.result : established.then(neverStarted);
		// Both tell of a failed establishment; a caller may look at either of them.
		established.catch(() => {});
		result.catch(() => {});
		return {
			stream: {
				onEvent(listener) {
					void established.then(
						() => listen(bus, request.runId, listener, log),
						() => {},
					);
				},
				abort: () => run?.abort(),
				isStreaming: () => run?.streaming ?? false,
				isCompacting: () => run?.compacting ?? false,
			},
			established,
			result,
		};
	}

	#tryStart(request: ExecuteRequest): { run?: Run; established: Promise<void> } {
		try {
			checkSession(request.session);
			this.#refuseWhenDraining();
			this.#refuseWhenFull();
			if (this.#lanes.has(request.session)) {
				throw new NexusError("conflict", `Session ${request.session} has a run already; wait until it has settled.`);
			}
			const run = this.#run(request);
			this.#lanes.occupy(request.session, () => run.abort());
			const established = this.#establish(run).catch((cause: unknown) => {
				this.#lanes.free(request.session);
				throw cause;
			});
			return { run, established };
		} catch (cause) {
			return { established: Promise.reject(toNexusError(cause)) };
		}
	}

	check(submission: Submission): void {
		checkSubmission(submission, this.#deps.limits);
	}

	async submit(submission: Submission): Promise<Accepted> {
		const { limits, ledger } = this.#deps;
		checkSubmission(submission, limits);
		const { session, idempotencyKey } = submission;
		if (idempotencyKey === undefined) return this.#admit(submission);
		const key = `${session} ${idempotencyKey}`;
		const running = this.#inflight.get(key);
		if (running) return running;
		const known = ledger.eventByKey(session, idempotencyKey);
		if (known) return acceptedOf(known);
		const accepted = this.#admit(submission).finally(() => this.#inflight.delete(key));
		this.#inflight.set(key, accepted);
		return accepted;
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

	async recover(): Promise<{ recovered: number }> {
		const { ledger, clock, limits } = this.#deps;
		const { recovered, later } = await settleLeftRuns(this.#deps);
		for (const { log, meta } of later) this.#settleLater(log, (meta as RunMeta).session);
		const oldest = clock.now() - limits.queuedStaleMs;
		const fresh: InboundEvent[] = [];
		for (const event of ledger.queued()) {
			if (event.receivedAt < oldest) ledger.dispose(event.eventId, { state: "rejected", because: "stale" });
			else fresh.push(event);
		}
		this.#lanes.restore(fresh);
		return { recovered };
	}

	/** Its session waits for it meanwhile, as for a run. */
	#settleLater(runId: string, session: string): void {
		this.#lanes.occupy(session, () => {});
		void this.#deps.settleLate(runId, CRASHED).then((turn) => turn && this.#lanes.free(session, turn));
	}

	async drain(deadlineMs: number): Promise<void> {
		this.#draining = true;
		this.#lanes.close();
		const { clock, limits, log } = this.#deps;
		const settled = () => Promise.allSettled([...this.#runs.values()].map((run) => run.result));
		if (await within(clock, deadlineMs, settled())) return;
		log.info({ runs: this.#runs.size }, "stopping the runs that are left");
		for (const run of this.#runs.values()) run.shutDown();
		if (await within(clock, limits.abortGraceMs + SEAL_MS_MAX, settled())) return;
		log.error({ runs: [...this.#runs.keys()] }, "runs did not settle; recovery does it at the next start");
	}

	async #admit(submission: Submission): Promise<Accepted> {
		this.#refuseWhenDraining();
		if (!this.#lanes.has(submission.session)) this.#refuseWhenFull();
		const receivedAt = this.#deps.clock.now();
		const {
			session,
			text,
			attachments = [],
			eventId = newEventId(receivedAt),
			disableStreaming,
			...known
		} = submission;
		const facts = disableStreaming === true ? { facts: { ...known.facts, disableStreaming } } : {};
		const event: InboundEvent = {
			...{ ...known, ...facts, eventId, session, text, attachments: [...attachments], receivedAt },
			disposition: { state: "queued" },
		};
		return this.#lanes.arrive(event);
	}

	/** Messages become a run, once its stages have prepared it. Without a preparation it starts in the tick of the call. */
	#launch(
		session: string,
		events: readonly InboundEvent[],
		record: (runId: string) => void,
		patienceMs?: number,
	): Launched {
		const runId = newRunId(this.#idTime());
		const disableStreaming = this.#guarded(runId, () => this.#isInOnePiece(session, events)) ?? false;
		const start: RunStart = { session, runId, events, disableStreaming };
		let run: Run | undefined;
		let stopped = false;
		const begin = async (changes: RunChanges): Promise<void> => {
			this.#refuseWhenDraining();
			// Of several messages the newest one that is part of a trace names it.
			const traceId = events.findLast((event) => event.traceId !== undefined)?.traceId;
			run = this.#run({ ...start, ...(traceId !== undefined && { traceId }), ...changes });
			if (stopped) run.abort();
			const participant = () => {
				record(start.runId);
				this.#stages.starting?.(start);
			};
			const started = () => this.#guarded(start.runId, () => this.#stages.started?.(start));
			await this.#establish(run, participant, started, patienceMs);
		};
		const prepared = this.#stages.prepare?.(start) ?? {};
		const established = prepared instanceof Promise ? this.#prepared(prepared).then(begin) : begin(prepared);
		return {
			established,
			abort() {
				stopped = true;
				run?.abort();
			},
		};
	}

	#isInOnePiece(session: string, events: readonly InboundEvent[]): boolean {
		const { disableStreaming: wish } = this.#deps.engine;
		if (events.some(({ facts }) => facts?.disableStreaming === true)) return true;
		return typeof wish === "function" ? wish({ session, text: events.at(-1)?.text ?? "" }) === true : wish === true;
	}

	/** A stage that fails after the start must not keep the run from going on or ending. */
	#guarded<T>(runId: string, stage: () => T): T | undefined {
		try {
			return stage();
		} catch (cause) {
			this.#deps.log.error({ runId, err: cause }, "a stage of the run failed");
			return undefined;
		}
	}

	async #prepared(changes: Promise<RunChanges>): Promise<RunChanges> {
		this.#preparing++;
		try {
			return await changes;
		} finally {
			this.#preparing--;
		}
	}

	#run(request: ExecuteRequest): Run {
		const { session, runId } = request;
		if (this.#runs.has(runId)) throw new NexusError("conflict", `Run ${runId} is live already.`);
		const run = new Run(this.#deps, request, (turn, stats) => {
			this.#runs.delete(runId);
			this.#lanes.free(session, turn);
			this.#guarded(runId, () => this.#stages.settled?.(turn, stats));
		});
		this.#runs.set(runId, run);
		return run;
	}

	async #establish(
		run: Run,
		participant?: Participant,
		onEstablished?: () => void,
		patienceMs?: number,
	): Promise<void> {
		try {
			await run.establish(participant, onEstablished, patienceMs);
		} catch (cause) {
			this.#runs.delete(run.request.runId);
			throw toNexusError(cause);
		}
	}

	#refuseWhenFull(): void {
		const { runsMax } = this.#deps.limits;
		if (this.#runs.size + this.#preparing < runsMax) return;
		throw new NexusError("busy", `${runsMax} runs are live already; try again when one has ended.`);
	}

	#refuseWhenDraining(): void {
		if (this.#draining) throw new NexusError("unavailable", "The daemon is stopping; send it again when it is back.");
	}
}

/** How long the last commit may take once every run has ended. */
const SEAL_MS_MAX = 5000;

/** False when the time ran out first. */
function within(clock: Clock, ms: number, work: Promise<PromiseSettledResult<unknown>[]>): Promise<boolean> {
	return new Promise((resolve) => {
		const cancel = clock.after(ms, () => resolve(false));
		void work.finally(() => {
			cancel();
			resolve(true);
		});
	});
}

function neverStarted(): never {
	throw new NexusError("internal", "a run that was not started has no result");
}
