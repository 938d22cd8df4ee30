/** Arranges an answer: agents that worked in parallel side by side; tools, reasoning and parts between the blocks of the text. */

import type { MessageView, PartView, ReasoningView, ToolView } from "@nexus-stream/protocol";
import type { MarkdownBlock } from "../ui/markdown.ts";

/** The messages of one agent in a stretch. */
export interface SpeakerLane {
	readonly agent: string | undefined;
	readonly messages: readonly MessageView[];
}

/** A part of the answer; its lanes stand side by side. */
export interface Stretch {
	readonly key: string;
	readonly lanes: readonly SpeakerLane[];
}

/** In the order of their begins. Messages of different agents that overlap in time share a stretch. */
export function stretchesOf(messages: readonly MessageView[]): Stretch[] {
	const stretches: { lanes: Map<string | undefined, MessageView[]>; key: string; untilMs: number }[] = [];
	for (const message of messages) {
		const { agent, startedAt, endedAt = Number.POSITIVE_INFINITY } = message;
		const open = stretches.at(-1);
		const isParallel = open !== undefined && agent !== undefined && startedAt < open.untilMs;
		if (open && (isParallel || open.lanes.has(agent))) {
			const lane = open.lanes.get(agent);
			if (lane) lane.push(message);
			else open.lanes.set(agent, [message]);
			open.untilMs = Math.max(open.untilMs, endedAt);
		} else stretches.push({ lanes: new Map([[agent, [message]]]), key: message.messageId, untilMs: endedAt });
	}
	return stretches.map(({ key, lanes }) => ({
		key,
		lanes: [...lanes].map(([agent, own]) => ({ agent, messages: own })),
	}));
}

/** The lane colours of the style sheet. */
const TONES = ["text", "reasoning", "tool", "part", "media", "other"] as const;

/** The same agent always has the same colour. */
export function toneOf(agent: string): (typeof TONES)[number] {
	let sum = 0;
	for (const char of agent) sum = (sum * 31 + char.codePointAt(0)!) % 9973;
	return TONES[sum % TONES.length]!;
}

export type Inset =
	| { kind: "reasoning"; after: number; order: number; key: string; reasoning: ReasoningView }
	| { kind: "tool"; after: number; order: number; key: string; tool: ToolView }
	| { kind: "part"; after: number; order: number; key: string; part: PartView };

export type MessageItem = { kind: "block"; block: MarkdownBlock; index: number } | Inset;

/** Everything in a message that is not text, in the order in which it is shown. */
export function insetsOf(message: MessageView): Inset[] {
	const insets: Inset[] = [
		...message.reasoning.map((reasoning): Inset => ({ ...placed("reasoning", reasoning), reasoning })),
		...message.tools.map((tool): Inset => ({ ...placed("tool", tool), tool })),
		...message.parts.map((part): Inset => ({ ...placed("part", part, part.seqNo), part })),
	];
	return insets.sort((a, b) => a.after - b.after || a.order - b.order);
}

function placed<K extends Inset["kind"]>(kind: K, view: { messageId: string; after: number }, seqNo = 0) {
	const stream = Number(view.messageId.slice(view.messageId.lastIndexOf(".") + 1));
	return { kind, after: view.after, order: Number.isFinite(stream) ? stream : 0, key: `${view.messageId}:${seqNo}` };
}

/**
 * Merges blocks and insets. Blocks are never split: an inset inside a block comes right after it. An inset behind text that is not shown
 * yet (`shownChars`) waits.
 */
export function placeInsets(
	blocks: readonly MarkdownBlock[],
	insets: readonly Inset[],
	shownChars: number,
): MessageItem[] {
	const pieces: MessageItem[] = [];
	let next = 0;
	const placeUpTo = (position: number) => {
		for (let inset = insets[next]; inset && inset.after <= position; inset = insets[next]) {
			if (inset.after > shownChars) return;
			pieces.push(inset);
			next += 1;
		}
	};
	blocks.forEach((block, index) => {
		placeUpTo(block.start);
		pieces.push({ kind: "block", block, index });
	});
	placeUpTo(Number.POSITIVE_INFINITY);
	return pieces;
}
