/** The `monitor` process of an account: acknowledges an inbound message once it is durable, and keeps the messages of a chat in order. */

import type {
	InboundChoice,
	InboundMessage,
	MessageFailure,
	MonitorCommand,
	MonitorLine,
} from "@nexus-stream/adapter/port";
import { MONITOR_SHAPES } from "@nexus-stream/adapter/shapes";
import { newEventId } from "@nexus-stream/protocol";
import { createKeyedQueue } from "@nexus-stream/protocol/keyed-queue";
import { backoffMs, sleep } from "@nexus-stream/protocol/retry";
import type { LineProcess } from "./line-process.ts";
import {
	type ProcessStatus,
	ProcessSupervisor,
	type ProcessSupervisorOptions,
	unreachable,
} from "./process-supervisor.ts";
import { WebhookRequests, type WireWebhookAnswer, type WireWebhookRequest } from "./webhooks.ts";

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
