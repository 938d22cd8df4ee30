/**
 * Agents write in parallel; a chat shows one message after another, in the order of their begins (P3.11). Decides which frames of a log are
 * passed on now. Frames of a later message are not kept: they are read from the log again when its turn has come. Pure.
 */

import type { BeginFrame, Frame } from "@nexus-stream/protocol";

/** A message; order −1 marks content that is not ordered (hidden text and its tools). */
interface OrderedMessage {
	readonly order: number;
	/** The offset of its begin frame. */
	readonly offset: number;
	/** The offset up to which its frames were passed on; re-reading for a later message skips them. */
	readUpTo: number;
}

export function createMessageOrder() {
	const atOnce: OrderedMessage = { order: -1, offset: 0, readUpTo: 0 };
	/** In order of their begins. */
	const messages: OrderedMessage[] = [];
	/** The newest message of each agent. */
	const newest = new Map<string | undefined, OrderedMessage>();
	const streams = new Map<string, OrderedMessage>();
	/** The text streams among them. */
	const texts = new Set<string>();
	/** The order of the current message. */
	let current = 0;
	/** How far the log has been read. */
	let frontier = 0;
	let from: number | undefined;

	function begin({ message_id: id, modality, agent, visible }: BeginFrame, offset: number): void {
		if (modality === "text") {
			const isHidden = visible === false;
			const message = isHidden ? atOnce : { order: messages.length, offset, readUpTo: 0 };
			if (!isHidden) {
				messages.push(message);
				texts.add(id);
			}
			newest.set(agent, message);
		}
		streams.set(id, newest.get(agent) ?? messages.at(-1) ?? atOnce);
	}

	return {
		/** Whether the record at this offset was read before. */
		wasRead: (offset: number) => offset <= frontier,
		/** Whether the frame is passed on now. Frames come in the order of the log, except those that are read again. */
		takes(frame: Frame, offset: number): boolean {
			const isNew = offset > frontier;
			if (isNew) frontier = offset;
			if (isNew && frame.type === "stream.begin") begin(frame, offset);
			const message = streams.get(frame.message_id) ?? atOnce;
			// Late frames of an ended message are passed on as they come.
			if (message.order > current || offset <= message.readUpTo) return false;
			message.readUpTo = offset;
			if (frame.type === "stream.end" && texts.has(frame.message_id) && message.order === current) {
				current++;
				const next = messages[current];
				from = next && next.offset < offset ? next.offset : undefined;
			}
			return true;
		},
		/** After the end of a message: the offset of its successor's begin, if that was earlier. Returned once. */
		rewind(): number | undefined {
			const offset = from;
			from = undefined;
			return offset;
		},
	};
}
