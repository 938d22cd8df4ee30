/** The client of the page: same origin, with the cookie of the sign-in. */

import { createClient, type Source, type Stream, type StreamOptions } from "@nexus-stream/client";
import { NexusError } from "@nexus-stream/protocol";

const client = createClient({
	// Errors of the daemon are written for people; errors of the client (with a cause) are for programs and are replaced.
	reword: (error, response) =>
		error.cause === undefined ? error : new NexusError(error.code, failureOf(response), { cause: error }),
});

/** The statuses of a gateway that cannot reach the daemon. */
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
