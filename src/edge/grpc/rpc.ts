/** What every remote procedure uses: who calls, and how a log or a feed becomes the messages of a stream. */

import { Code, ConnectError, createContextKey, type HandlerContext } from "@connectrpc/connect";
import { type Batch, type Cursor, follow } from "../../bus/bus.ts";
import type { CloseMode } from "../../protocol/protocol.ts";
import type { Principal, Services } from "../../services/services.ts";
import type { EdgeDeps, EdgeLimits } from "../port.ts";

export interface RpcDeps {
	deps: EdgeDeps;
	services: Services;
	limits: EdgeLimits;
}

/** Set by the interceptor that checks the token, before any method runs. */
export const PRINCIPAL = createContextKey<Principal | undefined>(undefined);

export function principalOf({ values }: HandlerContext): Principal {
	const principal = values.get(PRINCIPAL);
	if (!principal) throw new ConnectError("send `authorization: Bearer <token>`", Code.Unauthenticated);
	return principal;
}

export interface LogStream<Message> {
	cursor: Cursor;
	/** What the records of a batch become; none is allowed. */
	messages(batch: Batch): readonly Message[];
	closes: CloseMode;
	/** What follows the last record of a log that has ended. */
	end?(): readonly Message[];
}

/** Serves a log. A cut is an error, never a clean end: the reader's signal says why. */
export async function* logStream<Message>(
	{ signal }: HandlerContext,
	{ cursor, messages, end }: LogStream<Message>,
): AsyncIterable<Message> {
	for await (const batch of follow(cursor, signal)) yield* messages(batch);
	if (signal.aborted) throw signal.reason;
	if (end) yield* end();
}

export interface FeedStream<State, Message> {
	/** What is so now. */
	current(): readonly State[];
	/** Called with every change from now on; returns how to stop it. */
	subscribe(listener: (state: State) => void): () => void;
	/** Of what it is the state: a reader that is behind gets the newest of each. */
	key(state: State): string;
	message(state: State, sequence: bigint): Message;
}

/** Serves a state feed: what is so now, then what changes. It never ends by itself. */
export async function* feedStream<State, Message>(
	{ signal }: HandlerContext,
	{ current, subscribe, key, message }: FeedStream<State, Message>,
): AsyncIterable<Message> {
	const waiting = new Map<string, State>();
	let wake = () => {};
	const take = (state: State) => {
		waiting.delete(key(state));
		waiting.set(key(state), state);
		wake();
	};
	const onAbort = () => wake();
	const stop = subscribe(take);
	signal.addEventListener("abort", onAbort, { once: true });
	let sequence = 0n;
	try {
		for (const state of current()) take(state);
		while (!signal.aborted) {
			for (const [name, state] of waiting) {
				waiting.delete(name);
				yield message(state, ++sequence);
				if (signal.aborted) break;
			}
			if (waiting.size === 0 && !signal.aborted) await new Promise<void>((resolve) => (wake = resolve));
		}
		throw signal.reason;
	} finally {
		signal.removeEventListener("abort", onAbort);
		stop();
	}
}
