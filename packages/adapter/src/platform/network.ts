/** Calls over HTTP: did a failed request reach the platform, downloads with a limit, secrets compared in constant time. */

import { createHash, timingSafeEqual } from "node:crypto";
import type { GuardedFetch } from "../net/guarded-fetch.ts";
import type { InboundMessage, PlatformFault, WireAttachment } from "../port.ts";
import { PlatformError } from "./platform-error.ts";

/** A line to the daemon carries a message with its attachments in base64; more than this would not fit it. */
export const ATTACHMENTS_BYTES_MAX = 2_500_000;

/** Codes of failures before a request could be sent. */
const UNSENT: ReadonlySet<unknown> = new Set([
	"ECONNREFUSED",
	"ENOTFOUND",
	"EAI_AGAIN",
	"EHOSTUNREACH",
	"ENETUNREACH",
	"EADDRNOTAVAIL",
	"UND_ERR_CONNECT_TIMEOUT",
	"CERT_HAS_EXPIRED",
	"DEPTH_ZERO_SELF_SIGNED_CERT",
	"SELF_SIGNED_CERT_IN_CHAIN",
	"UNABLE_TO_VERIFY_LEAF_SIGNATURE",
	"UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
	"ERR_TLS_CERT_ALTNAME_INVALID",
	"ERR_INVALID_URL",
]);

function wasUnsent(cause: unknown): boolean {
	if (!(cause instanceof Error)) return false;
	const { code, syscall } = cause as { code?: unknown; syscall?: unknown };
	if (UNSENT.has(code) || syscall === "connect" || syscall === "getaddrinfo") return true;
	if (cause instanceof AggregateError) return cause.errors.length > 0 && cause.errors.every(wasUnsent);
	return cause.cause !== undefined && wasUnsent(cause.cause);
}

/** The messages of an error and its causes: SDKs hide the telling one behind "fetch failed". */
export function reasonOf(cause: unknown): string {
	if (!(cause instanceof Error)) return String(cause);
	const inner = cause instanceof AggregateError ? cause.errors[0] : cause.cause;
	if (!(inner instanceof Error)) return cause.message;
	return cause.message === "" ? reasonOf(inner) : `${cause.message}: ${reasonOf(inner)}`;
}

/** `unavailable` when the request certainly never left, else `unknown_outcome`. */
export const networkError = (call: string, cause: unknown): PlatformError =>
	new PlatformError(wasUnsent(cause) ? "unavailable" : "unknown_outcome", `${call}: ${reasonOf(cause)}`, { cause });

/** A setting that is an address, without the slash at its end. The error does not quote a wrong one: it may contain a password. */
export function addressOf(setting: string, address: string): string {
	if (/^https?:$/.test(URL.parse(address)?.protocol ?? "")) return address.replace(/\/+$/, "");
	throw new PlatformError("invalid", `${setting} must be an address that begins with https:// or http://.`);
}

export interface NamedRequest extends Pick<RequestInit, "method" | "body"> {
	/** The platform's API as the operator has configured it. */
	home?: string;
	headers?: Record<string, string>;
	signal: AbortSignal;
}

/** Platforms redirect downloads to their file stores. */
const REDIRECTS_MAX = 3;

/** A request to an address that a platform or a message names. The guard checks it and every redirect; headers carry credentials and go to the first origin only. */
export async function fetchNamed(url: string | URL, { home, headers = {}, ...init }: NamedRequest): Promise<Response> {
	const guarded = await guardFor(home);
	let address = new URL(url);
	for (let hops = 0; ; hops++) {
		const own = address.origin === new URL(url).origin ? headers : {};
		const response = await guarded.fetch(address, { ...init, headers: own, redirect: "manual" });
		const next = REDIRECTS.has(response.status) ? response.headers.get("location") : null;
		if (next === null) return response;
		await response.body?.cancel();
		if (init.body !== undefined) throw new Error("the answer is a redirect");
		if (hops === REDIRECTS_MAX) throw new Error(`more than ${REDIRECTS_MAX} redirects`);
		address = new URL(next, address);
	}
}

/** By the address of the platform's API. */
const guards = new Map<string, GuardedFetch>();

async function guardFor(home = ""): Promise<GuardedFetch> {
	const { guardedFetch, hostOf } = await import("../net/guarded-fetch.ts");
	const guard = guards.get(home) ?? guardedFetch({ allow: home === "" ? [] : [hostOf(new URL(home))] });
	guards.set(home, guard);
	return guard;
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** The address of a file that the platform keeps. Credentials go nowhere else: a message may name files that lie elsewhere. */
export function keptAt(platform: string, url: string, home: string, hosts: RegExp): URL {
	const address = URL.parse(url);
	const isTheirs = address?.protocol === "https:" && hosts.test(address.hostname);
	if (address && (isTheirs || address.origin === new URL(home).origin)) return address;
	throw new PlatformError("gone", `it is not kept at ${platform}`);
}

/** Messages behind a stalled download wait for it. */
const DOWNLOAD_MS = 60_000;

export interface DownloadOptions {
	bytesMax: number;
	/** The platform's API as the operator has configured it: it may be anywhere. Every other address has to pass the address guard. */
	home?: string;
	/** For the whole download. */
	timeoutMs?: number;
	headers?: Record<string, string>;
	signal?: AbortSignal;
	/** Inspects the headers of a successful response; throws when the body is not the file. */
	check?(headers: Headers): void;
}

/** The whole body, or an error; never more than `bytesMax` in memory. */
export async function download(url: string | URL, options: DownloadOptions): Promise<Buffer> {
	const { bytesMax, home, timeoutMs = DOWNLOAD_MS, headers = {}, signal, check } = options;
	const chunks: Uint8Array[] = [];
	let bytes = 0;
	try {
		const late = AbortSignal.timeout(timeoutMs);
		const limit = signal ? AbortSignal.any([signal, late]) : late;
		const response = await fetchNamed(url, { home, headers, signal: limit });
		if (!response.ok) throw new PlatformError(faultOfStatus(response.status), `download: HTTP ${response.status}`);
		check?.(response.headers);
		for await (const chunk of response.body ?? []) {
			bytes += chunk.length;
			if (bytes > bytesMax) throw new PlatformError("invalid", `download: larger than ${bytesMax} bytes`);
			chunks.push(chunk);
		}
	} catch (cause) {
		if (cause instanceof PlatformError) throw cause;
		throw new PlatformError("unavailable", `download: ${reasonOf(cause)}`, { cause });
	}
	return Buffer.concat(chunks);
}

function faultOfStatus(status: number): PlatformFault {
	if (status === 429) return "rate_limited";
	if (status === 401 || status === 403) return "denied";
	if (status === 404 || status === 410) return "gone";
	return status >= 500 ? "unavailable" : "invalid";
}

/** A file that a platform announces with a message. */
export interface RemoteFile {
	name: string;
	contentType: string;
	/** Undefined = the platform does not say. */
	bytes?: number;
}

export interface MessageWithFiles<File extends RemoteFile> {
	message: InboundMessage;
	/** To be fetched; messages only name their files. */
	files: readonly File[];
}

/** A message with its files, as far as the limit allows; a note in the text names each file that could not be fetched. */
export async function withFiles<File extends RemoteFile>(
	{ message, files }: MessageWithFiles<File>,
	fetchOne: (file: File, bytesMax: number) => Promise<Buffer>,
	bytesMax = ATTACHMENTS_BYTES_MAX,
): Promise<InboundMessage> {
	const attachments: WireAttachment[] = [];
	const notes: string[] = [];
	let bytesLeft = bytesMax;
	for (const file of files) {
		const { name, contentType } = file;
		if ((file.bytes ?? 0) > bytesLeft) {
			notes.push(`[attachment ${name} is too large: ${file.bytes} bytes]`);
			continue;
		}
		try {
			const data = await fetchOne(file, bytesLeft);
			bytesLeft -= data.length;
			attachments.push({ name, contentType, data: data.toString("base64") });
		} catch (cause) {
			notes.push(`[attachment ${name} could not be fetched: ${reasonOf(cause)}]`);
		}
	}
	const text = [message.text, ...notes].filter((each) => each !== "").join("\n");
	return { ...message, text, attachments: attachments.length > 0 ? attachments : undefined };
}

/** Takes the same time for every wrong guess. */
export function sameSecret(given: string, expected: string): boolean {
	const digest = (text: string) => createHash("sha256").update(text).digest();
	return timingSafeEqual(digest(given), digest(expected));
}
