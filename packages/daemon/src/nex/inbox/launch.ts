/** Turns queued messages into a run: prepare ▸ execute ▸ deliver ▸ complete. */

import { NexusError, newRunId } from "@nexus-stream/protocol";
import { neverBack, within } from "@nexus-stream/protocol/clock";
import type { Continuation, Execution, RunInbox } from "../../broker/broker.ts";
import type { Turn } from "../../ledger/turns/port.ts";
import type { Write } from "../../std/write.ts";
import { HistoryRights } from "../access/history.ts";
import type { PlannedDelivery } from "../port.ts";
import { type PreparedRun, plannedDeliveriesOf, requestOf, stagesOf, timed, traceWrite } from "./answer.ts";
import type { InboxDeps } from "./deps.ts";
import { hookRequestOf, type InboxMessage, together } from "./message.ts";

/** Messages that become a run. */
export interface Start {
	session: string;
	/** Oldest first. */
	messages: readonly InboxMessage[];
	/** Writes of the messages' dispositions that commit with the run's begin, and with its turn; none when they are on record already. */
	begin?(runId: string): Write[];
	settle?(turn: Turn): Write[];
	/** Messages that arrive during the run and may join it. */
	inbox: RunInbox;
	/** The interrupted run that this one continues: its messages are those of that run. */
	continues?: Continuation;
	/** How long a sender who waits for the run's begin may wait for the store. */
	patienceMs?: number;
}

export interface Launched {
	/** Resolves once the run's begin is durable; rejects when it could not start. */
	established: Promise<{ runId: string; saved: Execution["saved"] }>;
	/** Stops the run, also before it has begun. */
	abort(): void;
}

/** Raised by a plugin's `reject` when the run was about to start. */
export class RejectedByPlugin extends NexusError {
	constructor(because: string) {
		super("forbidden", because);
	}
}

export class Launcher {
	readonly #deps: InboxDeps;
	readonly #history: HistoryRights;
	/** Runs are listed by their ids: a later run must not sort before an earlier one. */
	readonly #idTime: () => number;
	/** Runs whose deliveries or `onComplete` plugins have not ended. */
	readonly #completing = new Set<Promise<void>>();
	/** No run starts any more: the daemon stops. */
	isClosed = false;
	#isFinished = false;

	constructor(deps: InboxDeps) {
		this.#deps = deps;
		this.#history = new HistoryRights(deps);
		this.#idTime = neverBack(deps.clock);
	}

	launch(start: Start): Launched {
		let run: Execution | undefined;
		let isStopped = false;
		const begun = (execution: Execution) => {
			run = execution;
			if (isStopped) run.abort();
		};
		const abort = () => {
			isStopped = true;
			run?.abort();
		};
		return { established: this.#establish(start, begun), abort };
	}

	refuseWhenClosed(): void {
		if (this.isClosed) throw new NexusError("unavailable", "The daemon is stopping; send it again when it is back.");
	}

	/** Lets completing runs end until the deadline. */
	async finish(deadlineMs: number): Promise<void> {
		await within(this.#deps.clock, deadlineMs, Promise.allSettled([...this.#completing]));
		this.#isFinished = true;
	}

	async #establish(start: Start, begun: (execution: Execution) => void): Launched["established"] {
		const { outbound, log } = this.#deps;
		const run = await this.#prepare(start);
		this.refuseWhenClosed();
		const planned = plannedDeliveriesOf(run, outbound, log);
		const execution = this.#execute(start, run, planned);
		begun(execution);
		await execution.established;
		this.#deliver(run, planned);
		this.#completeWhenSaved(run, execution);
		return { runId: run.runId, saved: execution.saved };
	}

	/** The stage `prepare`. A plugin may still reject the messages. */
	async #prepare({ session, messages }: Start): Promise<PreparedRun> {
		const { clock, hooks } = this.#deps;
		const runId = newRunId(this.#idTime());
		const now = clock.now();
		const message = together(messages, now);
		const { facts } = message;
		// A plugin may override this.
		if (this.#isInOnePiece(session, message.text))
			facts.hooks.context = { disable_streaming: true, ...facts.hooks.context };
		const run: PreparedRun = { runId, messages, message, deliveries: [] };
		if (!hooks().has("onPrepare")) {
			facts.timings.push({ stage: "prepare", at: now, ms: 0 });
			return run;
		}
		const call = () => hooks().call("onPrepare", hookRequestOf(message, run));
		const { context, attached, calls, text, reject } = await timed(facts.timings, "prepare", clock, call);
		const before = facts.hooks;
		facts.hooks = { context, attached: [...before.attached, ...attached], calls: [...before.calls, ...calls] };
		if (reject !== undefined) throw new RejectedByPlugin(reject);
		message.text = text;
		return run;
	}

	/** A failing engine callback means that the answer is streamed; the message is not refused. */
	#isInOnePiece(session: string, text: string): boolean {
		const { engine, log } = this.#deps;
		try {
			const { disableStreaming: setting } = engine;
			return typeof setting === "function" ? setting({ session, text }) === true : setting === true;
		} catch (cause) {
			log.error({ session, err: cause }, "the engine's disableStreaming failed; the answer is streamed");
			return false;
		}
	}

	/** The stage `execute`: dispositions and deliveries commit with the run's begin, the trace with its turn. */
	#execute(start: Start, run: PreparedRun, planned: readonly PlannedDelivery[]): Execution {
		const { begin, settle, patienceMs, continues, inbox } = start;
		return this.#deps.broker.execute({
			...requestOf(run, this.#deps.config().approvals?.policy, this.#history),
			inbox,
			continues,
			begin: [...(begin?.(run.runId) ?? []), ...planned.map(({ write }) => write)],
			settle: (turn) => [traceWrite(run, stagesOf(turn, this.#isCompleteWithTurn(run))), ...(settle?.(turn) ?? [])],
			patienceMs,
		});
	}

	/** The run is live: a failure here neither frees its session nor loses a delivery, which is on record. */
	#deliver({ runId }: PreparedRun, planned: readonly PlannedDelivery[]): void {
		const { outbound, log } = this.#deps;
		for (const { delivery } of planned) {
			try {
				outbound.launch(delivery);
			} catch (cause) {
				log.error(
					{ runId, delivery: delivery.id, err: cause },
					"a delivery could not begin; the next start of the daemon resumes it",
				);
			}
		}
	}

	/** No stage follows the turn, so its trace is written once, with it. */
	#isCompleteWithTurn({ deliveries }: PreparedRun): boolean {
		return deliveries.length === 0 && !this.#deps.hooks().has("onComplete");
	}

	#completeWhenSaved(run: PreparedRun, execution: Execution): void {
		const { log } = this.#deps;
		const { runId } = run;
		const complete = async (): Promise<void> => {
			const turn = await execution.saved;
			if (turn && turn !== "lost" && !this.#isCompleteWithTurn(run)) await this.#complete(run, turn, execution.chunks);
		};
		const work = complete()
			.catch((cause: unknown) => log.error({ runId, err: cause }, "a run could not be completed"))
			.finally(() => this.#completing.delete(work));
		this.#completing.add(work);
	}

	/** The stages `deliver`, as far as it outlasts the run, and `complete`. */
	async #complete(run: PreparedRun, turn: Turn, chunks: number): Promise<void> {
		const { outbound, hooks, clock, bus } = this.#deps;
		const { message, deliveries } = run;
		const stages = stagesOf(turn, false);
		const settled = await timed(stages, "deliver", clock, () =>
			Promise.allSettled(deliveries.map((id) => outbound.settled(id))),
		);
		if (this.#isOver) return;
		const ended = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
		const outcome = { turn, chunks, deliveries: ended };
		const call = () => hooks().call("onComplete", hookRequestOf(message, { ...run, outcome }));
		const { calls } = await timed(stages, "complete", clock, call);
		if (this.#isOver) return;
		message.facts.hooks.calls.push(...calls);
		await bus.write([traceWrite(run, stages)]);
	}

	/** This daemon writes nothing any more; deliveries that are still open belong to another one. */
	get #isOver(): boolean {
		return this.#isFinished || this.#deps.bus.fenced.aborted;
	}
}
