/** A client of the daemon's HTTP API: finds it, asks it, and follows its streams across drops and restarts. */

import { setTimeout as sleep } from "node:timers/promises";
import { createParser } from "eventsource-parser";
import { isErrorCode, NexusError } from "../protocol/protocol.ts";
import { dataPaths, isForAnother, loadConfig, readDaemonRecord, readToken } from "../runtime/runtime.ts";
import { type Host, placeOf } from "./host.ts";
import { Hinted } from "./terminal.ts";

/** How a command is told where the daemon is. */
export interface WhereOptions {
	url?: string;
	token?: string;
	data?: string;
	config?: string;
}

/** Flags, and the environment and folder that speak where there is none. */
interface Route {
	readonly host: Host;
	readonly where: WhereOptions;
}

export interface Address {
	url: string;
	token: string;
}

/** One record of a stream with its offset. */
export interface StreamRecord {
	offset: number;
	text: string;
}

export interface FollowOptions {
	after: number;
	/** Called once per drop, before the first attempt to come back. */
	onDrop?: (because: string) => void;
}

export interface Client {
	get<T>(path: string): Promise<T>;
	post<T>(path: string, body?: unknown): Promise<T>;
	delete<T>(path: string): Promise<T>;
	/** The lines of an NDJSON answer, as they come. */
	lines(path: string): AsyncGenerator<string>;
	/** Every record after an offset, once and in order, until the stream ends for good. */
	follow(path: string, options: FollowOptions): AsyncGenerator<StreamRecord>;
}

const RECONNECT_MS_MAX = 60_000;
/** A stream that was open this long was a good one, also when nothing came over it. */
const STEADY_MS = 5000;
const BACKOFF_MS = [50, 100, 200, 400, 800, 1600, 2000];
/** Longer than several heartbeats: a connection this silent is dead without having said so. */
const SILENCE_MS_MAX = 60_000;

/** The daemon as flags, environment and the data directory say. Asked again on every reconnect: a restart may change the port. */
export async function findDaemon({ host, where }: Route): Promise<Address> {
	const { data, token: given, config: file } = where;
	const config = await loadConfig({ data, token: given, config: file }, placeOf(host));
	const paths = dataPaths(config.data);
	const record = readDaemonRecord(paths);
	const url = askedFor(where.url, "--url") ?? askedFor(host.env.NEXUS_URL || undefined, "NEXUS_URL") ?? record?.url;
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
function askedFor(text: string | undefined, from: string): string | undefined {
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

export function createClient(host: Host, where: WhereOptions): Client {
	const route = { host, where };
	const json = async <T>(method: "GET" | "POST" | "DELETE", path: string, body?: unknown): Promise<T> => {
		const response = await ask(route, method, path, { body });
		return (await response.json().catch((cause: unknown) => {
			throw notNexus(response.url, cause);
		})) as T;
	};
	return {
		get: (path) => json("GET", path),
		post: (path, body) => json("POST", path, body),
		delete: (path) => json("DELETE", path),
		async *lines(path) {
			const response = await ask(route, "GET", path, {});
			let rest = "";
			for await (const text of texts(response)) {
				const parts = (rest + text).split("\n");
				rest = parts.pop()!;
				yield* parts;
			}
			if (rest !== "") yield rest;
		},
		follow: (path, options) => follow(route, path, options),
	};
}

/** One request; anything but an answer in the 200s is thrown as the NexusError it means. */
async function ask(
	route: Route,
	method: string,
	path: string,
	options: { body?: unknown; accept?: string; signal?: AbortSignal },
): Promise<Response> {
	const address = await findDaemon(route);
	const headers: Record<string, string> = {
		authorization: `Bearer ${address.token}`,
		accept: options.accept ?? "application/json",
	};
	if (options.body !== undefined) headers["content-type"] = "application/json";
	let response: Response;
	try {
		response = await fetch(address.url + path, {
			method,
			headers,
			...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
			...(options.signal ? { signal: options.signal } : {}),
		});
	} catch (cause) {
		throw unreachable(address.url, cause);
	}
	if (response.ok) return response;
	throw await refusal(response);
}

function unreachable(url: string, cause: unknown): NexusError {
	const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
	const because = (inner as NodeJS.ErrnoException).code ?? (inner instanceof Error ? inner.message : String(inner));
	return new Hinted(
		new NexusError("unavailable", `cannot reach the daemon at ${url} (${because})`, { cause }),
		"start it with `nexus up`, or check --url",
	);
}

const notNexus = (url: string, cause?: unknown): NexusError =>
	new Hinted(
		new NexusError("unavailable", `what answers at ${new URL(url).origin} is not a Nexus daemon`, { cause }),
		"check --url and NEXUS_URL",
	);

async function refusal(response: Response): Promise<NexusError> {
	const body = await response.text();
	let said: { code?: string; message?: string } = {};
	try {
		said = (JSON.parse(body) as { error?: typeof said }).error ?? {};
	} catch {
		// Not ours (a proxy's page): the status is all there is to say.
	}
	const code = said.code !== undefined && isErrorCode(said.code) ? said.code : "unavailable";
	const error = new NexusError(code, said.message ?? `the daemon answered ${response.status}`);
	if (code === "not_found" && new URL(response.url).pathname.includes("/v1/runs/"))
		return new Hinted(error, "`nexus runs` lists them");
	if (code !== "unauthenticated") return error;
	// What the daemon says is for those who write a request themselves.
	const refused = new NexusError(code, `${new URL(response.url).origin} refuses this token`);
	return new Hinted(refused, "check NEXUS_TOKEN and --token, or name the daemon's --data");
}

/** Pulls a stream; when it drops, comes back after the last record that was seen. */
async function* follow(route: Route, path: string, options: FollowOptions): AsyncGenerator<StreamRecord> {
	let after = options.after;
	let failures = 0;
	let lostAt: number | undefined;
	for (;;) {
		let cause: unknown = new NexusError("unavailable", "the connection was closed");
		let openedAt: number | undefined;
		let good = false;
		try {
			for await (const record of connection(route, `${path}?after=${after}`)) {
				if (record === "gone") return;
				if (record === "open") {
					openedAt = performance.now();
					continue;
				}
				good = true;
				after = record.offset;
				yield record;
			}
		} catch (thrown) {
			if (!isPassing(thrown)) throw thrown;
			cause = thrown;
		}
		// A stream that opens and is cut at once, again and again, is as bad as none.
		if (good || (openedAt !== undefined && performance.now() - openedAt > STEADY_MS)) {
			failures = 0;
			lostAt = undefined;
		}
		if (lostAt === undefined) options.onDrop?.(cause instanceof NexusError ? cause.message : "the connection was cut");
		else if (performance.now() - lostAt > RECONNECT_MS_MAX) throw cause;
		lostAt ??= performance.now();
		await sleep(BACKOFF_MS[Math.min(failures++, BACKOFF_MS.length - 1)]);
	}
}

/** Asks until there is an answer: what was accepted goes on after a restart, and so does whoever waits for it. */
export async function overRestarts<T>(ask: () => Promise<T>, onDrop: (because: string) => void): Promise<T> {
	let lostAt: number | undefined;
	for (let failures = 0; ; failures++) {
		try {
			return await ask();
		} catch (cause) {
			if (!isPassing(cause)) throw cause;
			lostAt ??= performance.now();
			if (failures === 0) onDrop(cause instanceof Error ? cause.message : String(cause));
			else if (performance.now() - lostAt > RECONNECT_MS_MAX) throw cause;
		}
		await sleep(BACKOFF_MS[Math.min(failures, BACKOFF_MS.length - 1)]);
	}
}

/** A daemon that restarts is away, then busy starting. Anything else will not get better by waiting. */
const isPassing = (cause: unknown) => !(cause instanceof NexusError) || cause.code === "unavailable";

async function* connection(route: Route, path: string): AsyncGenerator<StreamRecord | "open" | "gone"> {
	const silence = new AbortController();
	const timer = setTimeout(() => silence.abort(new Error("nothing was heard for too long")), SILENCE_MS_MAX);
	try {
		const response = await ask(route, "GET", path, { accept: "text/event-stream", signal: silence.signal });
		if (response.status === 204) {
			yield "gone";
			return;
		}
		yield "open";
		const ready: StreamRecord[] = [];
		const parser = createParser({
			onEvent: (event) => void ready.push({ offset: Number(event.id), text: event.data }),
		});
		for await (const text of texts(response)) {
			timer.refresh();
			parser.feed(text);
			yield* ready.splice(0);
		}
	} finally {
		clearTimeout(timer);
		// A consumer that stops early must not leave the connection open.
		silence.abort();
	}
}

async function* texts(response: Response): AsyncGenerator<string> {
	if (!response.body) return;
	yield* response.body.pipeThrough(new TextDecoderStream());
}
