/** The `monitor` verb: passes inbound messages to the daemon; the platform gets its confirmation only after the daemon has stored them. */

import { NexusError } from "@nexus-stream/protocol";
import type { Log } from "@nexus-stream/protocol/log";
import type { Press, Session } from "../platform/session.ts";
import type { InboundMessage, MonitorCommand, MonitorLine } from "../port.ts";

export interface MonitorOptions {
	session: Session;
	say(line: MonitorLine): void;
	/** Resolves when the daemon reads the output: a flood of messages waits at the platform. */
	ready(): Promise<void>;
	log: Log;
}

type WebhookCommand = Extract<MonitorCommand, { type: "webhook" }>;
/** The lines that the daemon answers. */
type ToldLine = Extract<MonitorLine, { type: "message" | "choice" }>;

export class Monitor {
	readonly #options: MonitorOptions;
	readonly #stopping = new AbortController();
	/** Messages and presses that the daemon has not answered yet, by the line's type and event id. */
	readonly #unanswered = new Map<string, PromiseWithResolvers<string | undefined>>();
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
		if (command.type === "ack") this.#settle("message", command.eventId);
		else if (command.type === "chosen") this.#settle("choice", command.eventId, command.text);
		else if (command.type === "webhook") this.#track(this.#answer(command));
	}

	#settle(type: ToldLine["type"], eventId: string, answer?: string): void {
		this.#unanswered.get(`${type} ${eventId}`)?.resolve(answer);
		this.#unanswered.delete(`${type} ${eventId}`);
	}

	/** Stops listening; resolves when nothing is under way. */
	async stop(): Promise<void> {
		const reason = new NexusError("aborted", "The adapter stops; the platform will deliver the message again.");
		this.#stopping.abort(reason);
		for (const pending of this.#unanswered.values()) {
			// Node would report the rejection as unhandled where no caller awaits it yet.
			pending.promise.catch(() => {});
			pending.reject(reason);
		}
		await Promise.allSettled([this.ended, ...this.#requests]);
	}

	async #emit(message: InboundMessage): Promise<void> {
		await this.#tell({ type: "message", ...message });
	}

	async #press({ choice, answer }: Press): Promise<void> {
		const note = await this.#tell({ type: "choice", ...choice });
		try {
			await answer?.(note);
		} catch (cause) {
			const facts = { eventId: choice.eventId, error: String(cause) };
			this.#options.log.info(facts, "the person who pressed a button could not be answered");
		}
	}

	/** Resolves with the daemon's answer. A platform may deliver a line again before that; one answer counts for both. */
	async #tell(line: ToldLine): Promise<string | undefined> {
		await this.#options.ready();
		this.#stopping.signal.throwIfAborted();
		const key = `${line.type} ${line.eventId}`;
		const known = this.#unanswered.get(key);
		if (known) return known.promise;
		const pending = Promise.withResolvers<string | undefined>();
		this.#unanswered.set(key, pending);
		this.#options.say(line);
		return pending.promise;
	}

	async #answer({ id, method, query, headers, body }: WebhookCommand): Promise<void> {
		const { session, say, log } = this.#options;
		const reply = (status: number, text?: string, more?: Record<string, string>) =>
			say({ type: "webhook_response", id, status, headers: more, body: text || undefined });
		if (!session.webhooks) return reply(404, "this channel has no webhook");
		const request = { method, query: new URLSearchParams(query), headers, body: Buffer.from(body, "base64") };
		try {
			const answer = await session.webhooks.webhook(request);
			for (const failure of answer.failures ?? []) say({ type: "message_failed", ...failure });
			for (const press of answer.presses ?? []) this.#track(this.#pressLater(press));
			await Promise.all(answer.messages.map((message) => this.#emit(message)));
			reply(answer.status, answer.body, answer.headers);
		} catch (cause) {
			log.error({ error: String(cause) }, "a webhook request failed");
			reply(500, "the request could not be read");
		}
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
