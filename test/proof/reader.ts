/** A client that follows one SSE stream through every cut, resuming after the last id it has seen, and keeps all it got. */

import { type ClientRequest, get } from "node:http";
import { AUTHORIZATION } from "./daemon.ts";

export interface Received {
	id: number;
	event: string;
	data: string;
}

export interface Reader {
	readonly records: readonly Received[];
	/** Anything that is not a well-formed event or a comment. */
	readonly faults: readonly string[];
	/** Answers 200 so far: how often it was connected. */
	readonly connections: number;
	/** The server said that nothing will follow (204), or the stream closed after its final end. */
	readonly ended: boolean;
	close(): void;
}

const RETRY_MS = 20;

export function follow(url: string): Reader {
	const records: Received[] = [];
	const faults: string[] = [];
	let connections = 0;
	let ended = false;
	let closed = false;
	let request: ClientRequest | undefined;

	/** Returns what is left of an event that is not whole yet; when the connection breaks it is thrown away. */
	const take = (text: string): string => {
		const blocks = text.split("\n\n");
		for (const block of blocks.slice(0, -1)) {
			if (block.startsWith(":") || /^retry: \d+$/.test(block)) continue;
			const found = /^id: (\d+)\nevent: (stream\.\w+)\ndata: (.*)$/.exec(block);
			if (found) records.push({ id: Number(found[1]), event: found[2] ?? "", data: found[3] ?? "" });
			else faults.push(`not an event: ${JSON.stringify(block)}`);
		}
		return blocks.at(-1) ?? "";
	};
	const again = () => {
		if (!closed && !ended) setTimeout(connect, RETRY_MS);
	};
	const connect = () => {
		const last = records.at(-1);
		const headers = { ...AUTHORIZATION, ...(last ? { "last-event-id": String(last.id) } : {}) };
		let answered = false;
		request = get(url, { headers, agent: false }, (response) => {
			answered = true;
			if (response.statusCode === 204) ended = true;
			else if (response.statusCode === 200) connections++;
			else if (response.statusCode !== 503) faults.push(`${url}: ${response.statusCode}`);
			let rest = "";
			response.setEncoding("utf8").on("data", (text: string) => {
				if (response.statusCode === 200) rest = take(rest + text);
			});
			response.on("close", again);
			// A killed server cuts the connection: `close` follows and the reader comes back.
			response.on("error", () => {});
		});
		request.on("error", () => {
			if (!answered) again();
		});
	};
	connect();
	return {
		records,
		faults,
		get connections() {
			return connections;
		},
		get ended() {
			return ended;
		},
		close() {
			closed = true;
			request?.destroy();
		},
	};
}
