/** The stages of a run, from `prepare` to `complete`: what the Broker calls back for. */

import type { RunChanges, RunStages, RunStart, RunStats } from "../../broker/broker.ts";
import type { InboundEvent, Ledger, Turn } from "../../ledger/ledger.ts";
import { NexusError } from "../../protocol/protocol.ts";
import type { Clock } from "../../std/clock.ts";
import type { Log } from "../../std/log.ts";
import type { Hooks } from "../hooks/hooks.ts";
import type { Outbound } from "../port.ts";
import { RejectedByPlugin } from "./reception.ts";
import {
	type Destination,
	destinationsOf,
	hookRequestOf,
	type NexusRequest,
	requestOfRun,
	traceOf,
} from "./request.ts";
import { timed } from "./timed.ts";

export type RunsOutbound = Pick<Outbound, "open" | "launch" | "settled" | "deliveries">;

/** That a trace names. */
const DELIVERIES_MAX = 100;

export interface RunsDeps {
	ledger: Ledger;
	outbound: RunsOutbound;
	hooks(): Hooks;
	clock: Clock;
	log: Log;
}

export class Runs implements RunStages {
	readonly #deps: RunsDeps;
	/** Until the run has started, or could not. */
	readonly #drafts = new WeakMap<RunStart, NexusRequest>();
	/** From the start of a run until it is completed. */
	readonly #live = new Map<string, NexusRequest>();
	readonly #completing = new Set<Promise<void>>();
	/** The daemon stops: deliveries that are still open are the next one's, and nothing is written any more. */
	#over = false;

	constructor(deps: RunsDeps) {
		this.#deps = deps;
	}

	prepare(start: RunStart): RunChanges | Promise<RunChanges> {
		const { clock, hooks } = this.#deps;
		const now = clock.now();
		const request = requestOfRun(start.runId, start.events, now);
		if (!request) return {};
		// A plugin may still say otherwise.
		if (start.disableStreaming) request.hooks.context = { disable_streaming: true, ...request.hooks.context };
		this.#drafts.set(start, request);
		if (hooks().has("onPrepare")) return this.#askPlugins(request, start.events);
		request.timings.push({ stage: "prepare", at: now, ms: 0 });
		return changesOf(request);
	}

	/** The answer is owed from the moment that the run is: no crash finds one without the other (I7). */
	starting(start: RunStart): void {
		const request = this.#drafts.get(start);
		if (!request) return;
		request.deliveries = [];
		for (const destination of destinationsOf(start.events)) this.#open(start.runId, request, destination);
	}

	started(start: RunStart): void {
		const { runId } = start;
		const request = this.#drafts.get(start);
		if (!request) return;
		request.disposition = { state: "started", runId };
		this.#live.set(runId, request);
		for (const id of request.deliveries) this.#deps.outbound.launch(id);
	}

	settling(turn: Turn): Turn {
		const live = this.#live.get(turn.runId) ?? this.#left(turn);
		if (!live) return turn;
		const { timings } = live;
		// A turn that the store refused is settled again.
		if (timings.some(({ stage }) => stage === "execute")) return { ...turn, trace: structuredClone(traceOf(live)) };
		timings.push({ stage: "execute", at: turn.startedAt, ms: turn.endedAt - turn.startedAt });
		if (this.#isWhole(live))
			timings.push({ stage: "deliver", at: turn.endedAt, ms: 0 }, { stage: "complete", at: turn.endedAt, ms: 0 });
		return { ...turn, trace: structuredClone(traceOf(live)) };
	}

	settled(turn: Turn, { chunks }: RunStats): void {
		const { runId } = turn;
		const live = this.#live.get(runId);
		if (!live) return;
		if (this.#isWhole(live)) {
			this.#live.delete(runId);
			return;
		}
		const work = this.#complete(live, turn, chunks)
			.catch((cause: unknown) => this.#deps.log.error({ runId, err: cause }, "a run could not be completed"))
			.finally(() => {
				this.#live.delete(runId);
				this.#completing.delete(work);
			});
		this.#completing.add(work);
	}

	/** Lets what is completing end until the deadline. */
	async finish(deadlineMs: number): Promise<void> {
		await new Promise<void>((resolve) => {
			const cancel = this.#deps.clock.after(deadlineMs, resolve);
			void Promise.allSettled([...this.#completing]).then(() => {
				cancel();
				resolve();
			});
		});
		this.#over = true;
	}

	/** A run that an earlier process began, as far as it is on record: what `prepare` took and said died with it. */
	#left({ runId, messages, startedAt }: Turn): NexusRequest | undefined {
		const { ledger, outbound } = this.#deps;
		const events = messages.flatMap(({ eventId }) => (eventId === undefined ? [] : (ledger.event(eventId) ?? [])));
		if (events.length === 0) return undefined;
		const request = requestOfRun(runId, events, startedAt);
		if (request) request.deliveries = outbound.deliveries({ runId, limit: DELIVERIES_MAX }).map(({ id }) => id);
		return request;
	}

	/** Nothing is to come after the turn: its trace is written once, with it. */
	#isWhole({ deliveries }: NexusRequest): boolean {
		return deliveries.length === 0 && !this.#deps.hooks().has("onComplete");
	}

	async #askPlugins(request: NexusRequest, events: readonly InboundEvent[]): Promise<RunChanges> {
		const { hooks, clock } = this.#deps;
		const asked = () => hooks().call("onPrepare", hookRequestOf(request));
		const { context, attached, calls, text, reject } = await timed(request.timings, "prepare", clock, asked);
		const before = request.hooks;
		request.hooks = { context, attached: [...before.attached, ...attached], calls: [...before.calls, ...calls] };
		if (reject !== undefined) throw new RejectedByPlugin(reject);
		const newest = { ...events.at(-1)!, text };
		return { ...changesOf(request), events: [...events.slice(0, -1), newest] };
	}

	/** What the store refuses refuses the run; an answer that has no place to go is no reason not to give it. */
	#open(runId: string, request: NexusRequest, { channel, account, target }: Destination): void {
		const { outbound, log } = this.#deps;
		const options = { disableStreaming: request.hooks.context.disable_streaming === true };
		try {
			const { id } = outbound.open({ account: { channel, id: account }, target, runId, options });
			// Two addresses may name one chat, as the platform's adapter knows.
			if (!request.deliveries.includes(id)) request.deliveries.push(id);
		} catch (cause) {
			if (!(cause instanceof NexusError)) throw cause;
			log.error({ runId, channel, account, err: cause }, "the answer cannot be delivered");
		}
	}

	async #complete(request: NexusRequest, turn: Turn, chunks: number): Promise<void> {
		const { outbound, hooks, clock, ledger } = this.#deps;
		const { timings, deliveries } = request;
		const ended = await timed(timings, "deliver", clock, () =>
			Promise.allSettled(deliveries.map((id) => outbound.settled(id))),
		);
		if (this.#over) return;
		const delivered = ended.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
		const asked = () => hooks().call("onComplete", hookRequestOf(request, { turn, chunks, deliveries: delivered }));
		const { calls } = await timed(timings, "complete", clock, asked);
		if (this.#over) return;
		request.hooks.calls.push(...calls);
		ledger.retrace(turn.runId, traceOf(request));
	}
}

/** The newest message's address is the one that the run itself is told. */
function changesOf({ routing, channel, account, sender, hooks }: NexusRequest): RunChanges {
	const { id, name } = sender;
	return {
		sender: { id, ...(name !== undefined && { name }), channel, account },
		agent: routing.agent,
		...(routing.target && { target: { ...routing.target, channel, account } }),
		...(hooks.attached.length > 0 && { context: hooks.attached }),
		disableStreaming: hooks.context.disable_streaming === true,
	};
}
