/** A provider that counts: every call is known by the mark in its prompt, and those that are to hang do so once. */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface CountingProvider {
	/** The address that a connector dials. */
	endpoint: string;
	/** How often each prompt was asked, in all lives. */
	calls: ReadonlyMap<string, number>;
	/** Calls that have begun, hanging ones included. */
	readonly total: number;
	/** Nothing hangs any more; what does is answered. */
	release(): void;
	close(): void;
}

/** Prompts with this word are answered in part, and then not at all the first time. */
export const HANGS = "hang";
/** The pieces of every answer. */
export const ANSWER = ["All ", "of this ", "was said ", "by a provider ", "that counts."];

const piece = (content: string | undefined) => ({
	id: "c",
	object: "chat.completion.chunk",
	created: 1,
	model: "m1",
	choices: [
		{
			index: 0,
			delta: content === undefined ? {} : { content },
			finish_reason: content === undefined ? "stop" : null,
		},
	],
});

const write = (response: ServerResponse, content: string | undefined) =>
	response.write(`data: ${JSON.stringify(piece(content))}\n\n`);

export async function countingProvider(): Promise<CountingProvider> {
	const calls = new Map<string, number>();
	const hanging = new Set<() => void>();
	let total = 0;
	let isReleased = false;
	const finish = (response: ServerResponse, from: number) => {
		for (const word of ANSWER.slice(from)) write(response, word);
		write(response, undefined);
		response.end("data: [DONE]\n\n");
	};
	const server = createServer((request, response) => {
		response.on("error", () => {});
		void promptOf(request).then((prompt) => {
			const count = (calls.get(prompt) ?? 0) + 1;
			calls.set(prompt, count);
			total++;
			response.writeHead(200, { "content-type": "text/event-stream" });
			if (isReleased || count > 1 || !prompt.includes(HANGS)) return finish(response, 0);
			write(response, ANSWER[0]);
			write(response, ANSWER[1]);
			const end = () => finish(response, 2);
			hanging.add(end);
			response.on("close", () => hanging.delete(end));
		});
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	return {
		endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
		calls,
		get total() {
			return total;
		},
		release() {
			isReleased = true;
			for (const end of hanging) end();
		},
		close() {
			server.closeAllConnections();
			server.close();
		},
	};
}

/** The text of the last message; for a request that is not a model call (a probe), its path. */
async function promptOf(request: IncomingMessage): Promise<string> {
	let body = "";
	for await (const part of request.setEncoding("utf8")) body += part as string;
	if (!request.url?.endsWith("/chat/completions")) return request.url ?? "";
	const { messages } = JSON.parse(body) as { messages: { content: string | { text: string }[] }[] };
	const { content } = messages.at(-1)!;
	return typeof content === "string" ? content : content.map(({ text }) => text).join("");
}
