/** Slack's Web API through its SDK, with everything off that the kit does: retries, waiting for rate limits, logging to standard output. */

import { AsyncLocalStorage } from "node:async_hooks";
import type { Log } from "@nexus-stream/protocol/log";
import { type Logger, LogLevel, WebClient } from "@slack/web-api";
import { toPlatformError } from "./faults.ts";

/** The SDK's calls take no signal; its fetch finds it here. */
const signals = new AsyncLocalStorage<AbortSignal>();

export function clientOptions(apiUrl: string) {
	return {
		slackApiUrl: apiUrl,
		retryConfig: { retries: 0 },
		rejectRateLimitedCalls: true,
		// The gate limits calls; the SDK's queue would lose the signal of one that waits.
		maxRequestConcurrency: Number.POSITIVE_INFINITY,
		allowAbsoluteUrls: false,
		fetch: (url: string | URL, init: RequestInit = {}) => {
			const signal = signals.getStore();
			return fetch(url, signal ? { ...init, signal } : init);
		},
	};
}

export const createClient = (token: string, apiUrl: string, log: Log): WebClient =>
	new WebClient(token, { ...clientOptions(apiUrl), logger: sdkLog(log) });

/** One call, its failure in the words of all platforms. */
export async function call<T>(method: string, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
	try {
		return await (signal ? signals.run(signal, work) : work());
	} catch (cause) {
		throw toPlatformError(method, cause);
	}
}

/** The SDK's warnings are debug lines here: failures come back as errors. */
export function sdkLog(log: Log): Logger {
	const write = (...words: unknown[]) => log.debug({ sdk: "slack" }, words.map(String).join(" "));
	const quiet = () => {};
	return {
		debug: quiet,
		info: quiet,
		warn: write,
		error: write,
		setLevel: quiet,
		setName: quiet,
		getLevel: () => LogLevel.WARN,
	};
}
