/** Follows one stream of frames over HTTP: owns the connection and the timers, leaves every decision to `link.ts`. */

import {
	type CloseMode,
	decodeFrame,
	type Frame,
	NexusError,
	STREAM_ENDPOINTS,
	toNexusError,
} from "@nexus-stream/protocol";
import { type Clock, steady, systemClock } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import { createParser, type EventSourceMessage } from "eventsource-parser";
import { pathOf, queryOf } from "./api.ts";
import { type Http, textOf } from "./http.ts";
import { LINK_LIMITS, type LinkInput, type LinkLimits, type LinkState, newLink, nextTickAt, stepLink } from "./link.ts";

export type Source = { run: string } | { session: string };

export interface FrameRecord {
	readonly offset: number;
	readonly frame: Frame;
}

export interface StreamRecord extends FrameRecord {
	/** The frame as it was sent: one line of JSON. */
	readonly text: string;
}

/** A callback that throws or rejects stops the stream: phase `stopped`, with the failure as the state's error. */
export interface StreamOptions {
	/** Follow strictly after this offset; without it a run from its beginning, a session from the earliest record that is kept. */
	after?: number;
	/** The records of one network read, in order, each exactly once. While a returned promise is pending, nothing more is read. */
	onRecords(records: readonly StreamRecord[]): void | Promise<void>;
	/** Called after the records that led to the state. */
	onState?(state: LinkState): void;
	/** A record that is not a frame. It is left out: asking again would not help, and the verifier will report the hole. */
	onDamage?(error: NexusError): void;
	limits?: Partial<LinkLimits>;
	clock?: Clock;
	random?(): number;
}

export interface Stream {
	readonly state: LinkState;
	send(input: Extract<LinkInput, { type: "hurry" | "pause" | "resume" | "stop" }>): void;
}

/** Where a source is streamed, and how that stream closes. */
const pathOfStream = (source: Source): string =>
	"run" in source ? pathOf("runs", source.run, "stream") : pathOf("sessions", source.session, "stream");

export const closeModeOf = (source: Source): CloseMode =>
	STREAM_ENDPOINTS["run" in source ? "GET /v1/runs/{run}/stream" : "GET /v1/sessions/{session}/stream"].closes;

export function openStream(http: Pick<Http, "request">, source: Source, options: StreamOptions): Stream {
	const connection = new StreamConnection(http, source, options);
	connection.apply({ type: "start" });
	return {
		get state() {
			return connection.state;
		},
		send: (input) => connection.apply(input),
	};
}

class StreamConnection {
	state: LinkState;
	readonly #http: Pick<Http, "request">;
	readonly #path: string;
	readonly #endsWithRun: boolean;
	readonly #options: StreamOptions;
	readonly #limits: LinkLimits;
	readonly #clock: Clock;
	readonly #random: () => number;
	#current: AbortController | undefined;
	#cancelTimer: (() => void) | undefined;
	#records: StreamRecord[] = [];
	/** The pending result of `onRecords`. Never rejects. */
	#pending: Promise<unknown> | undefined;
	#reportedPhase: LinkState["phase"] = "stopped";
	/** The consumer still handles the last records; the pause does not count as silence of the server. */
	#isHeld = false;

	constructor(http: Pick<Http, "request">, source: Source, options: StreamOptions) {
		this.#http = http;
		this.#path = pathOfStream(source);
		this.#endsWithRun = closeModeOf(source) === "A";
		this.#options = options;
		this.#limits = withDefaults(LINK_LIMITS, options.limits);
		this.#clock = steady(options.clock ?? systemClock);
		this.#random = options.random ?? Math.random;
		this.state = newLink(options.after ?? ("run" in source ? 0 : undefined));
	}

	apply(input: LinkInput): void {
		this.#step(input);
		this.#tell();
	}

	/** True when the record just offered was taken. */
	#step(input: LinkInput): boolean {
		const before = this.state.phase;
		const { state, effects } = stepLink(this.state, input, this.#clock.now(), this.#random, this.#limits);
		this.state = state;
		let taken = false;
		for (const effect of effects) {
			if (effect.type === "take") taken = true;
			else if (effect.type === "disconnect") this.#disconnect();
			else this.#connect(effect.after);
		}
		if (before !== state.phase || !this.#cancelTimer) this.#setTimer();
		return taken;
	}

	/** Hands over what was read, then says what the connection has come to. */
	#tell(): void {
		const records = this.#records;
		this.#records = [];
		if (records.length > 0) this.#call(() => this.#options.onRecords(records));
		if (this.#reportedPhase === this.state.phase) return;
		this.#reportedPhase = this.state.phase;
		this.#call(() => {
			this.#options.onState?.(this.state);
		});
	}

	/** A callback's failure is not the connection's: what it did not take is not asked for again. */
	#call(callback: () => void | Promise<void>): void {
		const fail = (cause: unknown) => this.apply({ type: "failed", error: toNexusError(cause) });
		try {
			const taken = callback();
			if (taken) this.#pending = Promise.all([this.#pending, taken]).catch(fail);
		} catch (cause) {
			fail(cause);
		}
	}

	#setTimer(): void {
		this.#cancelTimer?.();
		this.#cancelTimer = undefined;
		const at = this.#isHeld ? undefined : nextTickAt(this.state, this.#limits);
		if (at === undefined) return;
		this.#cancelTimer = this.#clock.after(
			Math.max(0, at - this.#clock.now()),
			() => {
				this.#cancelTimer = undefined;
				this.apply({ type: "tick" });
			},
			"due",
		);
	}

	#disconnect(): void {
		this.#current?.abort();
		this.#current = undefined;
		this.#isHeld = false;
	}

	#connect(after: number | undefined): void {
		this.#disconnect();
		const own = new AbortController();
		this.#current = own;
		this.#read(after, own).then(
			(input) => this.#current === own && this.apply(input),
			(cause: unknown) => this.#current === own && this.apply({ type: "lost", error: toNexusError(cause) }),
		);
	}

	/** Reads until the connection ends and says how. */
	async #read(after: number | undefined, own: AbortController): Promise<LinkInput> {
		const isCurrent = () => this.#current === own;
		let response: Response;
		try {
			response = await this.#http.request("GET", this.#path + queryOf({ after }), {
				accept: "text/event-stream",
				signal: own.signal,
			});
		} catch (cause) {
			return { type: "refused", error: toNexusError(cause) };
		}
		if (response.status === 204) return { type: "nothing-more" };
		if (isCurrent()) this.apply({ type: "opened" });
		const parser = createParser({
			// One read may hold events behind the one for which this connection was given up.
			onEvent: (message) => isCurrent() && this.#offer(message),
			onComment: () => isCurrent() && this.#step({ type: "heartbeat" }),
		});
		for await (const text of textOf(response)) {
			if (!isCurrent()) break;
			// A large record may take longer than the silence that is allowed.
			this.#step({ type: "heard" });
			parser.feed(text);
			this.#tell();
			if (this.#pending) await this.#hold(this.#pending, isCurrent);
		}
		return { type: "lost", error: new NexusError("unavailable", "the connection was closed") };
	}

	async #hold(pending: Promise<unknown>, isCurrent: () => boolean): Promise<void> {
		this.#pending = undefined;
		if (!isCurrent()) return;
		this.#isHeld = true;
		this.#setTimer();
		await pending;
		if (!isCurrent()) return;
		this.#isHeld = false;
		this.#step({ type: "heartbeat" });
		this.#setTimer();
	}

	#offer(message: EventSourceMessage): void {
		const offset = Number(message.id);
		if (message.id === undefined || !Number.isSafeInteger(offset) || !message.event?.startsWith("stream.")) return;
		let frame: Frame | undefined;
		let damage: NexusError | undefined;
		try {
			frame = decodeFrame(message.data);
		} catch (cause) {
			damage = new NexusError("data_loss", `record ${offset} is not a frame: ${toNexusError(cause).message}`, {
				cause,
			});
		}
		const final = this.#endsWithRun && frame?.type === "stream.end" && frame.final;
		if (!this.#step({ type: "record", id: offset, final })) return;
		if (frame) this.#records.push({ offset, text: message.data, frame });
		if (!damage) return;
		// In its place: what came before it goes first.
		this.#tell();
		this.#call(() => {
			this.#options.onDamage?.(damage);
		});
	}
}
