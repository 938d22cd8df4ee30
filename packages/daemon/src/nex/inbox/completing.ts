/** The last stages of a message's way, which outlast its run: `deliver` and `complete`. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Execution } from "../../broker/broker.ts";
import type { Bus } from "../../bus/bus.ts";
import type { Turn } from "../../ledger/ledger.ts";
import type { Hooks } from "../plugins/hooks.ts";
import type { Outbound } from "../port.ts";
import { type PreparedRun, stagesOf, traceWrite } from "./answer.ts";
import { hookRequestOf } from "./message.ts";
import { timed } from "./timed.ts";

export interface CompletingDeps {
	bus: Bus;
	outbound: Pick<Outbound, "settled">;
	hooks(): Hooks;
	clock: Clock;
	log: Log;
}

export class Completing {
	readonly #deps: CompletingDeps;
	readonly #works = new Set<Promise<void>>();
	#finished = false;

	constructor(deps: CompletingDeps) {
		this.#deps = deps;
	}

	/** Nothing is to come after the turn: its trace is written once, with it. */
	isWhole({ deliveries }: PreparedRun): boolean {
		return deliveries.length === 0 && !this.#deps.hooks().has("onComplete");
	}

	whenSaved(answer: PreparedRun, execution: Execution): void {
		const { log } = this.#deps;
		const { runId } = answer;
		const complete = async (): Promise<void> => {
			const turn = await execution.saved;
			if (turn && turn !== "lost" && !this.isWhole(answer)) await this.#complete(answer, turn, execution.chunks);
		};
		const work = complete()
			.catch((cause: unknown) => log.error({ runId, err: cause }, "a run could not be completed"))
			.finally(() => this.#works.delete(work));
		this.#works.add(work);
	}

	/** Lets what is completing end until the deadline. */
	async finish(deadlineMs: number): Promise<void> {
		await new Promise<void>((resolve) => {
			const cancel = this.#deps.clock.after(deadlineMs, resolve);
			void Promise.allSettled([...this.#works]).then(() => {
				cancel();
				resolve();
			});
		});
		this.#finished = true;
	}

	/** The stages `deliver`, as far as it lasts longer than the run, and `complete`. */
	async #complete(answer: PreparedRun, turn: Turn, chunks: number): Promise<void> {
		const { outbound, hooks, clock, bus } = this.#deps;
		const { message, deliveries } = answer;
		const later = stagesOf(turn, false);
		const ended = await timed(later, "deliver", clock, () =>
			Promise.allSettled(deliveries.map((id) => outbound.settled(id))),
		);
		if (this.#isOver) return;
		const outcome = {
			turn,
			chunks,
			deliveries: ended.flatMap((one) => (one.status === "fulfilled" ? [one.value] : [])),
		};
		const asked = () => hooks().call("onComplete", hookRequestOf(message, { ...answer, outcome }));
		const { calls } = await timed(later, "complete", clock, asked);
		if (this.#isOver) return;
		message.facts.hooks.calls.push(...calls);
		await bus.write([traceWrite(answer, later)]);
	}

	/** Deliveries that are still open are another daemon's, and nothing is written any more. */
	get #isOver(): boolean {
		return this.#finished || this.#deps.bus.fenced.aborted;
	}
}
