/** The `send` process of an account: a line per message, and for every line one answer, even when the process dies over it. */

import {
	type Activity,
	type PlatformFault,
	SEND_SHAPES,
	type SendLine,
	type SendStatus,
	type Target,
} from "@nexus-stream/adapter/host";
import { createLock } from "../../std/lock.ts";
import { watchAnswer } from "./answer-watch.ts";
import type { LineProcess } from "./line-process.ts";
import {
	createProcessSupervisor,
	type ProcessStatus,
	type ProcessSupervisor,
	type ProcessSupervisorOptions,
} from "./process-supervisor.ts";

export type SendAnswer =
	| { type: "sent"; messageId: string }
	| { type: "refused"; error: string; code?: PlatformFault; retryAfterMs?: number }
	| { type: "found"; known: boolean; messageId?: string }
	/** The process died or went silent: whether it happened is not known. */
	| { type: "lost"; error: string };

export type SendRequest = Exclude<SendLine, { type: "typing" }>;

export interface SendPortOptions extends Omit<ProcessSupervisorOptions, "lines" | "lost" | "shapes"> {
	/** It only speaks the basic fields: a process for each line, its input ended after it. */
	oneAtATime: boolean;
	/** Longest silence while something is asked and the account is not paused, and longest wait for one answer. */
	answerMs: number;
	giveUpMs: number;
	paused(): boolean;
	notice(status: Extract<SendStatus, { type: "rate_limited" | "call" }>): void;
}

interface Pending {
	answer(answer: SendAnswer): void;
	piece: OnPiece;
}

/** One of several messages of a line is out. */
export type OnPiece = (status: Extract<SendStatus, { type: "message_sent" }>) => void;

export class SendPort {
	readonly #options: SendPortOptions;
	readonly #supervisor: ProcessSupervisor;
	/** By nonce, in order of asking. */
	readonly #pending = new Map<string, Pending>();
	readonly #lock = createLock();
	readonly #stopping = new AbortController();
	#receivedAt = 0;

	constructor(options: SendPortOptions) {
		this.#options = options;
		this.#supervisor = createProcessSupervisor({
			...options,
			shapes: SEND_SHAPES,
			lines: (values) => {
				this.#receivedAt = options.clock.now();
				for (const value of values) this.#take(value as SendStatus);
			},
			lost: ({ detail }) => this.#lost(detail),
		});
	}

	/** `piece` hears of messages that are only a part of the line. Rejects only when the signal aborts before the line was written. */
	async request(line: SendRequest, signal: AbortSignal, piece: OnPiece = () => {}): Promise<SendAnswer> {
		if (!this.#options.oneAtATime) return this.#ask(await this.#supervisor.running(signal), line, piece);
		const release = await this.#lock(signal);
		try {
			const process = await this.#supervisor.running(signal);
			const asked = this.#ask(process, line, piece);
			process.end();
			const answer = await asked;
			await process.stop();
			return answer;
		} finally {
			release();
		}
	}

	/** Best effort: shown only while a process runs or can be started at once. */
	typing(target: Target, on: boolean, doing: Activity, names: { delivery: string; runId: string }): void {
		if (this.#options.oneAtATime) return;
		const line = { type: "typing", target, on, ...doing, ...names } satisfies SendLine;
		const { current } = this.#supervisor;
		if (current) current.write(line);
		else if (on && this.#supervisor.status().state === "stopped") {
			this.#supervisor.running(this.#stopping.signal).then(
				(process) => process.write(line),
				() => {}, // Stopping: nobody looks any more.
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
				const more = { code, retryAfterMs };
				this.#settle(status.nonce, { type: "refused", error, ...more });
				break;
			}
			case "found": {
				const { known, messageId } = status;
				this.#settle(status.nonce, { type: "found", known, messageId });
				break;
			}
			default: {
				const { log, facts } = this.#options;
				log.debug({ ...facts, status: status satisfies never }, "a status that send does not have");
			}
		}
	}

	#settle(nonce: string | undefined, answer: SendAnswer): void {
		const key = this.#keyOf(nonce);
		const open = key === undefined ? undefined : this.#pending.get(key);
		if (key !== undefined) this.#pending.delete(key);
		open?.answer(answer);
	}

	/** Without a nonce it is about what was asked first; a piece has the line's nonce with a number behind it. */
	#keyOf(nonce: string | undefined): string | undefined {
		if (nonce === undefined) return this.#pending.keys().next().value;
		return this.#pending.has(nonce) ? nonce : nonce.replace(/\.\d+$/, "");
	}

	/** Whether nothing was open. */
	#lost(error: string): boolean {
		const open = [...this.#pending.values()];
		this.#pending.clear();
		for (const each of open) each.answer({ type: "lost", error });
		return open.length === 0;
	}
}
