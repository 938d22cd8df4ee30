/** Server-sent events (PROTOCOL P6.8). */

import type { Batch } from "../../bus/bus.ts";
import { frameTypeOf } from "../../protocol/protocol.ts";
import type { Dialect } from "./dialect.ts";

function events({ first, text }: Batch): string {
	let written = "";
	let id = first;
	for (let at = 0; ; ) {
		const end = text.indexOf("\n", at);
		const record = end < 0 ? text.slice(at) : text.slice(at, end);
		written += `id: ${id++}\nevent: ${frameTypeOf(text, at) ?? "message"}\ndata: ${record}\n\n`;
		if (end < 0) return written;
		at = end + 1;
	}
}

export const SSE: Dialect = {
	headers: { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no" },
	shared: true,
	open: () => ({
		open: () => "retry: 1000\n\n",
		text: events,
		heartbeat: ": hb\n\n",
	}),
};
