/** Reads the bodies of requests: how many bytes, how long, and no JSON that would cost more to take apart than it is worth. */

import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { finished } from "node:stream";
import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { RawBody } from "../api/resource.ts";
import type { EdgeLimits } from "../port.ts";
import type { Caller } from "./gate.ts";

export type JsonLimits = Pick<EdgeLimits, "bodyValuesMax" | "bodyDepthMax">;

const utf8 = new TextDecoder();

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OBJECT, ARRAY, OBJECT_END, ARRAY_END] = [0x7b, 0x5b, 0x7d, 0x5d];

/** Throws `invalid` for text that is not JSON, or that has more values or levels than anything that is asked for here. */
export function parseJson(bytes: Uint8Array, limits: JsonLimits): unknown {
	const text = jsonText(bytes, limits);
	try {
		return JSON.parse(text);
	} catch (cause) {
		throw new NexusError("invalid", `body is not JSON: ${(cause as Error).message}`, { cause });
	}
}

/** The text, once it is known to be worth parsing. */
export function jsonText(bytes: Uint8Array, limits: JsonLimits): string {
	// Decoding would put U+FFFD in place of bytes that are not UTF-8: the text would be another one than was sent.
	if (!isUtf8(bytes)) throw new NexusError("invalid", "body is not UTF-8");
	checkStructure(bytes, limits);
	return utf8.decode(bytes);
}

/** Every value but the first follows a comma or opens an object or array, so counting those bounds the values. */
function checkStructure(bytes: Uint8Array, { bodyValuesMax, bodyDepthMax }: JsonLimits): void {
	let values = 1;
	let depth = 0;
	for (let at = 0; at < bytes.length; at++) {
		const byte = bytes[at];
		if (byte === QUOTE) at = endOfString(bytes, at);
		else if (byte === COMMA) values++;
		else if (byte === OBJECT || byte === ARRAY) {
			values++;
			depth++;
		} else if (byte === OBJECT_END || byte === ARRAY_END) depth--;
		if (depth > bodyDepthMax) throw new NexusError("invalid", `body is nested deeper than ${bodyDepthMax} levels`);
		if (values > bodyValuesMax) throw new NexusError("invalid", `body has more than ${bodyValuesMax} values`);
	}
}

/** Where its closing quote is, or the end of what was sent. */
function endOfString(bytes: Uint8Array, from: number): number {
	for (let at = bytes.indexOf(QUOTE, from + 1); at !== -1; at = bytes.indexOf(QUOTE, at + 1)) {
		let slashes = 0;
		while (bytes[at - 1 - slashes] === BACKSLASH) slashes++;
		if (slashes % 2 === 0) return at;
	}
	return bytes.length;
}

export const jsonReader =
	(limits: EdgeLimits, clock: Clock) =>
	async (request: Request, incoming: IncomingMessage, { proof }: Caller): Promise<unknown> => {
		// A foreign page can post a form without asking first, but it cannot name a bearer: those callers need not say the type.
		const declared = /^application\/json\s*(;|$)/i.test(request.headers.get("content-type") ?? "");
		if (!declared && !request.headers.has("authorization")) {
			throw new NexusError("invalid", "send the body as JSON with `Content-Type: application/json`");
		}
		const bytes = await (proof
			? readBytes(request, incoming, limits.bodyBytesMax)
			: inTime(clock, limits.tokenlessBodyTimeoutMs, (signal) =>
					readBytes(request, incoming, Math.min(limits.tokenlessBodyBytesMax, limits.bodyBytesMax), signal),
				));
		return parseJson(bytes, limits);
	};

/** A declared length is kept by the HTTP parser; an undeclared one is counted here, and reading stops at the limit. */
async function readBytes(
	request: Request,
	incoming: IncomingMessage,
	bytesMax: number,
	signal?: AbortSignal,
): Promise<Buffer> {
	const declared = request.headers.get("content-length");
	if (Number(declared) > bytesMax) throw tooLarge(bytesMax);
	if (declared === null || signal) return collected(incoming, bytesMax, undefined, signal);
	return request.arrayBuffer().then(Buffer.from, (cause: unknown) => {
		throw notWhole(cause);
	});
}

export const rawBody =
	(request: Request, incoming: IncomingMessage): RawBody =>
	async (bytesMax, arrived, signal) => {
		if (Number(request.headers.get("content-length")) > bytesMax) throw tooLarge(bytesMax);
		return collected(incoming, bytesMax, arrived, signal);
	};

/** The rest of a refused body is discarded, but the connection stays open so that the client receives the answer. */
function collected(
	incoming: IncomingMessage,
	bytesMax: number,
	arrived?: (bytes: number) => void,
	signal?: AbortSignal,
): Promise<Buffer> {
	const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
	const parts: Buffer[] = [];
	let bytes = 0;
	const take = (part: Buffer) => {
		bytes += part.length;
		try {
			if (bytes > bytesMax) throw tooLarge(bytesMax);
			arrived?.(part.length);
			parts.push(part);
		} catch (cause) {
			reject(cause as Error);
			stop();
		}
	};
	const late = () => {
		reject(signal?.reason as Error);
		stop();
	};
	const unwatch = finished(incoming, { writable: false }, (cause) => {
		if (cause) reject(notWhole(cause));
		else resolve(Buffer.concat(parts));
		stop();
	});
	const stop = () => {
		incoming.off("data", take);
		signal?.removeEventListener("abort", late);
		unwatch();
	};
	signal?.addEventListener("abort", late, { once: true });
	incoming.on("data", take);
	return promise;
}

const notWhole = (cause: unknown) => new NexusError("invalid", "the body did not arrive whole", { cause });
const tooLarge = (bytesMax: number) => new NexusError("too_large", `the body may have ${bytesMax} bytes at most`);

/** Rejects with `invalid` when a body does not arrive in time. */
export async function inTime<T>(clock: Clock, ms: number, read: (signal: AbortSignal) => Promise<T>): Promise<T> {
	const late = new AbortController();
	const error = new NexusError("invalid", `the body did not arrive within ${ms} ms`);
	const cancel = clock.after(ms, () => late.abort(error));
	try {
		return await read(late.signal);
	} finally {
		cancel();
	}
}
