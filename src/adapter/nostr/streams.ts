/** Answers being written, shown in public threads while they grow: the publisher's steps with their timers, and which tool runs. */

import type { EventTemplate } from "nostr-tools/core";
import type { Clock } from "../../std/clock.ts";
import type { SendOptions, Target } from "../kit/kit.ts";
import { streamEvent, typingEvent } from "./events.ts";
import {
	EMPTY_PUBLISHER,
	type PublisherInput,
	type PublisherLimits,
	type PublisherState,
	stepPublisher,
} from "./publisher.ts";
import { toolText } from "./tool-sign.ts";

interface Stream {
	target: Target;
	name: string;
	state: PublisherState;
	cancel(): void;
	tools: SendOptions["tools"];
}

const STREAMS_MAX = 500;

export class Streams {
	private readonly clock: Clock;
	private readonly pass: (event: EventTemplate) => void;
	private readonly limits: PublisherLimits;
	private readonly open = new Map<string, Stream>();
	/** Which tool runs, by thread. */
	private readonly running = new Map<string, string>();
	/** When typing may be published again, by thread. */
	private readonly typedAt = new Map<string, number>();

	constructor(clock: Clock, limits: PublisherLimits, pass: (event: EventTemplate) => void) {
		this.clock = clock;
		this.limits = limits;
		this.pass = pass;
	}

	/** The text so far. */
	show(target: Target, draftId: number, text: string, { facts, tools = [] }: SendOptions): void {
		const key = keyOf(target, facts);
		const stream = this.open.get(key) ?? this.begin(key, target, String(draftId));
		const toolsChanged = stream.tools !== tools && (tools.length > 0 || (stream.tools ?? []).length > 0);
		stream.tools = tools;
		this.step(stream, { type: "text", text });
		if (!toolsChanged) return;
		this.step(stream, { type: "flush" });
		const now = tools.findLast(({ status }) => status === "started" || status === "progress");
		this.runs(key, target, now === undefined ? "" : toolText(now.name));
	}

	/** The answer's message is complete: what is not out yet is published now, before the message itself. */
	end(target: Target, text: string, { facts }: SendOptions): void {
		const key = keyOf(target, facts);
		const stream = this.open.get(key);
		this.running.delete(target.to);
		if (!stream) return;
		this.open.delete(key);
		this.step(stream, { type: "end", text });
	}

	typing(target: Target, on: boolean): void {
		this.typedAt.set(target.to, this.clock.now());
		if (!on) this.running.delete(target.to);
		this.pass(typingEvent(target, on, this.running.get(target.to) ?? "", this.seconds()));
		for (const to of this.typedAt.keys()) {
			if (this.typedAt.size <= STREAMS_MAX) break;
			this.typedAt.delete(to);
		}
	}

	close(): void {
		for (const stream of this.open.values()) stream.cancel();
		this.open.clear();
	}

	private begin(key: string, target: Target, name: string): Stream {
		const stream: Stream = { target, name, state: EMPTY_PUBLISHER, cancel: () => {}, tools: undefined };
		this.open.set(key, stream);
		// One whose delivery was given up is never ended.
		const [oldest] = this.open;
		if (oldest && this.open.size > STREAMS_MAX) {
			oldest[1].cancel();
			this.open.delete(oldest[0]);
		}
		return stream;
	}

	private step(stream: Stream, input: PublisherInput): void {
		stream.cancel();
		const now = this.clock.now();
		const { state, effects } = stepPublisher(stream.state, input, now, this.limits);
		stream.state = state;
		for (const effect of effects) {
			if (effect.type === "publish") this.pass(streamEvent(stream.target, stream.name, effect, this.seconds()));
			else stream.cancel = this.clock.after(effect.at - now, () => this.step(stream, { type: "tick" }));
		}
	}

	/** Tools that follow each other quickly are not all shown: the one that runs after the gap is. */
	private runs(key: string, target: Target, tool: string): void {
		const shown = () => this.running.get(target.to) ?? "";
		if (tool === shown()) return;
		if (tool === "") this.running.delete(target.to);
		else this.running.set(target.to, tool);
		const waitMs = (this.typedAt.get(target.to) ?? 0) + this.limits.gapMs - this.clock.now();
		const tell = () => {
			// The answer may be over by then, or another tool has begun.
			if (this.open.has(key) && shown() === tool) this.typing(target, true);
		};
		if (waitMs <= 0) tell();
		else this.clock.after(waitMs, tell);
	}

	private readonly seconds = (): number => Math.floor(this.clock.now() / 1000);
}

const keyOf = ({ to }: Target, facts: SendOptions["facts"]): string => `${facts?.runId ?? ""} ${to}`;
