/** The daemon as the page talks to it: over its own origin, with the cookie of the sign-in. */

import { createClient, type Source, type Stream, type StreamOptions } from "../client/client.ts";
import { NexusError } from "../protocol/protocol.ts";

const client = createClient({
	reword: (error, response) =>
		response === undefined ? new NexusError(error.code, "The daemon cannot be reached.", { cause: error }) : error,
});

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
