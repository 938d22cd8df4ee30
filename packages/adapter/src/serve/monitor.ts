/** The `monitor` verb: inbound messages to the daemon, each safe there before the platform hears that it was taken. */

import { NexusError } from "@nexus-stream/protocol";
import type { Log } from "@nexus-stream/protocol/log";
import type { Press, Session } from "../platform/platform.ts";
import type { InboundMessage, MonitorCommand, MonitorLine } from "../port.ts";

export interface Monitor {
	accept(command: MonitorCommand): void;
	/** Resolves when the platform's own listening has ended; never for platforms that only have webhooks. */
	readonly ended: Promise<void>;
	/** Stops listening; resolves when nothing is under way. */
	stop(): Promise<void>;
}

export interface MonitorOptions {
	session: Session;
	say(line: MonitorLine): void;
	/** Resolves when what is said is being read: a flood of messages waits at the platform. */
	ready(): Promise<void>;
	log: Log;
}

type Webhook = Extract<MonitorCommand, { type: "webhook" }>;

export function startMonitor({ session, say, ready, log }: MonitorOptions): Monitor {
	const stopping = new AbortController();
	const waiting = new Map<string, PromiseWithResolvers<void>>();
	/** Presses that the daemon has not answered yet. */
	const pressed = new Map<string, PromiseWithResolvers<string | undefined>>();
	const requests = new Set<Promise<void>>();

	async function emit(message: InboundMessage): Promise<void> {
		await ready();
		stopping.signal.throwIfAborted();
		// The same message may come twice before it is safe; one ack is for both.
		const known = waiting.get(message.eventId);
		const safe = known ?? Promise.withResolvers<void>();
		if (!known) {
			waiting.set(message.eventId, safe);
			say({ type: "message", ...message });
		}
		await safe.promise;
	}

	/** The same press may come twice: both are answered alike. */
	async function press({ choice, answer }: Press): Promise<void> {
		await ready();
		stopping.signal.throwIfAborted();
		const known = pressed.get(choice.eventId);
		const taken = known ?? Promise.withResolvers<string | undefined>();
		if (!known) {
			pressed.set(choice.eventId, taken);
			say({ type: "choice", ...choice });
		}
		const note = await taken.promise;
		try {
			await answer?.(note);
		} catch (cause) {
			log.info({ eventId: choice.eventId, error: String(cause) }, "whoever pressed a button could not be answered");
		}
	}

	/** A press that is lost can be repeated, and its platform does not wait for long. */
	function later(work: Promise<void>): void {
		const request = work
			.catch((cause: unknown) => {
				if (!stopping.signal.aborted) log.warn({ error: String(cause) }, "a pressed button was not taken");
			})
			.finally(() => requests.delete(request));
		requests.add(request);
	}

	async function answer(command: Webhook): Promise<void> {
		const reply = (status: number, body?: string, headers?: Record<string, string>) =>
			say({ type: "webhook_response", id: command.id, status, headers, body: body || undefined });
		if (!session.webhook) return reply(404, "this channel has no webhook");
		try {
			const request = {
				method: command.method,
				query: new URLSearchParams(command.query),
				headers: command.headers,
				body: Buffer.from(command.body, "base64"),
			};
			const result = await session.webhook(request);
			for (const failure of result.failures ?? []) say({ type: "message_failed", ...failure });
			for (const each of result.presses ?? []) later(press(each));
			await Promise.all(result.messages.map(emit));
			reply(result.status, result.body, result.headers);
		} catch (cause) {
			log.error({ error: String(cause) }, "a webhook request failed");
			reply(500, "the request could not be read");
		}
	}

	const forever = new Promise<void>((resolve) => stopping.signal.addEventListener("abort", () => resolve()));
	const ended = session.monitor ? session.monitor(emit, stopping.signal, press) : forever;
	return {
		ended,
		accept(command) {
			if (command.type === "ack") {
				waiting.get(command.eventId)?.resolve();
				waiting.delete(command.eventId);
			} else if (command.type === "chosen") {
				pressed.get(command.eventId)?.resolve(command.text);
				pressed.delete(command.eventId);
			} else if (command.type === "webhook") {
				const request = answer(command).finally(() => requests.delete(request));
				requests.add(request);
			}
		},
		async stop() {
			const reason = new NexusError("aborted", "The adapter stops; the platform will deliver the message again.");
			stopping.abort(reason);
			for (const safe of [...waiting.values(), ...pressed.values()]) {
				// Nobody may be waiting for it yet.
				safe.promise.catch(() => {});
				safe.reject(reason);
			}
			await Promise.allSettled([ended, ...requests]);
		},
	};
}
