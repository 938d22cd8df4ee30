/** The composition root: configuration, the data directory and the daemon's life. The door of this folder. */

import type { Daemon, DaemonOptions } from "./daemon.ts";

export {
	type ConfigFlags,
	loadConfig,
	type NexusConfig,
	type PartialConfig,
	requireTokenOnPublicHost,
} from "./config/config.ts";
export type { Daemon, DaemonOptions } from "./daemon.ts";
export { dataPaths, isForAnother, readDaemonRecord, readToken } from "./data/data-dir.ts";
export { isDataDirLocked } from "./data/data-lock.ts";
export { removeAccount, secretKey, storeAccount } from "./data/secrets.ts";
export { packageVersion, pageDir } from "./package.ts";

/** Starts a daemon and resolves once its port is open. Its parts are loaded here: a client that enters this door needs none of them. */
export async function startDaemon(options: DaemonOptions = {}): Promise<Daemon> {
	const { startDaemon } = await import("./daemon.ts");
	return startDaemon(options);
}

/** Whether the database could be opened, and whether any of it is damaged; loaded when asked for. */
export const storeCheck = () => import("./data/check.ts");

/** Whether the database of a PostgreSQL server could be used; loaded when asked for. */
export const databaseCheck = () => import("./data/postgres.ts");

/** Which gRPC port a start would open, and whether its certificate can be used; loaded when asked for. */
export const grpcCheck = () => import("./grpc.ts");

/** Services for an engine that is only checked; loaded when asked for. */
export const engineServicesModule = () => import("./wiring/engine-services.ts");

/** The settings that an adapter needs, and whether an account works; loaded when asked for. */
export const adapterCheck = () => import("./adapter-check.ts");
