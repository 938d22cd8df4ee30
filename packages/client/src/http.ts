/** One HTTP request to the daemon: whatever goes wrong is one NexusError. */

import { type ErrorCode, isErrorCode, NexusError, toNexusError, wordsOf } from "@nexus-stream/protocol";
import type { ErrorJson } from "@nexus-stream/protocol/api";

export interface Address {
	/** Without a slash at its end; empty on the daemon's own page. */
	url: string;
	/** Without one, the browser's cookie has to do. */
	token?: string | undefined;
}

/** The part of the platform's `fetch` that the client uses. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface HttpOptions {
	/** Where the daemon is, `http://127.0.0.1:7777`; without it the page's own origin. */
	url?: string | undefined;
	token?: string | undefined;
	/** Asked before every request instead of `url` and `token`: a daemon that was restarted may be elsewhere. */
	locate?(): Promise<Address>;
	fetch?: Fetch;
	/**
	 * Rewords a failure for the user. `response` is undefined when there was no response, or an incomplete one. An error without a `cause` is
	 * in the daemon's words, any other in the client's.
	 */
	reword?(error: NexusError, response: Response | undefined): NexusError;
}

export type HttpMethod = "GET" | "POST" | "PUT" | "DELETE";

export interface HttpRequestOptions {
	body?: unknown;
	accept?: string;
	signal?: AbortSignal;
}

export interface Http {
	/** An answer in the 200s; any other is thrown. */
	request(method: HttpMethod, path: string, options?: HttpRequestOptions): Promise<Response>;
	json<T>(method: HttpMethod, path: string, body?: unknown): Promise<T>;
}

const NO_URL =
	"give the client the daemon's `url`, for example http://127.0.0.1:7777: outside a browser there is no page whose address it could use";

/** Sends a request to where the daemon is now, with its token. Any status is an answer; throws `unavailable` when nothing answers. */
export type Reach = (path: string, init: RequestInit) => Promise<{ response: Response; address: Address }>;

export function createReach(options: HttpOptions): Reach {
	const { url = "", token, fetch: get = (to, init) => fetch(to, init), reword = (error) => error } = options;
	const fixed: Address = { url: url.replace(/\/+$/, ""), token };

	async function located(): Promise<Address> {
		if (!options.locate) return fixed;
		try {
			return await options.locate();
		} catch (cause) {
			// Keep the message of `locate`: it knows the reason. The next attempt may find the daemon.
			throw toNexusError(cause, "unavailable");
		}
	}

	return async (path, init) => {
		const address = await located();
		const headers = new Headers(init.headers);
		if (address.token !== undefined && !headers.has("authorization"))
			headers.set("authorization", `Bearer ${address.token}`);
		try {
			const response = await get(address.url + path, {
				...init,
				headers: Object.fromEntries(headers),
				cache: "no-store",
				credentials: "same-origin",
			});
			return { response, address };
		} catch (cause) {
			if (cause instanceof NexusError) throw cause;
			if (address.url === "" && codeOf(cause) === "ERR_INVALID_URL") throw new NexusError("invalid", NO_URL, { cause });
			throw reword(unreachable(address.url, cause), undefined);
		}
	};
}

export function createHttp(options: HttpOptions): Http {
	const { reword = (error) => error } = options;
	const reach = createReach(options);

	async function send(method: HttpMethod, path: string, { body, accept, signal }: HttpRequestOptions = {}) {
		const headers: Record<string, string> = { accept: accept ?? "application/json" };
		const init: RequestInit = { method, headers };
		if (body !== undefined) {
			init.body = JSON.stringify(body);
			headers["content-type"] = "application/json";
		}
		if (signal) init.signal = signal;
		const { response, address } = await reach(path, init);
		if (response.ok) return { response, address };
		throw reword(await refusalOf(response), response);
	}

	return {
		request: async (method, path, given) => (await send(method, path, given)).response,
		async json<T>(method: HttpMethod, path: string, body?: unknown) {
			const { response, address } = await send(method, path, { body });
			let text: string;
			try {
				text = await response.text();
			} catch (cause) {
				throw reword(unreachable(address.url, cause), undefined);
			}
			try {
				return JSON.parse(text) as T;
			} catch (cause) {
				const message = `what answers at ${originOf(address, response)} is not a Nexus daemon`;
				throw reword(new NexusError("unavailable", message, { cause }), response);
			}
		},
	};
}

/** A `fetch` that makes its answers itself gives them no address. */
const originOf = ({ url }: Address, response: Response): string =>
	URL.parse(url)?.origin ?? URL.parse(response.url)?.origin ?? "this address";

/** Node hides why behind "fetch failed". */
const innerOf = (cause: unknown): unknown =>
	cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;

const codeOf = (cause: unknown): string | undefined => (innerOf(cause) as { code?: string } | undefined)?.code;

function unreachable(url: string, cause: unknown): NexusError {
	const because = codeOf(cause) ?? wordsOf(innerOf(cause));
	return new NexusError("unavailable", `cannot reach the daemon${url && ` at ${url}`} (${because})`, { cause });
}

/** The error code for a status whose body has none, for example a proxy's error page. */
const CODE_OF_STATUS: Readonly<Record<number, ErrorCode>> = {
	401: "unauthenticated",
	403: "forbidden",
	404: "not_found",
	409: "conflict",
	410: "expired",
	413: "too_large",
	429: "busy",
};

async function refusalOf(response: Response): Promise<NexusError> {
	const isTheirFault = response.status >= 500 || response.status === 408;
	const fallback = CODE_OF_STATUS[response.status] ?? (isTheirFault ? "unavailable" : "invalid");
	const text = await response.text().catch(() => "");
	try {
		const { code, message } = (JSON.parse(text) as ErrorJson).error;
		return new NexusError(isErrorCode(code) ? code : fallback, message);
	} catch (cause) {
		return new NexusError(fallback, `the daemon answered ${response.status}`, { cause });
	}
}

/** The text of a body, piece by piece as it arrives. By hand: not every browser can iterate over a stream. */
export async function* textOf(response: Response): AsyncGenerator<string> {
	if (!response.body) return;
	const reader = response.body.getReader();
	const decoder = new TextDecoder();
	try {
		for (;;) {
			const { done, value } = await reader.read().catch(cut);
			if (done) return;
			yield decoder.decode(value, { stream: true });
		}
	} finally {
		// A reader that stops early must not leave the connection open.
		await reader.cancel().catch(() => {});
	}
}

/** A connection breaks with whatever its platform throws. */
function cut(cause: unknown): never {
	throw new NexusError("unavailable", "the connection was cut", { cause });
}

export async function* linesOf(response: Response): AsyncGenerator<string> {
	let rest = "";
	for await (const text of textOf(response)) {
		const lines = (rest + text).split("\n");
		rest = lines.pop()!;
		yield* lines;
	}
	if (rest !== "") yield rest;
}
