/** Answers being written, shown in public threads while they grow: the publisher's steps with their timers, and which tool runs. */

import type { SendOptions, Target } from "@nexus-stream/adapter";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { EventTemplate } from "nostr-tools/core";
import { streamEvent, typingEvent } from "./events.ts";
import { EMPTY_PUBLISHER, type PublisherInput, type PublisherLimits, stepPublisher } from "./publisher.ts";

interface NostrStream {
	target: Target;
	name: string;
	state: typeof EMPTY_PUBLISHER;
	cancel(): void;
	tools: SendOptions["tools"];
}

const STREAMS_MAX = 500;

export class NostrStreams {
	readonly #clock: Clock;
	readonly #pass: (event: EventTemplate) => void;
	readonly #limits: PublisherLimits;
	readonly #open = new Map<string, NostrStream>();
	/** By thread: when typing was last published, and how to cancel what waits for the gap. */
	readonly #typed = new Map<string, { at: number; cancel(): void }>();

	constructor(clock: Clock, limits: PublisherLimits, pass: (event: EventTemplate) => void) {
		this.#clock = clock;
		this.#limits = limits;
		this.#pass = pass;
	}

	show(target: Target, draftId: number, text: string, { facts, tools = [] }: SendOptions): void {
		const key = keyOf(target, facts);
		const stream = this.#open.get(key) ?? this.#begin(key, target, String(draftId));
		const toolsChanged = stream.tools !== tools && (tools.length > 0 || (stream.tools ?? []).length > 0);
		stream.tools = tools;
		this.#step(stream, { type: "text", text });
		if (toolsChanged) this.#step(stream, { type: "flush" });
	}

	/** The answer's message is complete: what is not out yet is published now, before the message itself. */
	end(target: Target, text: string, { facts }: SendOptions): void {
		const key = keyOf(target, facts);
		const stream = this.#open.get(key);
		if (!stream) return;
		this.#open.delete(key);
		this.#step(stream, { type: "end", text });
	}

	/** Tools that follow each other quickly are not all shown: the one that runs after the gap is. */
	typing(target: Target, on: boolean, tool: string): void {
		const { to } = target;
		const before = this.#typed.get(to);
		before?.cancel();
		const waitMs = (before?.at ?? 0) + this.#limits.gapMs - this.#clock.now();
		const tell = () => {
			this.#typed.set(to, { at: this.#clock.now(), cancel: () => {} });
			this.#pass(typingEvent(target, on, tool === "" ? "" : toolText(tool), this.#seconds()));
		};
		if (!before || !on || waitMs <= 0) tell();
		else this.#typed.set(to, { at: before.at, cancel: this.#clock.after(waitMs, tell) });
		for (const [oldest, { cancel }] of this.#typed) {
			if (this.#typed.size <= STREAMS_MAX) break;
			cancel();
			this.#typed.delete(oldest);
		}
	}

	close(): void {
		for (const { cancel } of [...this.#open.values(), ...this.#typed.values()]) cancel();
		this.#open.clear();
		this.#typed.clear();
	}

	#begin(key: string, target: Target, name: string): NostrStream {
		const stream: NostrStream = { target, name, state: EMPTY_PUBLISHER, cancel: () => {}, tools: undefined };
		this.#open.set(key, stream);
		// One whose delivery was given up is never ended.
		const [oldest] = this.#open;
		if (oldest && this.#open.size > STREAMS_MAX) {
			oldest[1].cancel();
			this.#open.delete(oldest[0]);
		}
		return stream;
	}

	#step(stream: NostrStream, input: PublisherInput): void {
		stream.cancel();
		const now = this.#clock.now();
		const { state, effects } = stepPublisher(stream.state, input, now, this.#limits);
		stream.state = state;
		for (const effect of effects) {
			if (effect.type === "publish") this.#pass(streamEvent(stream.target, stream.name, effect, this.#seconds()));
			else stream.cancel = this.#clock.after(effect.at - now, () => this.#step(stream, { type: "tick" }));
		}
	}

	readonly #seconds = (): number => Math.floor(this.#clock.now() / 1000);
}

const keyOf = ({ to }: Target, facts: SendOptions["facts"]): string => `${facts?.runId ?? ""} ${to}`;

const NAME_CHARS_MAX = 60;

const SIGNS: readonly (readonly [RegExp, string])[] = [
	[/^(?:read|view|cat)(?:_|$)/, "📖"],
	[/^(?:edit|write)(?:_|$)/, "✏️"],
	[/^git(?:_|$)/, "🔧"],
	[/^(?:bash|shell)(?:_|$)/, "🖥️"],
];

/** The sign and the name of a tool; strangers never see its arguments. */
export function toolText(name: string): string {
	const [, server, action] = /^mcp__(.+?)__(.+)$/.exec(name) ?? [];
	if (server !== undefined && action !== undefined) return `🔌 ${plain(`${server}: ${action.replaceAll("_", " ")}`)}`;
	const sign = SIGNS.find(([pattern]) => pattern.test(name))?.[1] ?? "🛠️";
	return `${sign} ${plain(name)}`;
}

const plain = (text: string): string => text.replace(/\s+/g, " ").trim().slice(0, NAME_CHARS_MAX).toWellFormed();
