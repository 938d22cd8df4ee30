/**
 * Agents write side by side; a chat shows one message after another, in the order of their begins (P3.11). Says which frames of a log are
 * heard now. What belongs to a later message is not kept: it is in the log, and is read again when its turn has come. Pure.
 */

import type { BeginFrame, Frame } from "@nexus-stream/protocol";

/** A message, or with place -1 what waits for nobody: hidden words, and what is done beside them. */
interface OrderedMessage {
	readonly order: number;
	/** Of its begin. */
	readonly offset: number;
	/** Up to which offset its frames were heard: they are read again while others have their turn. */
	readUpTo: number;
}

export interface MessageOrder {
	/** Whether the record at this offset was there before. */
	wasRead(offset: number): boolean;
	/** Whether the frame is heard now. Frames come in the order of the log, but for those that are read again. */
	takes(frame: Frame, offset: number): boolean;
	/** After the end of a message: where its successor began before that, to read on from. Asked once. */
	rewind(): number | undefined;
}

export function createMessageOrder(): MessageOrder {
	const atOnce: OrderedMessage = { order: -1, offset: 0, readUpTo: 0 };
	/** In order of their begins. */
	const messages: OrderedMessage[] = [];
	/** The newest message of each agent. */
	const newest = new Map<string | undefined, OrderedMessage>();
	const streams = new Map<string, OrderedMessage>();
	/** The text streams among them. */
	const texts = new Set<string>();
	/** Of the message that is being heard. */
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
		wasRead: (offset) => offset <= frontier,
		takes(frame, offset) {
			const isNew = offset > frontier;
			if (isNew) frontier = offset;
			if (isNew && frame.type === "stream.begin") begin(frame, offset);
			const message = streams.get(frame.message_id) ?? atOnce;
			// Of a message that is over, what comes late is heard as it comes.
			if (message.order > current || offset <= message.readUpTo) return false;
			message.readUpTo = offset;
			if (frame.type === "stream.end" && texts.has(frame.message_id) && message.order === current) {
				current++;
				const next = messages[current];
				from = next && next.offset < offset ? next.offset : undefined;
			}
			return true;
		},
		rewind() {
			const offset = from;
			from = undefined;
			return offset;
		},
	};
}
