/** The messages of a procedure as a cursor and a dialect, so that the pump serves them like every other stream over HTTP. */

import { Batch, type Cursor } from "../../bus/bus.ts";
import { SSE, type StreamFormat } from "../stream/stream.ts";

/** One event: its place in the stream and its JSON; "" for a message that only tells the reader its place. */
export interface RestEvent {
	id: number;
	data: string;
}

export interface EventCursor extends Cursor {
	/** The first event, unless the stream is open and silent. Undefined: it ended without one. */
	first(): Promise<RestEvent | "silent" | undefined>;
}

/** `established` resolves when the stream counts as open although it has no event yet. Closing the cursor calls `left`. */
export function eventCursor<Message>(
	messages: AsyncIterable<Message>,
	eventOf: (message: Message) => RestEvent,
	established: Promise<void>,
	left: () => void,
): EventCursor {
	const iterator = messages[Symbol.asyncIterator]();
	let offset = 0;
	let ended = false;
	let held: Promise<IteratorResult<Message>> | undefined;
	const take = (result: IteratorResult<Message>): Batch | undefined => {
		held = undefined;
		ended = result.done === true;
		if (result.done) return undefined;
		const { id, data } = eventOf(result.value);
		offset = id;
		return Batch.of(id, [data]);
	};
	return {
		get offset() {
			return offset;
		},
		get ended() {
			return ended;
		},
		next: () => (held ?? iterator.next()).then(take),
		check() {},
		onWake() {},
		close() {
			left();
			void iterator.return?.().catch(() => {});
		},
		async first() {
			held = iterator.next();
			// Thrown by `next`, unless the reader leaves before.
			held.catch(() => {});
			const result = await Promise.race([held, established]);
			if (!result) return "silent";
			return result.done ? undefined : eventOf(result.value);
		},
	};
}

/** `begins`: where an endless stream begins, so that a reader that is cut before its first event resumes there. */
export const eventDialect = (begins: string | null): StreamFormat => ({
	headers: SSE.headers,
	open() {
		const { open, heartbeat } = SSE.open();
		return {
			open: () => `${open?.() ?? ""}${begins === null ? "" : `id: ${begins}\n\n`}`,
			text: ({ first, text }) => (text === "" ? `id: ${first}\n\n` : `id: ${first}\nevent: message\ndata: ${text}\n\n`),
			heartbeat,
		};
	},
});
