/** The block pipeline of one delivery, with the channel's figures. */

import type { AdapterInfo, MarkdownState } from "@nexus-stream/adapter/host";
import { CHANNEL_BLOCKS } from "@nexus-stream/platforms";
import { own } from "@nexus-stream/protocol/own";
import type { BlocksConfig } from "../../port.ts";
import { errorAttachment, isErrorSent, unsentAttachment } from "../attachments/attachment.ts";
import type { DeliveryContext } from "../delivery-context.ts";
import { isEnd, type SourceEvent } from "../source.ts";
import { continuedText, doubtOf, goesOnBlindly } from "../stream/half-shown.ts";
import { toolNote } from "../stream/tool-note.ts";
import { type BlockInput, type BlockRules, beginBlocks, type DeliveryBlock, stepBlocks } from "./block-step.ts";
import type { BlockMachine } from "./machine.ts";
import { createMailMachine } from "./mail.ts";

/** Where a channel's adapter has none of its own in its info. */
const BLOCK_RULES = { minChars: 800, maxChars: 1200, idleMs: 1000, humanDelayMs: { min: 800, max: 2500 } };

export interface ChannelBlocks extends BlockRules {
	/** Between two blocks; undefined = none. */
	humanDelayMs: { min: number; max: number } | undefined;
}

/** The config is stronger than the adapter's own, which is stronger than that of the channel's name. No block is longer than a message can be. */
export function blocksOf(
	{ blocks, channel, limits: { textMax } }: AdapterInfo,
	config: BlocksConfig = {},
	name = channel,
): ChannelBlocks {
	const ofName: AdapterInfo["blocks"] = own(CHANNEL_BLOCKS, name);
	const { humanDelayMs, ...rules } = { ...BLOCK_RULES, ...ofName, ...blocks, ...config };
	const maxChars = Math.min(rules.maxChars, textMax);
	const minChars = Math.min(rules.minChars, maxChars);
	return { minChars, maxChars, idleMs: rules.idleMs, humanDelayMs: humanDelayMs ?? undefined };
}

/** `markdown`: where in the markdown the delivery goes on. */
export function createBlockMachine(context: DeliveryContext, place: MarkdownState): BlockMachine {
	const { live, info, account, question } = context;
	const whole = live.row.mode === "whole";
	// A question's last message has its buttons, so all of them are one line.
	if (whole && (question || info.delivery === "whole")) return createMailMachine(context);
	const { textMax } = info.limits;
	if (whole) {
		const rules = { minChars: textMax, maxChars: textMax, idleMs: Infinity };
		return heldToEnd(createBlocks(context, place, rules, undefined));
	}
	const { humanDelayMs, ...rules } = blocksOf(info, account.config.blocks, account.channel);
	return createBlocks(context, place, rules, humanDelayMs);
}

/** Nothing is ready before the answer has ended, however many messages it has become by then. */
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
	place: MarkdownState,
	rules: BlockRules,
	humanDelayMs: BlockMachine["humanDelayMs"],
): BlockMachine {
	const { live, options } = context;
	const { row } = live;
	let state = beginBlocks(live.reach, place);
	/** Nothing was sent yet behind a message that was left half-way. */
	let isBlind = goesOnBlindly(context);
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
	const beside = (each: SourceEvent, now: number) => {
		const attachment = unsentAttachment(context, each);
		if (!attachment) return;
		step({ type: "flush" }, now);
		ready.push({ from: state.since, to: state.since, text: attachment.text, attachment });
	};
	/** What is damaged and has not been sent is not sent. */
	const drop = (from: number, now: number) => {
		step({ type: "drop", from }, now);
		for (let at = ready.length - 1; at >= 0; at--)
			if (!ready[at]?.attachment && ready[at]!.from >= from) ready.splice(at, 1);
	};
	return {
		take(each, now) {
			const { event } = each;
			if (event.type === "token") step(event, now);
			else if (event.type === "part") beside(each, now);
			else if (event.type === "stream_end" || event.type === "stream_error") {
				if (each.damagedFrom !== undefined) drop(each.damagedFrom, now);
				const last = step({ type: "end" }, now);
				if (last && each.facts) last.facts = each.facts;
			} else if (event.type === "tool_status" && event.status === "started" && options.tools) {
				step({ type: "note", text: toolNote(event.summary ?? event.toolName) }, now);
			}
			if (!isEnd(event) || !options.errorText || each.reason === "aborted") return;
			// Of an answer that ended well, some may be missing, and it is not known what.
			if (event.type !== "stream_error" && !(isBlind && doubtOf(live) !== undefined)) return;
			// No part of the source: said after it, and only once.
			const attachment = errorAttachment(context);
			const isSaid = attachment ? row.messages.some(({ nonce }) => nonce === attachment.nonce) : isErrorSent(row);
			const block = { from: state.since, to: state.since, text: options.errorText };
			if (!isSaid) ready.push({ ...block, attachment });
		},
		tick: (now) => step({ type: "tick" }, now),
		get wakeAt() {
			return wakeAt;
		},
		ready: () => ready.shift(),
		humanDelayMs,
	};
}
