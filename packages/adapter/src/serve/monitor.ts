/** The `monitor` verb: passes inbound messages to the daemon; the platform gets its confirmation only after the daemon has stored them. */

import { NexusError } from "@nexus-stream/protocol";
import type { Log } from "@nexus-stream/protocol/log";
import type { Press, Session, Webhooks } from "../platform/session.ts";
import type { InboundMessage, MonitorCommand, MonitorLine } from "../port.ts";

export interface MonitorOptions {
	session: Session;
	say(line: MonitorLine): void;
	/** Resolves when the daemon reads the output: a flood of messages waits at the platform. */
	ready(): Promise<void>;
	log: Log;
}

type WebhookCommand = Extract<MonitorCommand, { type: "webhook" }>;

export class Monitor {
	readonly #options: MonitorOptions;
	readonly #stopping = new AbortController();
	/** Messages that the daemon has not confirmed yet, by event id. */
	readonly #messages = new Map<string, PromiseWithResolvers<void>>();
	/** Presses that the daemon has not answered yet, by event id. */
	readonly #presses = new Map<string, PromiseWithResolvers<string | undefined>>();
	readonly #requests = new Set<Promise<void>>();
	/** Resolves when the platform's own listening has ended; for platforms that only have webhooks, with `stop`. */
	readonly ended: Promise<void>;

	constructor(options: MonitorOptions) {
		this.#options = options;
		const { signal } = this.#stopping;
		const { listening } = options.session;
		this.ended = listening
			? listening.monitor(
					(message) => this.#emit(message),
					signal,
					(press) => this.#press(press),
				)
			: new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
	}

	accept(command: MonitorCommand): void {
		if (command.type === "ack") {
			this.#messages.get(command.eventId)?.resolve();
			this.#messages.delete(command.eventId);
		} else if (command.type === "chosen") {
			this.#presses.get(command.eventId)?.resolve(command.text);
			this.#presses.delete(command.eventId);
		} else if (command.type === "webhook") this.#track(this.#answer(command));
	}

	/** Stops listening; resolves when nothing is under way. */
	async stop(): Promise<void> {
		const reason = new NexusError("aborted", "The adapter stops; the platform will deliver the message again.");
		this.#stopping.abort(reason);
		for (const pending of [...this.#messages.values(), ...this.#presses.values()]) {
			// Node would report the rejection as unhandled where no caller awaits it yet.
			pending.promise.catch(() => {});
			pending.reject(reason);
		}
		await Promise.allSettled([this.ended, ...this.#requests]);
	}

	/** A platform may deliver a message again before the daemon has confirmed it; one confirmation counts for both. */
	async #emit(message: InboundMessage): Promise<void> {
		const pending = await this.#pending(this.#messages, message.eventId, { type: "message", ...message });
		await pending.promise;
	}

	async #press({ choice, answer }: Press): Promise<void> {
		const pending = await this.#pending(this.#presses, choice.eventId, { type: "choice", ...choice });
		const note = await pending.promise;
		try {
			await answer?.(note);
		} catch (cause) {
			const facts = { eventId: choice.eventId, error: String(cause) };
			this.#options.log.info(facts, "the person who pressed a button could not be answered");
		}
	}

	/** Sends the line unless it is already on its way. */
	async #pending<T>(
		waiting: Map<string, PromiseWithResolvers<T>>,
		eventId: string,
		line: MonitorLine,
	): Promise<PromiseWithResolvers<T>> {
		await this.#options.ready();
		this.#stopping.signal.throwIfAborted();
		const known = waiting.get(eventId);
		if (known) return known;
		const pending = Promise.withResolvers<T>();
		waiting.set(eventId, pending);
		this.#options.say(line);
		return pending;
	}

	async #answer({ id, method, query, headers, body }: WebhookCommand): Promise<void> {
		const { session, say, log } = this.#options;
		const reply = (status: number, text?: string, more?: Record<string, string>) =>
			say({ type: "webhook_response", id, status, headers: more, body: text || undefined });
		if (!session.webhooks) return reply(404, "this channel has no webhook");
		const request = { method, query: new URLSearchParams(query), headers, body: Buffer.from(body, "base64") };
		try {
			const answer = await this.#read(session.webhooks, request);
			reply(answer.status, answer.body, answer.headers);
		} catch (cause) {
			log.error({ error: String(cause) }, "a webhook request failed");
			reply(500, "the request could not be read");
		}
	}

	async #read(webhooks: Webhooks, request: Parameters<Webhooks["webhook"]>[0]) {
		const answer = await webhooks.webhook(request);
		for (const failure of answer.failures ?? []) this.#options.say({ type: "message_failed", ...failure });
		for (const press of answer.presses ?? []) this.#track(this.#pressLater(press));
		await Promise.all(answer.messages.map((message) => this.#emit(message)));
		return answer;
	}

	/** The platform does not wait for it, and the person can press again. */
	async #pressLater(press: Press): Promise<void> {
		try {
			await this.#press(press);
		} catch (cause) {
			const { signal } = this.#stopping;
			if (!signal.aborted) this.#options.log.warn({ error: String(cause) }, "a pressed button was not taken");
		}
	}

	#track(work: Promise<void>): void {
		const request = work.finally(() => this.#requests.delete(request));
		this.#requests.add(request);
	}
}
