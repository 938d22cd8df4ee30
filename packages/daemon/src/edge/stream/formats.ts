/** The formats of HTTP answers that stream: how each writes the records of a log in the body. */

import { type FrameType, frameTypeOf } from "@nexus-stream/protocol";
import type { Batch } from "../../bus/bus.ts";
import type { Encoder } from "./pump.ts";

export interface StreamFormat {
	/** Headers of the answer, including the content type. */
	readonly headers: Readonly<Record<string, string>>;
	/**
	 * Its encoders keep no state and add nothing but ASCII to the records: a batch is encoded once for all readers. Without it every reader
	 * has its own encoder.
	 */
	readonly shared?: true;
	open(): Encoder<string>;
}

/** The records as they are, one a line (PROTOCOL P6.7). */
export const NDJSON: StreamFormat = {
	headers: { "Content-Type": "application/x-ndjson" },
	shared: true,
	open: () => ({ text: ({ text }) => `${text}\n` }),
};

/** In one piece for each type: every joint of a text is an object. */
const FIELDS = {
	"stream.begin": "\nevent: stream.begin\ndata: ",
	"stream.chunk": "\nevent: stream.chunk\ndata: ",
	"stream.end": "\nevent: stream.end\ndata: ",
	message: "\nevent: message\ndata: ",
};

const fieldsOf = (type: FrameType | undefined): string => FIELDS[type ?? "message"];

function events({ first, text }: Batch): string {
	let written = "";
	let id = first;
	for (let at = 0; ; ) {
		const end = text.indexOf("\n", at);
		const record = end < 0 ? text.slice(at) : text.slice(at, end);
		written += `id: ${id++}${fieldsOf(frameTypeOf(text, at))}${record}\n\n`;
		if (end < 0) return written;
		at = end + 1;
	}
}

/** Server-sent events (PROTOCOL P6.8). */
export const SSE: StreamFormat = {
	headers: { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no" },
	shared: true,
	open: () => ({
		open: () => "retry: 1000\n\n",
		text: events,
		heartbeat: ": hb\n\n",
	}),
};
