/** The `monitor` process of an account: acknowledges an inbound message once it is durable, keeps the messages of a chat in order, and answers webhook requests. */

import { setImmediate } from "node:timers/promises";
import type {
	AdapterInfo,
	InboundChoice,
	InboundMessage,
	MessageFailure,
	MonitorCommand,
	MonitorLine,
} from "@nexus-stream/adapter/port";
import { MONITOR_SHAPES } from "@nexus-stream/adapter/shapes";
import { NexusError, newEventId } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { createKeyedQueue } from "@nexus-stream/protocol/keyed-queue";
import { backoffMs, sleep } from "@nexus-stream/protocol/retry";
import type { LineProcess } from "./line-process.ts";
import {
	type ProcessStatus,
	ProcessSupervisor,
	type ProcessSupervisorOptions,
	unreachable,
} from "./process-supervisor.ts";

export interface WireWebhookRequest {
	method: string;
	/** Without the question mark. */
	query: string;
	/** Names in lower case. */
	headers: Record<string, string>;
	/** Base64 of the raw bytes. */
	body: string;
}

export interface WireWebhookAnswer {
	status: number;
	headers: Record<string, string>;
	body: string;
}

/** Receives the messages and button presses of an account. */
export interface InboundHandlers {
	/** Resolves once the message is durable; only then does the platform get its acknowledgement. Later arrivals have greater ids. */
	onMessage(message: InboundMessage, id: string): Promise<void>;
	/** Resolves with the text shown to the person who pressed the button, and only to them; undefined = nothing is shown. */
	onChoice(choice: InboundChoice): Promise<string | undefined>;
	/** Whether the message may overtake earlier ones of its chat, as a command does. */
	isUrgent(message: InboundMessage): boolean;
}

export interface MonitorPortOptions
	extends Omit<ProcessSupervisorOptions, "lines" | "lost" | "shapes">,
		InboundHandlers {
	onFailure(failure: MessageFailure): void;
	/** Messages that may wait to be durable before the port stops reading from the process. */
	waitingMax: number;
	/** Back-off before a message that the store refused is tried again. */
	retryMs: number;
	retryMsMax: number;
}

const TOO_MANY = "Too many buttons were pressed at once. Press it again in a moment.";
const NOT_TAKEN = "Your choice was not recorded. Press it again.";

export class MonitorPort {
	readonly #options: MonitorPortOptions;
	readonly #supervisor: ProcessSupervisor;
	readonly #webhooks: WebhookRequests;
	readonly #stopping = new AbortController();
	/** Messages by chat. */
	readonly #chats = createKeyedQueue();
	/** Messages that are not durable yet. */
	#pending = 0;
	#choosing = 0;
	/** Why the adapter receives nothing from its platform. */
	#listenError: string | undefined;

	constructor(options: MonitorPortOptions) {
		this.#options = options;
		this.#supervisor = new ProcessSupervisor({
			...options,
			shapes: MONITOR_SHAPES,
			lines: (values, process) => {
				for (const value of values) this.#take(value as MonitorLine, process);
			},
			lost: () => {
				this.#webhooks.lost();
				this.#listenError = undefined;
				// A monitor runs as long as the daemon: it never ends because its work is done.
				return false;
			},
		});
		this.#webhooks = new WebhookRequests(this.#supervisor, options.clock, this.#stopping.signal);
		this.#supervisor.running(this.#stopping.signal).catch(() => {}); // Rejects only when the port stops.
	}

	webhook(request: WireWebhookRequest, withinMs: number): Promise<WireWebhookAnswer> {
		return this.#webhooks.request(request, withinMs);
	}

	status(): ProcessStatus {
		return unreachable(this.#supervisor.status(), this.#listenError);
	}

	async stop(): Promise<void> {
		this.#stopping.abort();
		await this.#supervisor.stop();
	}

	#take(line: MonitorLine, process: LineProcess): void {
		if (line.type === "message") {
			const { type: _type, ...message } = line;
			this.#enqueue(message, process);
		} else if (line.type === "choice") {
			const { type: _type, ...choice } = line;
			void this.#choose(choice, process);
		} else if (line.type === "message_failed") {
			const { type: _type, ...failure } = line;
			this.#options.onFailure(failure);
		} else if (line.type === "listening") {
			this.#listenError = line.ok ? undefined : (line.error ?? "the platform cannot be reached");
			if (line.ok) this.#supervisor.recovered();
			else this.#options.changed();
		} else if (line.type === "webhook_response") this.#webhooks.answer(line);
	}

	/** Messages of one chat wait for one another. An urgent message does not wait, but later ones wait for it. */
	#enqueue(message: InboundMessage, process: LineProcess): void {
		const { waitingMax, clock, isUrgent } = this.#options;
		if (++this.#pending >= waitingMax) process.pause();
		const { chat, target } = message;
		const key = JSON.stringify([chat.id, target.thread_id]);
		const id = newEventId(clock.now());
		const receive = () => this.#receive(message, id, process);
		if (!isUrgent(message)) return void this.#chats.run(key, receive);
		const received = receive();
		void this.#chats.run(key, () => received);
	}

	/** Never rejects. */
	async #receive(message: InboundMessage, id: string, process: LineProcess): Promise<void> {
		if (await this.#isAccepted(message, id, process))
			process.write({ type: "ack", eventId: message.eventId } satisfies MonitorCommand);
		this.#pending--;
		if (this.#pending >= this.#options.waitingMax) return;
		process.resume();
		// A newer process may have been paused because of messages of the one before it.
		this.#supervisor.current?.resume();
	}

	/** Retries while the store refuses the message, as long as the process that waits for the acknowledgement lives. */
	async #isAccepted(message: InboundMessage, id: string, process: LineProcess): Promise<boolean> {
		const { onMessage, retryMs, retryMsMax, clock, log, facts } = this.#options;
		const { signal } = this.#stopping;
		for (let failures = 0; !signal.aborted; failures++) {
			try {
				await onMessage(message, id);
				return true;
			} catch (cause) {
				const { eventId } = message;
				log.error({ ...facts, eventId, err: cause, tries: failures + 1 }, "an inbound message could not be accepted");
				// Another try would end the same way, or its adapter no longer waits.
				if (cause instanceof TypeError || this.#supervisor.current !== process) return false;
			}
			await sleep(clock, backoffMs({ firstMs: retryMs, maxMs: retryMsMax }, failures), signal);
		}
		return false;
	}

	/** Every press gets an answer; beyond `waitingMax` at once it is only a request to press again. */
	async #choose(choice: InboundChoice, process: LineProcess): Promise<void> {
		const { onChoice, waitingMax, log, facts } = this.#options;
		const { eventId } = choice;
		const answer = (text?: string) => process.write({ type: "chosen", eventId, text } satisfies MonitorCommand);
		if (this.#choosing >= waitingMax) return answer(TOO_MANY);
		this.#choosing++;
		try {
			answer(await onChoice(choice));
		} catch (cause) {
			log.error({ ...facts, eventId, err: cause }, "a pressed button could not be recorded");
			answer(NOT_TAKEN);
		} finally {
			this.#choosing--;
		}
	}
}

/** Webhook requests: each is passed to the process and answered within the platform's time limit. */
class WebhookRequests {
	readonly #supervisor: ProcessSupervisor;
	readonly #clock: Clock;
	readonly #stopping: AbortSignal;
	readonly #open = new Map<string, (answer: WireWebhookAnswer) => void>();
	/** Open requests that were not written to the process yet, in order. */
	readonly #unsent = new Map<string, { process: LineProcess; request: WireWebhookRequest }>();
	#isSending = false;
	#count = 0;

	constructor(supervisor: ProcessSupervisor, clock: Clock, stopping: AbortSignal) {
		this.#supervisor = supervisor;
		this.#clock = clock;
		this.#stopping = stopping;
	}

	/** One time limit for the start of the process and for its answer: the platform waits for both. */
	async request(request: WireWebhookRequest, withinMs: number): Promise<WireWebhookAnswer> {
		const { promise, resolve } = Promise.withResolvers<WireWebhookAnswer>();
		const late = new AbortController();
		const cancel = this.#clock.after(withinMs, () => late.abort());
		const limit = AbortSignal.any([this.#stopping, late.signal]);
		const process = await this.#supervisor.running(limit).catch((cause: unknown) => {
			cancel();
			throw new NexusError("unavailable", "The adapter does not run; the platform will try again.", { cause });
		});
		const id = String(++this.#count);
		this.#open.set(id, resolve);
		late.signal.addEventListener("abort", () => {
			this.#forget(id);
			resolve({ status: 504, headers: {}, body: "the adapter did not answer" });
		});
		this.#unsent.set(id, { process, request });
		if (!this.#isSending) void this.#sendAll();
		return promise.finally(cancel);
	}

	answer({ id, status, headers = {}, body = "" }: Extract<MonitorLine, { type: "webhook_response" }>): void {
		this.#open.get(id)?.({ status, headers, body });
		this.#forget(id);
	}

	/** The process has ended. */
	lost(): void {
		for (const answer of this.#open.values()) answer({ status: 503, headers: {}, body: "the adapter ended" });
		this.#open.clear();
		this.#unsent.clear();
	}

	/** Writes one request at a time, as the process reads, so that a request that timed out never enters the pipe. */
	async #sendAll(): Promise<void> {
		this.#isSending = true;
		for (const [id, { process }] of this.#unsent) {
			await process.turn();
			const unsent = this.#unsent.get(id);
			this.#unsent.delete(id);
			if (unsent) process.write({ type: "webhook", id, ...unsent.request } satisfies MonitorCommand);
			await setImmediate();
		}
		this.#isSending = false;
	}

	#forget(id: string): void {
		this.#open.delete(id);
		this.#unsent.delete(id);
	}
}

/**
 * Refuses a request that cannot carry a valid signature, before its body is read. Throws `not_found` or `forbidden`. While the adapter has
 * not reported what it supports, every request passes.
 */
export function checkSignable(
	channel: string,
	info: AdapterInfo | undefined,
	{ method, query, headers }: Omit<WireWebhookRequest, "body">,
): void {
	if (!info) return;
	if (!info.supports.includes("webhook")) throw new NexusError("not_found", `${channel} has no webhook.`);
	// Some platforms verify an address by a GET without a signature.
	if (method !== "POST") return;
	const { requiredHeaders = [], requiredQuery = [] } = info.webhook ?? {};
	const given = new URLSearchParams(query);
	const lacks =
		requiredHeaders.some((name) => !headers[name.toLowerCase()]) || requiredQuery.some((name) => !given.get(name));
	if (lacks) throw new NexusError("forbidden", "The request carries no signature.");
}
