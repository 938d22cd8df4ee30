/** The door for implementations of remote procedures: who calls, pages, and how a log or a feed becomes the messages of a stream. */

import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import { isIdOf, NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Principal } from "../port.ts";
import type { Flusher } from "../stream/stream.ts";
import { type OpenStream, Outlet, type OutletStream } from "./fast-stream/fast-stream.ts";

export { EncodedCache, upTo } from "../stream/stream.ts";
export { filtered, type OutletStream, opening } from "./fast-stream/fast-stream.ts";

/** Set before any method runs. Without a principal only those are called that need no token. */
export const PRINCIPAL = createContextKey<Principal | undefined>(undefined);

/** A method as its feature wrote it. */
export type Implementation = (request: object, context: HandlerContext) => Promise<object> | AsyncIterable<object>;

/** The parts that serve the stream of a call. */
export interface Serving {
	flusher: Flusher;
	clock: Clock;
	stream: OpenStream;
}

export const SERVING = createContextKey<Serving | undefined>(undefined);

export function principalOf({ values }: HandlerContext): Principal {
	const principal = values.get(PRINCIPAL);
	if (!principal) throw new NexusError("unauthenticated", "send `authorization: Bearer <token>`");
	return principal;
}

function servingOf({ values }: HandlerContext): Serving {
	const serving = values.get(SERVING);
	if (!serving) throw new Error("a stream outside of a streaming call");
	return serving;
}

/** Where a log's stream begins: a client that asked for "from now on" and is cut before the first message resumes there. */
export const BEGINS_HEADER = "x-nexus-after";

/** Serves a log, by the pump that serves it over HTTP. A cut is an error, never a clean end. */
export function logStream<Message>(context: HandlerContext, stream: OutletStream<Message>): AsyncIterable<Message> {
	context.responseHeader.set(BEGINS_HEADER, String(stream.cursor.offset));
	return new Outlet(servingOf(context), stream, context.signal);
}

export interface Feed<State> {
	/** The current states. */
	current(): readonly State[];
	/** Called with every change from now on; returns how to stop it. */
	subscribe(listener: (state: State) => void): () => void;
	/** Identifies the thing whose state it is. */
	key(state: State): string;
}

/** States that one reader has not received yet, by key. */
function backlogOf<State>({ current, subscribe, key }: Feed<State>, grown: () => void) {
	const waiting = new Map<string, State>();
	const take = (state: State) => {
		// Moves the key to the end, so that changes arrive in order.
		waiting.delete(key(state));
		waiting.set(key(state), state);
		grown();
	};
	const stop = subscribe(take);
	for (const state of current()) take(state);
	return { waiting, stop };
}

export interface FeedStream<State, Message> extends Feed<State> {
	message(state: State, sequence: bigint): Message;
}

/** Serves a state feed: what is so now, then what changes. It never ends by itself. */
export async function* feedStream<State, Message>(
	context: HandlerContext,
	{ message, ...feed }: FeedStream<State, Message>,
): AsyncIterable<Message> {
	const { signal } = context;
	const { stream } = servingOf(context);
	let wake = () => {};
	const onAbort = () => wake();
	const { waiting, stop } = backlogOf(feed, () => wake());
	signal.addEventListener("abort", onAbort, { once: true });
	let sequence = 0n;
	try {
		while (!signal.aborted) {
			for (const [name, state] of waiting) {
				waiting.delete(name);
				yield message(state, ++sequence);
				if (signal.aborted) break;
			}
			if (waiting.size > 0 || signal.aborted) continue;
			stream.establish();
			await new Promise<void>((resolve) => (wake = resolve));
		}
		throw signal.reason;
	} finally {
		signal.removeEventListener("abort", onAbort);
		stop();
	}
}

const PAGE_SIZE_DEFAULT = 50;

/** 0 is "not said". */
export function pageSizeOf(size: number, most: number, field = "page_size"): number {
	if (size < 0) throw new NexusError("invalid", `${field}: a page has one item or more`);
	return Math.min(size === 0 ? PAGE_SIZE_DEFAULT : size, most);
}

/** Takes a `next_page_token`, which is the id of the last item; an empty one begins at the newest. */
export function pageTokenOf(token: string, prefix: string): { before?: string } {
	if (token === "") return {};
	if (isIdOf(prefix, token)) return { before: token };
	throw new NexusError("invalid", "page_token: take next_page_token as the page before gave it");
}

/** A sequence number that a stream or a list gave out. */
export function sequenceNumberOf(sequence: bigint): number {
	if (sequence <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(sequence);
	throw new NexusError("invalid", `${sequence} is larger than any sequence`);
}

/** As over HTTP: it is kept with what was cancelled. */
const REASON_CHARS_MAX = 1000;

export function checkedReason(reason: string): string {
	if (reason.length <= REASON_CHARS_MAX) return reason;
	throw new NexusError("invalid", `reason: at most ${REASON_CHARS_MAX} characters`);
}

/** Where a reader begins; undefined: where the stream begins for one that does not say (Z3). */
export const afterOf = (after: bigint | undefined): number | undefined =>
	after === undefined ? undefined : sequenceNumberOf(after);
