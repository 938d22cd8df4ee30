/** A client of the daemon: its API as typed calls, and runs and sessions that are followed, verified and folded. For Node, and for pages of the daemon's own origin. The door of this folder. */

import type { RunView } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { type Api, createApi } from "./api.ts";
import { type FollowedRecord, type FollowOptions, follow, watch } from "./follow.ts";
import { createHttp, type HttpOptions } from "./http.ts";
import type { LinkLimits } from "./link.ts";
import { openStream, type Source, type Stream, type StreamOptions } from "./stream.ts";

export type { FollowedRecord, FollowOptions } from "./follow.ts";
export type { Address, Fetch, HttpOptions } from "./http.ts";
export { LINK_LIMITS, type LinkLimits, type LinkPhase, type LinkState } from "./link.ts";
export { failureKindOf, NO_OUTAGE, type Outage, stepOutage } from "./outage.ts";
export { createRunFolds, createRunVerifier } from "./runs.ts";
export type { FrameRecord, Source, Stream, StreamOptions, StreamRecord } from "./stream.ts";

export interface ClientOptions extends HttpOptions {
	/** Default for every stream. */
	limits?: Partial<LinkLimits>;
	clock?: Clock;
}

export interface Client {
	readonly api: Api;
	/**
	 * Every record of a run or session, once and in order, across lost connections and restarts. A run's records end with its final end; a
	 * session's do not end. Throws what the daemon refused with, and `data_loss` after the end of a run that is damaged.
	 */
	follow(source: Source, options?: FollowOptions): AsyncGenerator<FollowedRecord>;
	/** The view of a run, or of each run of a session, after every change. Ends and throws as `follow` does. */
	watch(source: Source, options?: Omit<FollowOptions, "partial">): AsyncGenerator<RunView>;
	/** The same stream by callbacks, with a say in its connection: pause it, resume it, hurry it. */
	open(source: Source, options: StreamOptions): Stream;
}

export function createClient({ limits, clock, ...options }: ClientOptions): Client {
	const http = createHttp(options);
	const withClientDefaults = <T extends { limits?: Partial<LinkLimits>; clock?: Clock }>(given: T): T => ({
		...(clock && { clock }),
		...given,
		limits: { ...limits, ...given.limits },
	});
	return {
		api: createApi(http),
		follow: (source, given = {}) => follow(http, source, withClientDefaults(given)),
		watch: (source, given = {}) => watch(http, source, withClientDefaults(given)),
		open: (source, given) => openStream(http, source, withClientDefaults(given)),
	};
}
