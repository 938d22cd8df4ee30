/** Yields the messages of an answer as they become ready: blocks while it is written, or the whole answer at its end. Owns the timers of the block pipeline. */

import { type MarkdownState, stateAt } from "@nexus-stream/adapter/host";
import type { AdapterInfo } from "@nexus-stream/adapter/port";
import { CHANNEL_BLOCKS } from "@nexus-stream/platforms";
import { own } from "@nexus-stream/protocol/own";
import { sleep } from "@nexus-stream/protocol/retry";
import type { BlocksConfig } from "../../port.ts";
import { errorAttachment, isErrorSent, unsentAttachment } from "../attachments/attachment.ts";
import type { DeliveryContext } from "../delivery-context.ts";
import { isEnd, readSource, type SourceEvent } from "../source.ts";
import { continuedText, continuesBlindly, doubtOf } from "../stream/half-shown.ts";
import { type Typing, typingInputOf } from "../stream/typing.ts";
import {
	type BlockInput,
	type BlockMachine,
	type BlockRules,
	beginBlocks,
	type DeliveryBlock,
	stepBlocks,
	toolNote,
} from "./block-step.ts";
import { createMailMachine } from "./mail.ts";

/** For channels whose adapter defines no limits in its info. */
const BLOCK_RULES = { minChars: 800, maxChars: 1200, idleMs: 1000, humanDelayMs: { min: 800, max: 2500 } };

interface ChannelBlocks extends BlockRules {
	/** Delay between two blocks; undefined = none. */
	humanDelayMs: { min: number; max: number } | undefined;
}

/** The config overrides the adapter's info, which overrides the defaults of the channel's name. No block exceeds the length of a message. */
export function blocksOf(
	{ blocks, channel, limits: { textMax } }: AdapterInfo,
	config: BlocksConfig = {},
	name = channel,
): ChannelBlocks {
	const named: AdapterInfo["blocks"] = own(CHANNEL_BLOCKS, name);
	const { humanDelayMs, ...rules } = { ...BLOCK_RULES, ...named, ...blocks, ...config };
	const maxChars = Math.min(rules.maxChars, textMax);
	const minChars = Math.min(rules.minChars, maxChars);
	return { minChars, maxChars, idleMs: rules.idleMs, humanDelayMs: humanDelayMs ?? undefined };
}

/** Starts at the delivery's cursor. Reads on only when the consumer has handled the last block. */
export async function* readBlocks(
	context: DeliveryContext,
	typing: Typing,
): AsyncGenerator<DeliveryBlock, void, undefined> {
	const { live, account, info, question, bus, signal, log, clock } = context;
	const whole = live.row.mode === "whole";
	const { humanDelayMs, ...rules } = blocksOf(info, account.config.blocks, account.channel);
	// The buttons of a question belong to its last message, so the whole text is one line.
	const isMail = whole && (question !== undefined || info.delivery === "whole");
	const machine = isMail ? createMailMachine(context) : createBlocks(context, await markdownStateAt(context), rules);
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
			yield* withDelays(context, machine, whole ? undefined : humanDelayMs);
		}
	} finally {
		over.abort();
		next.catch(() => {}); // No longer awaited.
		await source.return();
	}
}

/** `markdown`: the state where the delivery continues. */
export function createBlocks(context: DeliveryContext, markdown: MarkdownState, channel: BlockRules): BlockMachine {
	const { live, info, options } = context;
	const whole = live.row.mode === "whole";
	const { textMax } = info.limits;
	const rules = whole ? { minChars: textMax, maxChars: textMax, idleMs: Infinity } : channel;
	const { row } = live;
	let state = beginBlocks(live.reach, markdown);
	/** The next block is the first one after a message that was abandoned halfway. */
	let isBlind = continuesBlindly(context);
	/** With `whole`, all messages wait for the end of the answer. */
	let isHeld = whole;
	let wakeAt: number | undefined;
	const ready: DeliveryBlock[] = [];
	const step = (input: BlockInput, now: number) => {
		const next = stepBlocks(state, input, now, rules);
		state = next.state;
		wakeAt = next.wakeAt;
		for (const block of next.blocks) {
			if (isBlind) block.text = continuedText(block.text);
			isBlind = false;
		}
		ready.push(...next.blocks);
		return next.blocks.at(-1);
	};
	const attach = (each: SourceEvent, now: number) => {
		const attachment = unsentAttachment(context, each);
		if (!attachment) return;
		step({ type: "flush" }, now);
		ready.push({ from: state.since, to: state.since, text: attachment.text, attachment });
	};
	/** Drops damaged text that was not sent yet. */
	const drop = (from: number, now: number) => {
		step({ type: "drop", from }, now);
		for (let at = ready.length - 1; at >= 0; at--)
			if (!ready[at]?.attachment && ready[at]!.from >= from) ready.splice(at, 1);
	};
	return {
		take(each, now) {
			const { event } = each;
			if (isEnd(event)) isHeld = false;
			if (event.type === "token") step(event, now);
			else if (event.type === "part") attach(each, now);
			else if (event.type === "stream_end" || event.type === "stream_error") {
				if (each.damagedFrom !== undefined) drop(each.damagedFrom, now);
				const last = step({ type: "end" }, now);
				if (last && each.facts) last.facts = each.facts;
			} else if (event.type === "tool_status" && event.status === "started" && options.tools) {
				step({ type: "note", text: toolNote(event.summary ?? event.toolName) }, now);
			}
			if (!isEnd(event) || !options.errorText || each.reason === "aborted") return;
			// A completed answer gets the error text only when an unknown part of it may be missing.
			if (event.type !== "stream_error" && !(isBlind && doubtOf(live) !== undefined)) return;
			// The error text is not part of the source; it is sent after it, and only once.
			const attachment = errorAttachment(context);
			const isSent = attachment ? row.messages.some(({ nonce }) => nonce === attachment.nonce) : isErrorSent(row);
			const block = { from: state.since, to: state.since, text: options.errorText };
			if (!isSent) ready.push({ ...block, attachment });
		},
		tick: (now) => step({ type: "tick" }, now),
		get wakeAt() {
			return wakeAt;
		},
		ready: () => (isHeld ? undefined : ready.shift()),
	};
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
	humanDelayMs: ChannelBlocks["humanDelayMs"],
): AsyncGenerator<DeliveryBlock, void, undefined> {
	const { live, clock, random, signal } = context;
	for (let block = machine.ready(); block; block = machine.ready()) {
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
