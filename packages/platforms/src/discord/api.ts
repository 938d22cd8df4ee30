/** Discord's REST client without its own waiting and retrying: it calls once, and notes what answers say about the buckets. */

import { REST } from "@discordjs/rest";
import { foreignAnswer } from "@nexus-stream/adapter/platform/json";
import type { Clock } from "@nexus-stream/protocol/clock";
import { refusal, toPlatformError } from "./faults.ts";
import { type Bucket, readBucket } from "./pace.ts";

const BUCKETS_KEPT = 1000;

type RestRoute = `/${string}`;
export type RestRequest = NonNullable<Parameters<REST["post"]>[1]>;

export type DiscordClient = ReturnType<typeof createClient>;

export function createClient(token: string, api: string, clock: Clock) {
	const buckets = new Map<string, Bucket>();

	function note(url: string, method: string, headers: Headers): void {
		const channel = /\/channels\/(\d+)\/messages/.exec(url)?.[1];
		const bucket = readBucket(headers, clock.now());
		if (channel === undefined || !bucket) return;
		const key = keyOf(method, channel);
		// Newest last, so that the first is the one to forget.
		buckets.delete(key);
		buckets.set(key, bucket);
		if (buckets.size > BUCKETS_KEPT) buckets.delete(buckets.keys().next().value ?? "");
	}

	const makeRequest = async (url: string, init: RequestInit): Promise<Response> => {
		const response = await fetch(url, init);
		note(url, init.method ?? "GET", response.headers);
		if (response.status === 429) throw refusal(429, response.headers, await response.json().catch(() => undefined));
		// The library would not say how long a gateway asks to wait, nor what the body was.
		if (response.status >= 500) throw foreignAnswer(init.method ?? "GET", response);
		// An empty answer that claims to be JSON would be parsed.
		return response.status === 204 ? new Response(null, { status: 204 }) : response;
	};

	const rest = new REST({
		api,
		retries: 0,
		timeout: 60_000,
		rejectOnRateLimit: () => true,
		hashSweepInterval: 0,
		handlerSweepInterval: 0,
		makeRequest: makeRequest as unknown as REST["options"]["makeRequest"],
	});

	return {
		/** For the gateway. */
		rest: rest.setToken(token),
		async call(
			method: "get" | "post" | "patch" | "delete",
			route: RestRoute,
			request: RestRequest = {},
		): Promise<unknown> {
			// It forgets the token at the first 401.
			rest.setToken(token);
			try {
				return await rest[method](route, request);
			} catch (cause) {
				throw toPlatformError(`${method.toUpperCase()} ${withoutSecrets(route)}`, cause);
			}
		},
		/** The last known bucket of a method on a channel's messages. */
		bucket: (method: "post" | "patch", channel: string) => buckets.get(keyOf(method, channel)),
	};
}

/** An interaction's address holds the right to answer it. */
const withoutSecrets = (route: RestRoute): string =>
	route.replace(/^(\/(?:interactions|webhooks)\/[^/]+\/)[^/]+/, "$1:token").replaceAll(/\d{5,}/g, ":id");

const keyOf = (method: string, channel: string): string => `${method.toUpperCase()} ${channel}`;
