/** Yields the messages of an answer for a channel without streaming as they become ready. Owns the timers of the block pipeline. */

import { type MarkdownState, stateAt } from "@nexus-stream/adapter/host";
import { sleep } from "@nexus-stream/protocol/retry";
import type { DeliveryContext } from "../delivery-context.ts";
import { readSource, type SourceEvent } from "../source.ts";
import type { Typing } from "../stream/typing.ts";
import { typingInputOf } from "../stream/typing-rules.ts";
import { createBlockMachine } from "./block-machine.ts";
import type { BlockMachine, DeliveryBlock } from "./block-step.ts";

/** Starts at the delivery's cursor. Reads on only when the consumer has handled the last block. */
export async function* readBlocks(
	context: DeliveryContext,
	typing: Typing,
): AsyncGenerator<DeliveryBlock, void, undefined> {
	const { live, bus, signal, log, clock } = context;
	const machine = createBlockMachine(context, await markdownStateAt(context));
	const over = new AbortController();
	const reading = AbortSignal.any([signal, over.signal]);
	const source = readSource(bus, live.row.runId, {
		position: live.reach,
		signal: reading,
		log,
		onDamage: (reason) => {
			context.damage = reason;
		},
	});
	let next = source.next();
	let ended = false;
	try {
		while (!ended && !signal.aborted) {
			const arrived = await earlier(context, next, machine.wakeAt);
			if (arrived === undefined) machine.tick(clock.now());
			else if (arrived.done) ended = true;
			else {
				take(machine, typing, arrived.value, clock.now());
				next = source.next();
			}
			yield* withDelays(context, machine);
		}
	} finally {
		over.abort();
		next.catch(() => {}); // No longer awaited.
		await source.return();
	}
}

/** The next events of the source; undefined when `wakeAt` came first. */
async function earlier<T>(
	{ clock, signal }: DeliveryContext,
	next: Promise<T>,
	wakeAt: number | undefined,
): Promise<T | undefined> {
	if (wakeAt === undefined) return next;
	const enough = new AbortController();
	const limit = sleep(clock, Math.max(0, wakeAt - clock.now()), AbortSignal.any([signal, enough.signal]));
	try {
		return await Promise.race([next, limit.then(() => undefined)]);
	} finally {
		enough.abort();
	}
}

function take(machine: BlockMachine, typing: Typing, events: readonly SourceEvent[], now: number): void {
	for (const each of events) {
		const input = typingInputOf(each.event, false);
		if (input) typing.take(input);
		machine.take(each, now);
	}
}

/** Delays every block but the first, as a person who types would. */
async function* withDelays(
	context: DeliveryContext,
	machine: BlockMachine,
): AsyncGenerator<DeliveryBlock, void, undefined> {
	const { live, clock, random, signal } = context;
	for (let block = machine.ready(); block; block = machine.ready()) {
		const { humanDelayMs } = machine;
		if (humanDelayMs && live.row.messages.length > 0) {
			await sleep(clock, humanDelayMs.min + random() * (humanDelayMs.max - humanDelayMs.min), signal);
		}
		if (signal.aborted) return;
		yield block;
	}
}

/** The markdown state at the cursor, so that a code fence that was open before a crash is opened again. */
async function markdownStateAt({ live, bus, signal, log }: DeliveryContext): Promise<MarkdownState> {
	const { reach: cursor } = live;
	const { runId } = live.row;
	let begin = 0;
	let text = "";
	const collect = (events: readonly SourceEvent[]) => {
		for (const { event, position } of events) {
			if (position > cursor) return;
			if (event.type === "token") text += event.text;
			if (event.type !== "stream_end" || event.final !== false) continue;
			begin = position;
			text = "";
		}
	};
	if (cursor > 0) {
		for await (const events of readSource(bus, runId, { position: 0, signal, log })) {
			collect(events);
			// The event at the cursor shows whether a new message begins there.
			if (begin === cursor || begin + text.length > cursor) break;
		}
	}
	return stateAt(text, cursor - begin);
}
