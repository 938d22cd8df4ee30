/** A started daemon and its options. */

import type { DaemonState } from "@nexus-stream/protocol/api";
import type { Engine } from "@nexus-stream/protocol/engine";
import type { Log } from "@nexus-stream/protocol/log";
import type { EngineChoice } from "../engine/engine.ts";
import type { PartialConfig } from "./config/config.ts";

/** A configuration, or what a program that embeds the daemon hands over instead. */
export type DaemonOptions = Omit<PartialConfig, "engine"> & {
	engine?: EngineChoice | Engine | undefined;
	logger?: Log | undefined;
	/** The configuration in one object; the other options override it. */
	config?: PartialConfig | undefined;
};

export interface Daemon {
	readonly url: string;
	/** The gRPC address as `http://host:port` or `https://host:port`; undefined when it is off. */
	readonly grpc?: string;
	readonly data: string;
	readonly engine: string;
	readonly state: DaemonState;
	/** Runs that have not settled. */
	readonly liveRuns: number;
	/** Deliveries that are under way or wait for their turn. */
	readonly liveDeliveries: number;
	/** How long `close` waits for both. */
	readonly stopDeadlineMs: number;
	readonly log: Log;
	/** On chat platforms, as `channel/account`, when it started. */
	readonly accounts: readonly string[];
	/** Pairing requests that were open when it started. */
	readonly waiting: readonly { code: string; sender: string }[];
	/** A fresh address that signs the page in, once. */
	signInUrl(): string;
	/** Commits what is pending, in the tick of the call: for a process that has to end. */
	flush(): void;
	/** Stops accepting, lets runs end until the deadline, saves what is left as aborted, lets go of the data directory. */
	close(): Promise<void>;
}
