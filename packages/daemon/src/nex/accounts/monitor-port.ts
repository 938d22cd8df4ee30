/** The `monitor` process of an account: inbound messages, those of one chat in order, each acknowledged once it is safe, and webhook requests with their answers. */

import { setImmediate } from "node:timers/promises";
import {
	type InboundChoice,
	type InboundMessage,
	type MessageFailure,
	MONITOR_SHAPES,
	type MonitorCommand,
	type MonitorLine,
} from "@nexus-stream/adapter/host";
import { NexusError, newEventId } from "@nexus-stream/protocol";
import { sleep } from "../delivery/sleep.ts";
import type { LineProcess } from "./line-process.ts";
import {
	createProcessSupervisor,
	type ProcessStatus,
	type ProcessSupervisorOptions,
	unreachable,
} from "./process-supervisor.ts";

/** Resolves once the message is safe; the platform hears of it only then. `id` was made when it arrived: later ones have greater ids. */
export type OnMessage = (message: InboundMessage, id: string) => Promise<void>;

/** Whether a message waits for none that came before it, as a command does. */
export type IsUrgent = (message: InboundMessage) => boolean;

/** Somebody pressed a button. Resolves with what to tell whoever pressed, if anything, and nobody else. */
export type OnChoice = (choice: InboundChoice) => Promise<string | undefined>;

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

export interface MonitorPort {
	/** `withinMs`: what is left of the caller's time; absent: all of `webhookMs`. */
	webhook(request: WireWebhookRequest, withinMs?: number): Promise<WireWebhookAnswer>;
	status(): ProcessStatus;
	stop(): Promise<void>;
}

export interface MonitorPortOptions extends Omit<ProcessSupervisorOptions, "lines" | "lost" | "shapes"> {
	onMessage: OnMessage;
	isUrgent?: IsUrgent;
	onChoice: OnChoice;
	onFailure(failure: MessageFailure): void;
	/** Messages that may wait for being safe before the process is made to wait. */
	waitingMax: number;
	webhookMs: number;
	/** Wait before a message that the store refused is tried again; doubles. */
	retryMs: number;
	retryMsMax: number;
}

const TOO_MANY = "Too many buttons were pressed at once. Press it again in a moment.";
const NOT_TAKEN = "That could not be taken in. Press it again.";

export function createMonitorPort(options: MonitorPortOptions): MonitorPort {
	const { clock, log, facts } = options;
	const webhooks = new Map<string, (answer: WireWebhookAnswer) => void>();
	/** Those of them that the process has not been given yet, in order. */
	const unsent = new Map<string, { process: LineProcess; request: WireWebhookRequest }>();
	let handing = false;
	const stopping = new AbortController();
	/** By chat: resolves when every message of it that has come is taken in. */
	const lanes = new Map<string, Promise<unknown>>();
	/** Messages that are not safe yet. */
	let held = 0;
	let choosing = 0;
	let requests = 0;
	/** Why the platform cannot be heard. */
	let unheard: string | undefined;

	/** An adapter waits for the ack: while the store refuses a message it is tried again, as long as the process that said it lives. */
	async function taken(message: InboundMessage, id: string, process: LineProcess): Promise<boolean> {
		for (let tries = 0; !stopping.signal.aborted; tries++) {
			try {
				await options.onMessage(message, id);
				return true;
			} catch (cause) {
				const { eventId } = message;
				log.error({ ...facts, eventId, err: cause, tries: tries + 1 }, "an inbound message could not be taken in");
				// Another try would end the same way.
				if (cause instanceof TypeError || supervisor.current !== process) return false;
			}
			await sleep(clock, Math.min(options.retryMs * 2 ** tries, options.retryMsMax), stopping.signal);
		}
		return false;
	}

	async function work(message: InboundMessage, id: string, process: LineProcess): Promise<void> {
		if (await taken(message, id, process))
			process.write({ type: "ack", eventId: message.eventId } satisfies MonitorCommand);
		held--;
		if (held >= options.waitingMax) return;
		process.resume();
		// It may wait for messages of the process before it.
		supervisor.current?.resume();
	}

	/** The messages of one chat one after another, those of others beside them. A command waits for none, and what comes after it waits for it. */
	function lineUp(message: InboundMessage, process: LineProcess): void {
		if (++held >= options.waitingMax) process.pause();
		const { chat, target } = message;
		const lane = JSON.stringify([chat.id, target.thread_id]);
		const id = newEventId(clock.now());
		const before = options.isUrgent?.(message) ? undefined : lanes.get(lane);
		const mine = before ? before.then(() => work(message, id, process)) : work(message, id, process);
		const all = Promise.all([lanes.get(lane), mine]);
		lanes.set(lane, all);
		void all.then(() => lanes.get(lane) === all && lanes.delete(lane));
	}

	/** Whoever pressed is always answered; one who presses without end is not listened to. */
	async function choose(choice: InboundChoice, process: LineProcess): Promise<void> {
		const { eventId } = choice;
		const chosen = (text?: string) => process.write({ type: "chosen", eventId, text } satisfies MonitorCommand);
		if (choosing >= options.waitingMax) return chosen(TOO_MANY);
		choosing++;
		try {
			chosen(await options.onChoice(choice));
		} catch (cause) {
			log.error({ ...facts, eventId, err: cause }, "a pressed button could not be taken in");
			chosen(NOT_TAKEN);
		} finally {
			choosing--;
		}
	}

	/** One after another while the process reads, so that what its caller no longer waits for never enters the pipe. */
	async function handOver(): Promise<void> {
		handing = true;
		for (const [id, { process }] of unsent) {
			await process.turn();
			const waiting = unsent.get(id);
			unsent.delete(id);
			if (waiting) process.write({ type: "webhook", id, ...waiting.request } satisfies MonitorCommand);
			await setImmediate();
		}
		handing = false;
	}

	const forget = (id: string) => {
		webhooks.delete(id);
		unsent.delete(id);
	};

	function take(line: MonitorLine, process: LineProcess): void {
		if (line.type === "message") {
			const { type: _type, ...message } = line;
			lineUp(message, process);
		} else if (line.type === "choice") {
			const { type: _type, ...choice } = line;
			void choose(choice, process);
		} else if (line.type === "message_failed") {
			const { type: _type, ...failure } = line;
			options.onFailure(failure);
		} else if (line.type === "listening") {
			unheard = line.ok ? undefined : (line.error ?? "the platform cannot be heard");
			if (line.ok) supervisor.recovered();
			else options.changed?.();
		} else if (line.type === "webhook_response") {
			const { id, status, headers = {}, body = "" } = line;
			webhooks.get(id)?.({ status, headers, body });
			forget(id);
		}
	}

	const supervisor = createProcessSupervisor({
		...options,
		shapes: MONITOR_SHAPES,
		lines(values, process) {
			for (const value of values) take(value as MonitorLine, process);
		},
		lost() {
			for (const answer of webhooks.values()) answer({ status: 503, headers: {}, body: "the adapter ended" });
			webhooks.clear();
			unsent.clear();
			unheard = undefined;
			// It is kept for as long as the daemon runs: its end is never in order.
			return false;
		},
	});
	supervisor.running(stopping.signal).catch(() => {}); // Only stopping rejects it.

	return {
		async webhook(request, withinMs = options.webhookMs) {
			const { promise, resolve } = Promise.withResolvers<WireWebhookAnswer>();
			const late = new AbortController();
			// One limit for the start of the process and for its answer: the platform waits for both.
			const cancel = clock.after(withinMs, () => late.abort());
			const limit = AbortSignal.any([stopping.signal, late.signal]);
			const process = await supervisor.running(limit).catch((cause: unknown) => {
				cancel();
				throw new NexusError("unavailable", "The adapter does not run; the platform will try again.", { cause });
			});
			const id = String(++requests);
			webhooks.set(id, resolve);
			late.signal.addEventListener("abort", () => {
				forget(id);
				resolve({ status: 504, headers: {}, body: "the adapter did not answer" });
			});
			unsent.set(id, { process, request });
			if (!handing) void handOver();
			return promise.finally(cancel);
		},
		status: () => unreachable(supervisor.status(), unheard),
		async stop() {
			stopping.abort();
			await supervisor.stop();
		},
	};
}
