/** Shows each part exactly where the text it is aligned to has got to (P3.4), in whatever order the streams arrive. */

import type { Align, BeginFrame } from "../frames/frame.ts";
import type { MessageView, PartView, ReasoningView, ToolView } from "./view.ts";

/** A message as it grows. */
export interface GrowingMessage {
	readonly draft: Omit<MessageView, "reasoning" | "tools" | "parts">;
	/** Streams of reasoning and of tools, in the order of their begins. */
	readonly blocks: GrowingStream[];
	/** The parts that are shown, in order. */
	readonly parts: GrowingPart[];
	/** For each chunk of the text its number and the text's length after it. */
	readonly seqNos: number[];
	readonly lengths: number[];
	/** The last snapshot, as long as nothing has changed since. */
	snapshot: MessageView | undefined;
}

export interface GrowingStream {
	readonly begin: BeginFrame;
	/** Position among the run's begins. */
	readonly index: number;
	/** The message it belongs to: a text stream's own, otherwise its agent's newest one at its begin. */
	readonly message: GrowingMessage;
	/** Length of that message's text at the begin. */
	readonly after: number;
	lastSeqNo: number;
	ended: boolean;
	reasoning?: ReasoningView;
	tool?: ToolView;
	/** A value whose further pieces are to come. */
	unfinished?: GrowingPart;
}

export interface GrowingPart {
	readonly draft: PartView;
	readonly stream: GrowingStream;
	/** The chunk of the message's text that it follows. */
	alignedTo: number;
	/** Where it is shown; undefined while it waits. */
	message?: GrowingMessage;
}

export interface Aligner {
	/** Shows a part, at once or when its time has come. */
	add(part: GrowingPart, align: Align | undefined): void;
	/** A stream has grown or ended: shows what waited for that. */
	advance(stream: GrowingStream): void;
	/** No stream will grow any more: shows what still waits at the end of the message it belongs to. */
	finish(): void;
}

export function createAligner(streams: ReadonlyMap<string, GrowingStream>): Aligner {
	/** By the stream they wait for. */
	const waiting = new Map<string, { part: GrowingPart; align: Align }[]>();

	return {
		add(part, align) {
			if (align === undefined) return showAtEnd(part.stream.message, part);
			const target = streams.get(align.message_id);
			if (target && hasReached(target, align)) return showAligned(target, part, align);
			const queue = waiting.get(align.message_id);
			if (queue) queue.push({ part, align });
			else waiting.set(align.message_id, [{ part, align }]);
		},
		advance(stream) {
			const id = stream.begin.message_id;
			const queue = waiting.size === 0 ? undefined : waiting.get(id);
			if (queue === undefined) return;
			const rest = queue.filter(({ part, align }) => {
				if (!hasReached(stream, align)) return true;
				showAligned(stream, part, align);
				return false;
			});
			if (rest.length > 0) waiting.set(id, rest);
			else waiting.delete(id);
		},
		finish() {
			for (const queue of waiting.values()) for (const { part } of queue) showAtEnd(part.stream.message, part);
			waiting.clear();
		},
	};
}

/** A stream that ended early has shown all it ever will. */
const hasReached = (target: GrowingStream, align: Align): boolean => target.ended || target.lastSeqNo >= align.seq_no;

function showAligned(target: GrowingStream, part: GrowingPart, align: Align): void {
	const { message } = target;
	if (target.begin.modality === "text") show(message, part, align.seq_no, lengthAfter(message, align.seq_no));
	else showAtEnd(message, part);
}

const showAtEnd = (message: GrowingMessage, part: GrowingPart): void =>
	show(message, part, message.seqNos.at(-1) ?? 0, message.draft.text.length);

function show(message: GrowingMessage, part: GrowingPart, alignedTo: number, after: number): void {
	part.message = message;
	part.alignedTo = alignedTo;
	part.draft.after = after;
	let place = message.parts.length;
	while (place > 0 && isBefore(part, message.parts[place - 1]!)) place--;
	message.parts.splice(place, 0, part);
	message.snapshot = undefined;
}

const isBefore = (a: GrowingPart, b: GrowingPart): boolean =>
	(a.alignedTo - b.alignedTo || a.stream.index - b.stream.index || a.draft.seqNo - b.draft.seqNo) < 0;

/** The text's length once chunk `seqNo` was in it. */
function lengthAfter(message: GrowingMessage, seqNo: number): number {
	let low = 0;
	let high = message.seqNos.length;
	while (low < high) {
		const middle = (low + high) >>> 1;
		if (message.seqNos[middle]! <= seqNo) low = middle + 1;
		else high = middle;
	}
	return low === 0 ? 0 : message.lengths[low - 1]!;
}
