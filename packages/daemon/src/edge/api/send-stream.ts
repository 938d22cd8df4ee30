/** How a handler answers with a stream: what is wrong before the first byte has a status (I9). */

import type { ServerResponse } from "node:http";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { Readers, StreamResponse } from "../stream/stream.ts";

export interface Streaming {
	readers: Readers;
	/** Throws `busy` when no further stream may open. */
	admitStream(): void;
}

export async function sendStream(
	{ readers, admitStream }: Streaming,
	outgoing: ServerResponse,
	answer: StreamResponse,
): Promise<Response> {
	const { cursor } = answer;
	try {
		await cursor.check();
		// Others may have opened meanwhile; from here on nothing waits.
		admitStream();
	} catch (cause) {
		cursor.close();
		throw cause;
	}
	readers.open(outgoing, answer);
	return RESPONSE_ALREADY_SENT;
}
