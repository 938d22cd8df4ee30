/** Follows one stream of frames over HTTP: owns the socket and the timers, leaves every decision to `link.ts`. */

import { createParser, type EventSourceMessage } from "eventsource-parser";
import { decodeFrame, type Frame } from "../protocol/protocol.ts";
import { LINK_LIMITS, type LinkInput, type LinkLimits, type LinkState, newLink, nextTickAt, stepLink } from "./link.ts";

export interface StreamRecord {
	readonly offset: number;
	readonly frame: Frame;
}

export interface StreamClientOptions {
	/** The address without `after`. */
	url: string;
	after: number;
	/** A run's stream is over after its final end; a session's never is. */
	endsWithRun: boolean;
	/** The records of one network read, in order, each exactly once. */
	onRecords(records: readonly StreamRecord[]): void;
	onState(state: LinkState): void;
	fetch?: typeof fetch;
	limits?: LinkLimits;
}

export interface StreamClient {
	readonly state: LinkState;
	send(input: Extract<LinkInput, { type: "hurry" | "pause" | "resume" | "stop" }>): void;
}

export function openStream(options: StreamClientOptions): StreamClient {
	const { limits = LINK_LIMITS, fetch: get = fetch } = options;
	let state = newLink(options.after);
	let timer: ReturnType<typeof setTimeout> | undefined;
	let connection: AbortController | undefined;
	let batch: StreamRecord[] = [];

	/** True when the record just offered was taken. */
	function apply(input: LinkInput): boolean {
		const before = state.phase;
		const { state: next, effects } = stepLink(state, input, performance.now(), Math.random, limits);
		state = next;
		let taken = false;
		for (const effect of effects) {
			if (effect.type === "take") taken = true;
			else if (effect.type === "disconnect") disconnect();
			else connect(effect.after);
		}
		if (before !== state.phase) options.onState(state);
		if (before !== state.phase || !timer) setTimer();
		return taken;
	}

	function setTimer(): void {
		clearTimeout(timer);
		const at = nextTickAt(state, limits);
		timer = at === undefined ? undefined : setTimeout(onTimer, Math.max(0, at - performance.now()));
	}

	function onTimer(): void {
		timer = undefined;
		apply({ type: "tick" });
	}

	function disconnect(): void {
		connection?.abort();
		connection = undefined;
	}

	function connect(after: number): void {
		disconnect();
		const own = new AbortController();
		connection = own;
		const isCurrent = () => connection === own;
		read(after, own.signal, isCurrent).then(
			(input) => isCurrent() && apply(input),
			(cause: unknown) => {
				if (!isCurrent()) return;
				console.info("nexus: stream lost:", cause instanceof Error ? cause.message : cause);
				apply({ type: "lost" });
			},
		);
	}

	/** Reads until the connection ends and says how. */
	async function read(after: number, signal: AbortSignal, isCurrent: () => boolean): Promise<LinkInput> {
		const joint = options.url.includes("?") ? "&" : "?";
		const response = await get(`${options.url}${joint}after=${after}`, {
			signal,
			headers: { accept: "text/event-stream" },
			cache: "no-store",
			credentials: "same-origin",
		});
		if (!isCurrent()) return { type: "lost" };
		if (response.status === 204) return { type: "nothing-more" };
		if (!response.ok || !response.body) return { type: "refused", status: response.status };
		apply({ type: "opened" });
		const reader = response.body.getReader();
		const decoder = new TextDecoder();
		const parser = createParser({
			// One read may hold events behind the one for which this connection was given up.
			onEvent: (message) => isCurrent() && offer(message),
			onComment: () => isCurrent() && apply({ type: "heartbeat" }),
		});
		for (;;) {
			const { done, value } = await reader.read();
			if (done || !isCurrent()) return { type: "lost" };
			parser.feed(decoder.decode(value, { stream: true }));
			deliver();
		}
	}

	function offer(message: EventSourceMessage): void {
		const offset = Number(message.id);
		if (message.id === undefined || !Number.isSafeInteger(offset) || !message.event?.startsWith("stream.")) return;
		const frame = decode(message.data);
		const final = options.endsWithRun && frame?.type === "stream.end" && frame.final;
		if (apply({ type: "record", id: offset, final }) && frame) batch.push({ offset, frame });
	}

	function deliver(): void {
		if (batch.length === 0) return;
		const records = batch;
		batch = [];
		options.onRecords(records);
	}

	apply({ type: "start" });
	return {
		get state() {
			return state;
		},
		send: (input) => void apply(input),
	};
}

/** A record that is no frame cannot be shown; asking for it again would not help. The verifier will report the hole. */
function decode(text: string): Frame | undefined {
	try {
		return decodeFrame(text);
	} catch (cause) {
		console.error("nexus: a record is no frame:", cause);
		return undefined;
	}
}
