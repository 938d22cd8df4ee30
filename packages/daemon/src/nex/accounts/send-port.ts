/** The `send` process of an account: one line per message and one answer per line, even when the process dies before it answers. */

import {
	type Activity,
	type PlatformFault,
	SEND_SHAPES,
	type SendLine,
	type SendStatus,
	type Target,
} from "@nexus-stream/adapter/host";
import { createKeyedQueue } from "@nexus-stream/protocol/keyed-queue";
import { watchAnswer } from "./answer-watch.ts";
import type { LineProcess } from "./line-process.ts";
import { type ProcessStatus, ProcessSupervisor, type ProcessSupervisorOptions } from "./process-supervisor.ts";

export type SendAnswer =
	| { type: "sent"; messageId: string }
	| { type: "refused"; error: string; code?: PlatformFault; retryAfterMs?: number }
	| { type: "found"; known: boolean; messageId?: string }
	/** The process died or stopped answering: the outcome is unknown. */
	| { type: "lost"; error: string };

export type SendRequest = Exclude<SendLine, { type: "typing" }>;

export interface SendPortOptions extends Omit<ProcessSupervisorOptions, "lines" | "lost" | "shapes"> {
	/** The adapter knows only the basic fields: each line gets its own process, whose input ends after the line. */
	oneAtATime: boolean;
	/** Longest silence while a request is open and the account is not paused, and longest wait for one answer. */
	answerMs: number;
	giveUpMs: number;
	paused(): boolean;
	notice(status: Extract<SendStatus, { type: "rate_limited" | "call" }>): void;
}

interface Pending {
	answer(answer: SendAnswer): void;
	piece: OnPiece;
}

/** Called when one of several messages of a line was sent. */
export type OnPiece = (status: Extract<SendStatus, { type: "message_sent" }>) => void;

export class SendPort {
	readonly #options: SendPortOptions;
	readonly #supervisor: ProcessSupervisor;
	/** By nonce, oldest request first. */
	readonly #pending = new Map<string, Pending>();
	readonly #turns = createKeyedQueue();
	readonly #stopping = new AbortController();
	#receivedAt = 0;

	constructor(options: SendPortOptions) {
		this.#options = options;
		this.#supervisor = new ProcessSupervisor({
			...options,
			shapes: SEND_SHAPES,
			lines: (values) => {
				this.#receivedAt = options.clock.now();
				for (const value of values) this.#take(value as SendStatus);
			},
			lost: ({ detail }) => this.#lost(detail),
		});
	}

	/** Calls `piece` for messages that are only a part of the line. Rejects only when the signal aborts before the line was written. */
	async request(line: SendRequest, signal: AbortSignal, piece: OnPiece = () => {}): Promise<SendAnswer> {
		if (!this.#options.oneAtATime) return this.#ask(await this.#supervisor.running(signal), line, piece);
		const release = await this.#turns.hold("", signal);
		try {
			const process = await this.#supervisor.running(signal);
			const pending = this.#ask(process, line, piece);
			process.end();
			const answer = await pending;
			await process.stop();
			return answer;
		} finally {
			release();
		}
	}

	/** Best effort: shown only while a process runs or can start immediately. */
	typing(target: Target, on: boolean, doing: Activity, names: { delivery: string; runId: string }): void {
		if (this.#options.oneAtATime) return;
		const line = { type: "typing", target, on, ...doing, ...names } satisfies SendLine;
		const { current } = this.#supervisor;
		if (current) current.write(line);
		else if (on && this.#supervisor.status().state === "stopped") {
			this.#supervisor.running(this.#stopping.signal).then(
				(process) => process.write(line),
				() => {}, // The port stops.
			);
		}
	}

	status(): ProcessStatus {
		return this.#supervisor.status();
	}

	async stop(): Promise<void> {
		this.#stopping.abort();
		await this.#supervisor.stop();
	}

	#ask(process: LineProcess, line: SendRequest, piece: OnPiece): Promise<SendAnswer> {
		const { promise, resolve } = Promise.withResolvers<SendAnswer>();
		const watch = watchAnswer({
			...this.#options,
			receivedAt: () => this.#receivedAt,
			late: (ms) => process.kill(`did not answer within ${ms} ms`),
		});
		this.#pending.set(line.nonce, {
			piece(status) {
				watch.touch();
				piece(status);
			},
			answer(answer) {
				watch.end();
				resolve(answer);
			},
		});
		process.write(line);
		return promise;
	}

	#take(status: SendStatus): void {
		switch (status.type) {
			case "rate_limited":
			case "call":
				this.#options.notice(status);
				break;
			case "message_sent":
				if (status.final === false) this.#pending.get(this.#keyOf(status.nonce) ?? "")?.piece(status);
				else this.#settle(status.nonce, { type: "sent", messageId: status.messageId });
				break;
			case "delivery_error": {
				const { error, code, retryAfterMs } = status;
				this.#settle(status.nonce, { type: "refused", error, code, retryAfterMs });
				break;
			}
			case "found": {
				const { known, messageId } = status;
				this.#settle(status.nonce, { type: "found", known, messageId });
				break;
			}
			default: {
				const { log, facts } = this.#options;
				log.debug({ ...facts, status: status satisfies never }, "unknown status from the send process");
			}
		}
	}

	#settle(nonce: string | undefined, answer: SendAnswer): void {
		const key = this.#keyOf(nonce);
		const open = key === undefined ? undefined : this.#pending.get(key);
		if (key !== undefined) this.#pending.delete(key);
		open?.answer(answer);
	}

	/** A status without a nonce belongs to the oldest request; the nonce of a piece is the line's nonce with a number appended. */
	#keyOf(nonce: string | undefined): string | undefined {
		if (nonce === undefined) return this.#pending.keys().next().value;
		return this.#pending.has(nonce) ? nonce : nonce.replace(/\.\d+$/, "");
	}

	/** Returns whether no request was open. */
	#lost(error: string): boolean {
		const open = [...this.#pending.values()];
		this.#pending.clear();
		for (const each of open) each.answer({ type: "lost", error });
		return open.length === 0;
	}
}
