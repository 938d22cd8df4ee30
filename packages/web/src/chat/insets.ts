/** Places tools, reasoning and parts between the blocks of a message's text, at the positions that the protocol gives them. */

import type { MessageView, PartView, ReasoningView, ToolView } from "@nexus-stream/protocol";
import type { MarkdownBlock } from "../ui/markdown.ts";

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
