/** The channel lab: fake platforms in a separate process, the real adapters in front of them. The first use starts it; without a viewer it stops. */

import { NexusError, newId } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { own } from "@nexus-stream/protocol/own";
import type { Lab, LabFault, LabRun, LabState } from "../../edge/edge.ts";
import type { Nex } from "../../nex/nex.ts";
import { type Bench, type BenchOptions, type HostState, LAB_ACCOUNT, startBench } from "./lab-bench.ts";
import { LabQuestions } from "./lab-question.ts";

const UNUSED_MS = 10 * 60_000;
const DELIVERIES_MAX = 100;

export interface LabOptions extends BenchOptions {
	receive: Nex["receive"];
	clock: Clock;
}

export function createLab(options: LabOptions): Lab & { close(): Promise<void> } {
	const { clock } = options;
	const life = createLife(options);
	let current: { bench: Bench; run: LabRun } | undefined;
	let questions: LabQuestions | undefined;
	/** A restarted bench knows none of the earlier questions. */
	const questionsOf = (bench: Bench): LabQuestions => {
		if (questions?.bench !== bench) questions = new LabQuestions(bench, clock, options.log);
		return questions;
	};
	const currentOf = (bench: Bench) => (current?.bench === bench ? current.run : undefined);
	const usedFor = async (only?: readonly string[]) => wantedOf(await life.used(), only);
	const deliveriesOf = async (bench: Bench) => {
		const runId = currentOf(bench)?.runId;
		return runId === undefined ? [] : bench.outbound.deliveries({ runId, limit: DELIVERIES_MAX });
	};
	return {
		close: life.close,
		async send(text, only) {
			const { bench, wanted } = await usedFor(only);
			// Checked before anything is sent: a queued message would run later, with no viewer to show it to.
			if ((await deliveriesOf(bench)).some(({ state }) => state === "active"))
				throw new NexusError("conflict", "the lab's last answer is still being delivered; wait, or stop its run");
			await bench.ready(wanted);
			questionsOf(bench).drop();
			const run = await begin(bench, options, text, wanted);
			current = { bench, run };
			return run;
		},
		async state() {
			const bench = await life.used();
			const own = questionsOf(bench);
			const shown = currentOf(bench) !== undefined || own.asked;
			const questionOpen = own.asked && (await own.open());
			return stateOf(bench, { run: currentOf(bench), shown, questionOpen }, await deliveriesOf(bench), clock.now());
		},
		async ask(text, only) {
			const { bench, wanted } = await usedFor(only);
			await bench.ready(wanted);
			const own = questionsOf(bench);
			// Events of the start alone are not worth showing.
			if (!currentOf(bench) && !own.asked) await bench.ask("POST", "/reset");
			return own.ask(text, wanted);
		},
		async press(channel, message, label) {
			const { bench } = await usedFor([channel]);
			await questionsOf(bench).press(channel, message, label);
		},
		async fault(fault: LabFault) {
			const { bench } = await usedFor([fault.channel]);
			// Else it would hit the call that only starts the adapter.
			await bench.ready([fault.channel]);
			await bench.ask("POST", "/fault", fault);
		},
		accounts: () => life.running()?.outbound.accounts() ?? [],
		async deliveries(query) {
			const bench = life.running();
			return bench ? bench.outbound.deliveries({ ...query, except: bench.warming() }) : [];
		},
		async health(channel) {
			const { outbound } = await life.used();
			return outbound.health(channel, LAB_ACCOUNT);
		},
	};
}

/** The bench with its platforms, or with those that are asked for. */
function wantedOf(bench: Bench, only: readonly string[] = Object.keys(bench.channels)) {
	for (const channel of only)
		if (!own(bench.channels, channel)) throw new NexusError("not_found", `the lab has no ${channel}`);
	return { bench, wanted: only };
}

function createLife(options: LabOptions) {
	const { clock, log } = options;
	let bench: Promise<Bench> | undefined;
	let running: Bench | undefined;
	let cancelIdle = () => {};

	async function close(): Promise<void> {
		cancelIdle();
		const open = bench;
		bench = undefined;
		running = undefined;
		if (open)
			await open.then(
				(started) => started.stop(),
				() => {},
			);
	}

	function closeUnasked(): void {
		close().catch((cause: unknown) => log.error({ err: cause }, "the channel lab did not stop"));
	}

	/** The platforms ended by themselves: the next use starts them again. */
	function lost(code: number | null): void {
		log.error({ code }, "the channel lab's platforms ended by themselves");
		closeUnasked();
	}

	return {
		close,
		running: () => running,
		/** The bench, started if need be; from now on it is kept for a while. */
		async used(): Promise<Bench> {
			cancelIdle();
			cancelIdle = clock.after(UNUSED_MS, closeUnasked);
			bench ??= startBench(options, lost).catch((cause: unknown) => {
				bench = undefined;
				throw cause;
			});
			running = await bench;
			return running;
		},
	};
}

async function begin(
	bench: Bench,
	{ clock, receive }: LabOptions,
	text: string,
	channels: readonly string[],
): Promise<LabRun> {
	await bench.ask("POST", "/reset");
	const labId = newId("lab", clock.now());
	const { runId, disposition } = await receive({ session: labId, text });
	if (runId === undefined) throw new NexusError("conflict", `the lab's message was not started (${disposition.state})`);
	const deliveries = await Promise.all(
		channels.map(async (channel) => {
			const { target } = bench.channels[channel]!;
			const { id } = await bench.outbound.deliver({ account: { channel, id: LAB_ACCOUNT }, target, runId });
			return { channel, deliveryId: id };
		}),
	);
	return { labId, runId, session: labId, deliveries };
}

async function stateOf(
	bench: Bench,
	{ run, shown: isShown, questionOpen }: { run: LabRun | undefined; shown: boolean; questionOpen: boolean },
	deliveries: Awaited<ReturnType<Lab["deliveries"]>>,
	now: number,
): Promise<LabState> {
	const { channels } = await bench.ask<HostState>("GET", "/state");
	const paused = new Map(bench.outbound.accounts().map(({ channel, pausedUntil }) => [channel, pausedUntil]));
	return {
		now,
		runId: run?.runId,
		questionOpen,
		channels: Object.entries(channels).map(([channel, { draft, ...shown }]) => {
			const delivery = deliveries.find((row) => row.channel === channel);
			const pausedUntil = paused.get(channel);
			return {
				channel,
				ready: bench.isReady(channel),
				...shown,
				draft,
				// Events of the start alone are not worth showing.
				...(!isShown && { messages: [], calls: [], calls_total: 0, typing: false }),
				// A platform shows its sign for a while after the last call: the answer is over before.
				...(delivery && delivery.state !== "active" && { typing: false }),
				delivery,
				pausedUntil: pausedUntil !== undefined && pausedUntil > now ? pausedUntil : undefined,
			};
		}),
	};
}
