/** Collects the text of one answer into messages: blocks while it is written, or the whole answer at its end. */

import type { AdapterInfo, MarkdownState } from "@nexus-stream/adapter/host";
import { CHANNEL_BLOCKS } from "@nexus-stream/platforms";
import { own } from "@nexus-stream/protocol/own";
import type { BlocksConfig } from "../../port.ts";
import { errorAttachment, isErrorSent, unsentAttachment } from "../attachments/attachment.ts";
import type { DeliveryContext } from "../delivery-context.ts";
import { isEnd, type SourceEvent } from "../source.ts";
import { continuedText, continuesBlindly, doubtOf } from "../stream/half-shown.ts";
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

export interface ChannelBlocks extends BlockRules {
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

/** `markdown`: the state where the delivery continues. */
export function createBlockMachine(context: DeliveryContext, markdown: MarkdownState): BlockMachine {
	const { live, info, account, question } = context;
	const whole = live.row.mode === "whole";
	// The buttons of a question belong to its last message, so the whole text is one line.
	if (whole && (question || info.delivery === "whole")) return createMailMachine(context);
	const { textMax } = info.limits;
	if (whole) {
		const rules = { minChars: textMax, maxChars: textMax, idleMs: Infinity };
		return heldToEnd(createBlocks(context, markdown, rules, undefined));
	}
	const { humanDelayMs, ...rules } = blocksOf(info, account.config.blocks, account.channel);
	return createBlocks(context, markdown, rules, humanDelayMs);
}

/** Holds all messages back until the answer has ended. */
function heldToEnd(machine: BlockMachine): BlockMachine {
	let ended = false;
	return {
		take(each, now) {
			machine.take(each, now);
			ended ||= isEnd(each.event);
		},
		tick: (now) => machine.tick(now),
		get wakeAt() {
			return machine.wakeAt;
		},
		ready: () => (ended ? machine.ready() : undefined),
		humanDelayMs: machine.humanDelayMs,
	};
}

function createBlocks(
	context: DeliveryContext,
	markdown: MarkdownState,
	rules: BlockRules,
	humanDelayMs: BlockMachine["humanDelayMs"],
): BlockMachine {
	const { live, options } = context;
	const { row } = live;
	let state = beginBlocks(live.reach, markdown);
	/** The next block is the first one after a message that was abandoned halfway. */
	let isBlind = continuesBlindly(context);
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
		ready: () => ready.shift(),
		humanDelayMs,
	};
}
