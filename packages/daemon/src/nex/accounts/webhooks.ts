/** Webhook requests of an account: each is passed to its monitor process and answered within the platform's time limit. */

import { setImmediate } from "node:timers/promises";
import type { AdapterInfo, MonitorCommand, MonitorLine } from "@nexus-stream/adapter/port";
import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { LineProcess } from "./line-process.ts";
import type { ProcessSupervisor } from "./process-supervisor.ts";

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

export class WebhookRequests {
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
