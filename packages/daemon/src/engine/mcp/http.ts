/** A server at an address: every request passes the address guard, follows no redirect, and has a limit on what it answers. */

import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { guardedFetch } from "@nexus-stream/adapter/net/guarded-fetch";
import { type Clock, within } from "@nexus-stream/protocol/clock";
import type { LinkEvents, McpTransport } from "./link.ts";
import type { McpLimits } from "./port.ts";

export interface HttpSpec {
	url: string;
	headers: Record<string, string>;
	allowLoopback: boolean;
}

export function httpLink(spec: HttpSpec, limits: McpLimits, clock: Clock, events: LinkEvents): McpTransport {
	const guarded = guardedFetch(spec);
	const giveUp = (why: string) => {
		events.lost(why);
		void transport.close();
	};
	const transport = new StreamableHTTPClientTransport(new URL(spec.url), {
		fetch: async (url, init) => bounded(await guarded.fetch(url, init), limits.messageBytesMax, giveUp),
		requestInit: { headers: spec.headers, redirect: "error" },
		// For a broken stream; when the server is gone, the supervision restarts it.
		reconnectionOptions: {
			maxRetries: 2,
			initialReconnectionDelay: 1000,
			maxReconnectionDelay: 1000,
			reconnectionDelayGrowFactor: 1,
		},
	});
	const close = transport.close.bind(transport);
	let over = false;
	transport.close = async () => {
		if (over) return;
		over = true;
		// The server may forget the session at once; one that is gone does not delay the end.
		const forgotten = transport.terminateSession().catch(() => {});
		await within(clock, limits.stopMs, forgotten, "due");
		await close();
		guarded.close();
	};
	return transport as McpTransport;
}

/** The limit applies to each event of a stream (an empty line ends one), and to any other body as a whole. */
function bounded(response: Response, bytesMax: number, exceeded: (why: string) => void): Response {
	if (response.body === null) return response;
	const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
	let bytes = 0;
	let lineBytes = 0;
	const counter = new TransformStream<Uint8Array, Uint8Array>({
		transform(chunk, controller) {
			for (const byte of chunk) {
				bytes++;
				if (byte === LF) {
					if (isStream && lineBytes === 0) bytes = 0;
					lineBytes = 0;
				} else if (byte !== CR) lineBytes++;
			}
			if (bytes <= bytesMax) return controller.enqueue(chunk);
			const why = `it sent a message of more than ${bytesMax} bytes`;
			controller.error(new Error(why));
			exceeded(why);
		},
	});
	const { status, statusText, headers } = response;
	return new Response(response.body.pipeThrough(counter), { status, statusText, headers });
}

const LF = 0x0a;
const CR = 0x0d;
