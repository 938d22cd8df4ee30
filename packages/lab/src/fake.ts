/** Shared by all fake platforms: real servers that enforce the platform's rules, keep what a person would see, and fail on demand. */

import type { Clock } from "@nexus-stream/protocol/clock";

export interface FakeFault {
	/**
	 * `429`: refused, with the platform's own way to say how long. `5xx`: an error, nothing happened. `hang`: no answer. `reset_before`: the connection
	 * breaks and nothing happened. `reset_after_accept`: it happened, then the connection breaks. `foreign`: it happened, and something on the way
	 * answers in the platform's place. `gateway`: the same, and nothing happened. `slow`: the answer takes `ms`. `watched`: `watch` hears of it as it happens.
	 */
	kind: "429" | "5xx" | "hang" | "reset_before" | "reset_after_accept" | "foreign" | "gateway" | "slow" | "watched";
	/** Either the next `count` calls … */
	count?: number;
	/** … or each call with this probability, drawn from `seed`, until `fault(undefined)`. */
	probability?: number;
	seed?: number;
	/** Only calls whose name contains or fits this. */
	call?: string | RegExp;
	/** How long a `slow` answer or a refusal takes. */
	ms?: number;
	/** The response of a `foreign` or `gateway` fault; else a gateway's 502. Strings are sent as HTML, objects as JSON. */
	answer?: { status: number; body?: string | object; headers?: Record<string, string> };
	watch?: CallWatch;
}

/** For tests that kill the caller at a certain point of a call. */
export interface CallWatch {
	/** Before anything has come of it; `lost`: nothing does, and there is no answer. */
	arrived(call: string): "lost" | undefined;
	/** The answer is out. */
	answered(call: string): void;
}

export interface FakeCall {
	name: string;
	/** Milliseconds since the fake began, by the caller's clock. */
	at: number;
	to: string;
	/** 0 = no answer. */
	status: number;
	/** How long the caller waited, once the answer is out or the caller is gone. */
	ms?: number;
	fault?: FakeFault["kind"];
	body: unknown;
}

export interface Fake {
	/** Where an account's `api_url` (or the like) points. */
	readonly url: string;
	readonly settings: Record<string, string>;
	/** The current text of the messages in a chat, in order, as a person reads them. */
	visible(to: string): string[];
	/** The messages as the platform stores them. */
	raw(to: string): unknown[];
	/** When it started, by its clock. */
	readonly begun: number;
	readonly calls: readonly FakeCall[];
	/** Undefined ends all misbehaviour. */
	fault(fault: FakeFault | undefined): void;
	/** Labels of the buttons below each message of `visible`; absent where a platform has none. */
	buttons?(to: string): string[][];
	/** A person presses a button below the n-th message, counted from 0. Resolves when the platform has its answer, with what only that person reads. */
	press?(to: string, nth: number, label: string, from?: string): Promise<string | undefined>;
	inject(message: { text: string; from?: string; to?: string; [extra: string]: unknown }): Promise<void> | void;
	close(): Promise<void>;
}

export interface FakeOptions {
	/** The platform's clock. Rate limits use the caller's time. */
	clock?: Clock;
}

/** Decides per call whether it misbehaves: the same seed gives the same decisions. */
export function createFaults(): { set(fault: FakeFault | undefined): void; next(call: string): FakeFault | undefined } {
	let active: FakeFault[] = [];
	let random = seeded(1);
	return {
		set(fault) {
			active = fault ? [...active, { ...fault }] : [];
			if (fault?.seed !== undefined) random = seeded(fault.seed);
		},
		next(call) {
			for (const fault of active) {
				if (!fits(call, fault.call)) continue;
				if (fault.count !== undefined) {
					if (fault.count <= 0) continue;
					fault.count--;
					return fault;
				}
				if (random() < (fault.probability ?? 1)) return fault;
			}
			return undefined;
		},
	};
}

const fits = (call: string, wanted: FakeFault["call"]): boolean =>
	wanted === undefined || (typeof wanted === "string" ? call.includes(wanted) : wanted.test(call));

/** Numbers in [0, 1) from a seed (mulberry32). */
export function seeded(seed: number): () => number {
	let state = seed >>> 0;
	return () => {
		state = (state + 0x6d2b79f5) >>> 0;
		let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
		mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
	};
}
