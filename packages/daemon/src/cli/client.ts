/** The daemon as a command finds it: where it is, and failures worded for a terminal. */

import { setTimeout as sleep } from "node:timers/promises";
import {
	type Address,
	type Client,
	createClient,
	failureKindOf,
	LINK_LIMITS,
	type LinkLimits,
	NO_OUTAGE,
	type Outage,
	stepOutage,
} from "@nexus-stream/client";
import { NexusError, toNexusError } from "@nexus-stream/protocol";
import { dataPaths, isForAnother, loadConfig, readDaemonRecord, readToken } from "../runtime/runtime.ts";
import { configSourceOf, type Host } from "./host.ts";
import { Hinted } from "./terminal.ts";

/** The options that say where the daemon is. */
export interface WhereOptions {
	url?: string;
	token?: string;
	data?: string;
	config?: string;
}

/** A person waits: a daemon that restarts is found soon, and one that stays away is given up. */
export const LIMITS: LinkLimits = { ...LINK_LIMITS, retryFirstMs: 100, retryMaxMs: 2000, giveUpMs: 60_000 };

export const clientFor = (host: Host, where: WhereOptions): Client =>
	createClient({ locate: () => findDaemon(host, where), reword: withHint, limits: LIMITS });

/** The daemon as flags, environment and the data directory say. Asked again on every reconnect: a restart may change the port. */
export async function findDaemon(host: Host, where: WhereOptions): Promise<Address> {
	const { data, token: given, config: file } = where;
	const config = await loadConfig({ data, token: given, config: file }, configSourceOf(host));
	const paths = dataPaths(config.data);
	const record = readDaemonRecord(paths);
	const url = checkedUrl(where.url, "--url") ?? checkedUrl(host.env.NEXUS_URL || undefined, "NEXUS_URL") ?? record?.url;
	if (url === undefined && isForAnother(paths))
		throw new Hinted(
			new NexusError("forbidden", `${config.data} belongs to another user`),
			"run this as that user, or name the daemon with --url and NEXUS_TOKEN",
		);
	if (url === undefined)
		throw new Hinted(
			new NexusError("unavailable", `no daemon is running for ${config.data}`),
			"start one with `nexus up`, or name another with --url or --data",
		);
	// The directory's token belongs to this machine's daemon; it is not shown to any other address.
	const token = config.token ?? (url === record?.url || isLoopback(url) ? readToken(paths) : undefined);
	if (token === undefined)
		throw new Hinted(
			new NexusError("unauthenticated", `no token for ${url}`),
			"set NEXUS_TOKEN to the daemon's token, or use --token",
		);
	return { url, token };
}

/** An address that a person gave, without what `/v1` would not fit behind. */
function checkedUrl(text: string | undefined, from: string): string | undefined {
	if (text === undefined) return undefined;
	const url = URL.parse(text);
	if (url === null || !/^https?:$/.test(url.protocol))
		throw new NexusError("invalid", `${from}: ${JSON.stringify(text)} is not an address such as http://127.0.0.1:7777`);
	return `${url.origin}${url.pathname}`.replace(/\/+$/, "");
}

function isLoopback(url: string): boolean {
	const host = URL.canParse(url) ? new URL(url).hostname : "";
	return host === "localhost" || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host);
}

/** For a daemon that does not answer. */
export const START_HINT = "start it with `nexus up`, or check --url";

/** Adds to a failure what to do about it. */
export function withHint(error: NexusError, response: Response | undefined): NexusError {
	if (response === undefined) return new Hinted(error, START_HINT);
	if (response.ok) return new Hinted(error, "check --url and NEXUS_URL");
	const asked = URL.parse(response.url);
	if (error.code === "not_found" && asked?.pathname.includes("/v1/runs/"))
		return new Hinted(error, "`nexus runs` lists them");
	if (error.code !== "unauthenticated") return error;
	// The daemon's own text is for programs that write requests themselves.
	const refused = new NexusError(error.code, `${asked?.origin ?? "the daemon"} refuses this token`);
	return new Hinted(refused, "check NEXUS_TOKEN and --token, or name the daemon's --data");
}

/** Asks until there is an answer: accepted work continues after a restart, and the command keeps waiting for it. */
export async function overRestarts<T>(ask: () => Promise<T>, onDrop: (because: string) => void): Promise<T> {
	let outage: Outage = NO_OUTAGE;
	for (;;) {
		try {
			return await ask();
		} catch (cause) {
			const { code, message } = toNexusError(cause);
			const step = stepOutage(outage, failureKindOf(code), performance.now(), Math.random, LIMITS);
			if (typeof step === "string") throw cause;
			if (outage.attempt === 0) onDrop(message);
			outage = step.outage;
			await sleep(step.delayMs);
		}
	}
}
