/** The daemon as the page talks to it: over its own origin, with the cookie of the sign-in. */

import { createClient, type Source, type Stream, type StreamOptions } from "@nexus-stream/client";
import { NexusError } from "@nexus-stream/protocol";

const client = createClient({
	// What the daemon says is for the page, what the client says for programs.
	reword: (error, response) =>
		error.cause === undefined ? error : new NexusError(error.code, failureOf(response), { cause: error }),
});

/** A gateway answers with these for a daemon that it does not reach. */
const GATEWAY_STATUSES: readonly number[] = [502, 503, 504];

function failureOf(response: Response | undefined): string {
	if (!response || GATEWAY_STATUSES.includes(response.status)) return "The daemon cannot be reached.";
	if (response.ok) return "Something other than the daemon answered.";
	return `The request failed (HTTP ${response.status}).`;
}

export const { api } = client;

export const openStream = (source: Source, options: StreamOptions): Stream =>
	client.open(source, {
		onDamage: (error) => console.error("nexus:", error.message),
		...options,
		onState(state) {
			if (state.phase === "waiting") console.info("nexus: stream lost:", state.error?.message);
			options.onState?.(state);
		},
	});
