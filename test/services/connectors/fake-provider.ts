/** A provider on this machine: OpenAI's API and Anthropic's, as far as connectors use them, over real HTTP. */

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { serving } from "../../serving.ts";

export interface Seen {
	method: string;
	path: string;
	headers: IncomingHttpHeaders;
	body: Buffer;
}

type Answer = (seen: Seen, response: ServerResponse) => void;

export interface FakeProvider {
	url: string;
	seen: Seen[];
	/** Replaces the usual answer at a path from now on. */
	on(path: string, answer: Answer): void;
	/** Ids of the requests whose connection the caller has closed. */
	closed: string[];
}

const json = (response: ServerResponse, value: unknown, status = 200) =>
	response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));

const chunk = (delta: string) => ({
	id: "c",
	object: "chat.completion.chunk",
	created: 1,
	model: "m1",
	choices: [{ index: 0, delta: { content: delta }, finish_reason: null }],
});

/** The words of the answer, as OpenAI streams them. */
export function chat(response: ServerResponse, words: readonly string[], usage?: object): void {
	response.writeHead(200, { "content-type": "text/event-stream" });
	for (const word of words) response.write(`data: ${JSON.stringify(chunk(word))}\n\n`);
	const end = { ...chunk(""), choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage };
	response.end(`data: ${JSON.stringify(end)}\n\ndata: [DONE]\n\n`);
}

/** As Anthropic streams an answer; `begun` and `ended` are the usage of its first and its last event. */
export function messages(response: ServerResponse, begun?: object, ended?: object): void {
	response.writeHead(200, { "content-type": "text/event-stream" });
	const send = (type: string, value: object) =>
		response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...value })}\n\n`);
	const message = { id: "m", type: "message", role: "assistant", content: [], model: "c1", stop_reason: null };
	send("message_start", { message: { ...message, usage: begun } });
	send("content_block_start", { index: 0, content_block: { type: "text", text: "" } });
	send("content_block_delta", { index: 0, delta: { type: "text_delta", text: "Bonjour" } });
	send("content_block_stop", { index: 0 });
	send("message_delta", { delta: { stop_reason: "end_turn" }, ...(ended && { usage: ended }) });
	send("message_stop", {});
	response.end();
}

/** A picture of one pixel. */
export const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const USUAL: Readonly<Record<string, Answer>> = {
	"/v1/models": (_, response) => json(response, { data: [{ id: "m1" }, { id: "m2" }] }),
	"/v1/chat/completions": (_, response) =>
		chat(response, ["Hel", "lo ", "there"], { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }),
	"/v1/messages": (_, response) => messages(response, { input_tokens: 5, output_tokens: 0 }, { output_tokens: 2 }),
	"/v1/audio/speech": (_, response) => {
		response.writeHead(200, { "content-type": "audio/mpeg" });
		response.write(Buffer.from("first"));
		response.end(Buffer.from("second"));
	},
	"/v1/images/generations": (_, response) => json(response, { data: [{ b64_json: PIXEL }] }),
	"/v1/embeddings": ({ body }, response) => {
		const { input } = JSON.parse(body.toString()) as { input: string[] };
		const data = input.map((text, index) => ({ index, embedding: [text.length, 1] })).toReversed();
		json(response, { data, usage: { prompt_tokens: 4 } });
	},
	"/v1/audio/transcriptions": (_, response) => json(response, { text: "what was said" }),
};

export async function fakeProvider(): Promise<FakeProvider> {
	const seen: Seen[] = [];
	const closed: string[] = [];
	const answers = new Map(Object.entries(USUAL));
	const url = await serving((request, response) => {
		response.on("close", () => response.writableFinished || closed.push(request.url ?? ""));
		void received(request).then((one) => {
			seen.push(one);
			const answer = answers.get(one.path);
			if (answer) answer(one, response);
			else json(response, { error: { message: "not here" } }, 404);
		});
	});
	return { url, seen, closed, on: (path, answer) => void answers.set(path, answer) };
}

async function received(request: IncomingMessage): Promise<Seen> {
	const chunks: Buffer[] = [];
	for await (const part of request) chunks.push(part as Buffer);
	const { method = "", url = "", headers } = request;
	return { method, path: url.split("?")[0]!, headers, body: Buffer.concat(chunks) };
}

export const refuse =
	(status: number, message: string): Answer =>
	(_, response) =>
		json(response, { error: { message } }, status);
