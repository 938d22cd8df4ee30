/** signal-cli's daemon over HTTP: JSON-RPC calls, and a stream of what comes in. */

import { PlatformError, type Tools } from "@nexus-stream/adapter";
import { fetchJson, foreignAnswer } from "@nexus-stream/adapter/platform/json";
import { networkError } from "@nexus-stream/adapter/platform/network";
import { createParser, type EventSourceMessage } from "eventsource-parser";
import { type RpcError, refusal } from "./faults.ts";

/** It says something every 15 seconds. */
const SILENCE_MS = 60_000;

export interface SignalEventsOptions extends Pick<Tools, "clock"> {
	after: string | undefined;
	opened(): void;
	/** Resolves when the event is safe. */
	take(data: string, id: string | undefined): Promise<void>;
	signal: AbortSignal;
}

export type SignalApi = ReturnType<typeof createApi>;

export function createApi(apiUrl: string, account: string) {
	let count = 0;
	return {
		async call<Result>(method: string, params: object, signal?: AbortSignal): Promise<Result> {
			const request = { jsonrpc: "2.0", id: String(++count), method, params: { account, ...params } };
			const headers = { "content-type": "application/json" };
			const init = { method: "POST", headers, body: JSON.stringify(request), signal };
			const answer = await fetchJson(method, `${apiUrl}/api/v1/rpc`, init);
			const { result, error } = (answer.body ?? {}) as { result?: unknown; error?: RpcError };
			if (typeof error?.code === "number") throw refusal(method, error);
			if (answer.status >= 300 || result === undefined || result === null) throw foreignAnswer(method, answer);
			return result as Result;
		},
		/** Resolves when the connection ends. Rejects when it cannot be opened. */
		events: (options: SignalEventsOptions) =>
			readEvents(`${apiUrl}/api/v1/events?account=${encodeURIComponent(account)}`, options),
	};
}

async function readEvents(url: string, { after, opened, take, signal, clock }: SignalEventsOptions): Promise<void> {
	const silence = new AbortController();
	let cancel = () => {};
	const heard = () => {
		cancel();
		cancel = clock.after(SILENCE_MS, () => silence.abort(new Error(`silent for ${SILENCE_MS} ms`)));
	};
	const waiting: EventSourceMessage[] = [];
	const parser = createParser({ onEvent: (event) => void waiting.push(event) });
	try {
		const headers = new Headers({ accept: "text/event-stream" });
		if (after !== undefined) headers.set("last-event-id", after);
		heard();
		const response = await fetch(url, { headers, signal: AbortSignal.any([signal, silence.signal]) });
		if (response.status === 400)
			throw new PlatformError("denied", "signal-cli does not know this number: register it.");
		if (!response.ok) throw new PlatformError("unavailable", `events: HTTP ${response.status}`);
		opened();
		const decoder = new TextDecoder();
		for await (const chunk of response.body ?? []) {
			heard();
			parser.feed(decoder.decode(chunk, { stream: true }));
			for (const { data, id } of waiting.splice(0)) {
				// Slow storing must not count as silence of signal-cli.
				cancel();
				await take(data, id);
			}
			heard();
		}
	} catch (cause) {
		throw cause instanceof PlatformError ? cause : networkError("events", cause);
	} finally {
		cancel();
	}
}
