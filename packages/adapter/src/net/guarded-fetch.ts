/** Requests to addresses that others chose: every address of a name is checked, and a checked one is dialled. */

import { lookup } from "node:dns/promises";
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { Readable } from "node:stream";
import { AddressRefused, addressKind, addressProblem, type Guard, urlProblem } from "./address-guard.ts";

export { hostOf } from "./address-guard.ts";

/** All addresses of a name. */
export type ResolveName = (name: string) => Promise<readonly string[]>;

const resolveName: ResolveName = async (name) =>
	(await lookup(name, { all: true, verbatim: true })).map(({ address }) => address);

export interface GuardedFetch {
	/** Whether it could be dialled now. Rejects with `AddressRefused`. */
	check(url: string | URL): Promise<void>;
	/** As `fetch`, for texts and bytes. It follows no redirect: one is an error, or the answer when `redirect` is `manual`. */
	fetch(url: string | URL, init?: RequestInit): Promise<Response>;
	/** Cuts what is still connected. */
	close(): void;
}

/** How long a connection waits for its next request: the chosen server could keep it open for good. */
const IDLE_MS_MAX = 60_000;

/** A name is resolved once for each request; one address of it that is not allowed refuses the name. */
export function guardedFetch(rules: Guard & { resolve?: ResolveName }): GuardedFetch {
	const { resolve = resolveName } = rules;
	// A separate pool: connections from another pool have not been checked.
	const options = { keepAlive: true, timeout: IDLE_MS_MAX };
	const agents = { "http:": new HttpAgent(options), "https:": new HttpsAgent(options) };
	return {
		async check(given) {
			await checkedAddresses(new URL(given), rules, resolve);
		},
		async fetch(given, init = {}) {
			const url = new URL(given);
			const addresses = await checkedAddresses(url, rules, resolve);
			const agent = agents[url.protocol as keyof typeof agents];
			return responseOf(await dial(url, addresses, agent, init), url, init.redirect === "manual");
		},
		close() {
			for (const agent of Object.values(agents)) agent.destroy();
		},
	};
}

async function checkedAddresses(url: URL, rules: Guard, resolve: ResolveName): Promise<readonly string[]> {
	const name = url.hostname.replace(/^\[(.*)\]$/, "$1");
	const written = urlProblem(url, rules);
	if (written !== undefined) throw new AddressRefused("forbidden", `${url.host}: ${written}`);
	if (isIP(name) !== 0) return [name];
	const addresses = await resolve(name).catch((cause: unknown) => {
		const why = (cause as NodeJS.ErrnoException | undefined)?.code ?? "no answer";
		throw new AddressRefused("unresolved", `${name} cannot be resolved (${why})`, { cause });
	});
	if (addresses.length === 0) throw new AddressRefused("unresolved", `${name} has no address`);
	for (const address of addresses) {
		const problem = addressProblem(url, { address, kind: addressKind(address) ?? "reserved", name }, rules);
		if (problem !== undefined) throw new AddressRefused("forbidden", problem);
	}
	return addresses;
}

function dial(
	url: URL,
	addresses: readonly string[],
	agent: HttpAgent | HttpsAgent,
	{ method = "GET", headers, body, signal }: RequestInit,
): Promise<IncomingMessage> {
	const found = addresses.map((address) => ({ address, family: isIP(address) }));
	const pinned: LookupFunction = (_name, { all }, answer) => {
		if (all) answer(null, found);
		else answer(null, found[0]!.address, found[0]!.family);
	};
	const send = url.protocol === "https:" ? httpsRequest : httpRequest;
	const options = {
		method,
		agent,
		lookup: pinned,
		headers: Object.fromEntries(new Headers(headers)),
		signal: signal || undefined,
	};
	return new Promise((resolve, reject) => {
		const request = send(url, options, resolve).on("error", reject);
		if (body === undefined || body === null) request.end();
		else if (typeof body === "string" || body instanceof Uint8Array) request.end(body);
		else request.destroy(new Error("a body has to be a text or bytes"));
	});
}

const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

function responseOf(message: IncomingMessage, url: URL, isManual: boolean): Response {
	const { statusCode: status = 502, statusMessage: statusText = "", headersDistinct } = message;
	if (!isManual && status >= 300 && status < 400 && status !== 304) {
		message.destroy();
		throw new Error(`${url.host} answers with a redirect, which is not followed: configure the address it leads to`);
	}
	const headers = new Headers();
	for (const [name, values = []] of Object.entries(headersDistinct))
		for (const value of values) headers.append(name, value);
	const isBodiless = BODILESS.has(status);
	if (isBodiless) message.resume();
	const body = isBodiless ? null : (Readable.toWeb(message) as ReadableStream);
	return new Response(body, { status, statusText, headers });
}
