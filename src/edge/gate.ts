/** The gate: every request and every upgrade passes it first. It refuses foreign hosts and origins and says who is calling. */

import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import type { TLSSocket } from "node:tls";
import { NexusError } from "../protocol/protocol.ts";
import type { Principal } from "../services/services.ts";
import { addressKind } from "../std/address-guard.ts";
import type { Auth } from "./auth.ts";
import type { Proxies } from "./proxies.ts";

export interface Caller {
	/** How the caller proved itself, if it did. */
	auth: "bearer" | "cookie" | "none";
	/** The client's own, also behind proxies that are trusted. */
	address: string;
	/** It came over a trusted proxy, whose connection others share. */
	proxied: boolean;
	/** A trusted proxy says that the client speaks https to it. */
	https: boolean;
}

export type GateRequest = Pick<IncomingMessage, "method" | "headers" | "rawHeaders" | "socket" | "url">;

export interface Gate {
	/** Throws `forbidden` for a foreign Host (DNS rebinding) or Origin (another site's page), `invalid` for several Hosts. */
	admit(request: GateRequest): Caller;
	/** For the gRPC port, where a bearer token is all that counts: no page can present one by accident. */
	identify(request: Pick<IncomingMessage, "headers" | "socket">): Caller;
}

const WEBHOOKS = "/v1/webhooks/";

export interface GateFacts {
	auth: Auth;
	/** Names that a Host may carry besides localhost and IP addresses, in lower case. */
	hosts(): ReadonlySet<string>;
	cookieName(): string;
	proxies: Proxies;
}

export function requireAuth(caller: Caller): void {
	if (caller.auth !== "none") return;
	throw new NexusError(
		"unauthenticated",
		"send `Authorization: Bearer <token>`, or open the sign-in link that `nexus url` prints",
	);
}

/** On whose behalf a route calls a service. */
export const principalOfCaller = ({ address, https }: Caller): Principal => ({
	owner: true,
	address,
	isPrivate: https || addressKind(address) === "loopback",
});

export function createGate(facts: GateFacts): Gate {
	return {
		admit(request) {
			const { headers } = request;
			checkOneHost(request.rawHeaders);
			const host = hostOf(request);
			checkHost(host, facts.hosts());
			const client = facts.proxies.clientOf(request);
			// Platforms prove themselves by a signature that the adapter checks; they have no credential of ours to be misused.
			if (isWebhook(request.url ?? "")) return { auth: "none", ...client };
			const cookie = cookieOf(headers.cookie, facts.cookieName());
			const auth = credentialOf(headers, cookie, facts.auth);
			const origin = headers.origin;
			const sameOrigin = origin !== undefined && isSameOrigin(origin, host);
			if (origin !== undefined && !sameOrigin && !(auth === "bearer" && cookie === undefined)) {
				throw new NexusError("forbidden", "pages of other sites may not call this daemon");
			}
			const changes = request.method !== "GET" && request.method !== "HEAD";
			if (auth === "cookie" && !sameOrigin && (changes || headers.upgrade !== undefined)) {
				throw new NexusError("forbidden", "a signed-in page must send its Origin with this request");
			}
			return { auth, ...client };
		},
		identify(request) {
			const { headers, socket } = request;
			const client = facts.proxies.clientOf(request);
			const https = client.https || (socket as Partial<TLSSocket>).encrypted === true;
			return { auth: isBearer(headers, facts.auth) ? "bearer" : "none", ...client, https };
		},
	};
}

/** A target that is a whole URL, as for a proxy, names the host; the header then counts for nothing (RFC 9112, 3.2.2). */
const hostOf = ({ url = "/", headers }: Pick<IncomingMessage, "headers" | "url">): string | undefined =>
	url.startsWith("/") ? headers.host : (URL.parse(url)?.host ?? headers.host);

/** As the router sees it, which resolves `..`: nothing else may pass unchecked under this name. */
const isWebhook = (target: string): boolean =>
	target.startsWith(WEBHOOKS) && URL.parse(target, "http://localhost")?.pathname.startsWith(WEBHOOKS) === true;

/** A proxy may have looked at another one than Node, which keeps the first (RFC 9112, 3.2). */
function checkOneHost(rawHeaders: readonly string[]): void {
	let hosts = 0;
	for (let at = 0; at < rawHeaders.length; at += 2) {
		const name = rawHeaders[at]!;
		if (name.length === 4 && name.toLowerCase() === "host") hosts++;
	}
	if (hosts > 1) throw new NexusError("invalid", "send one Host header");
}

function checkHost(host: string | undefined, names: ReadonlySet<string>): void {
	const name = hostNameOf(host ?? "");
	if (name === "localhost" || isIP(name) !== 0 || names.has(name)) return;
	throw new NexusError("forbidden", "this host name is not served here; add it to `allowedHosts` if it is yours");
}

/** The host without port and brackets, in lower case. */
export function hostNameOf(host: string): string {
	const name = host.startsWith("[") ? host.slice(1, host.indexOf("]")) : host.replace(/:\d*$/, "");
	return name.toLowerCase();
}

function isSameOrigin(origin: string, host: string | undefined): boolean {
	const url = URL.parse(origin);
	return url !== null && url.host !== "" && url.host === host?.toLowerCase();
}

function isBearer({ authorization }: IncomingMessage["headers"], auth: Auth): boolean {
	const bearer = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
	return bearer !== undefined && auth.isToken(bearer);
}

function credentialOf(headers: IncomingMessage["headers"], cookie: string | undefined, auth: Auth): Caller["auth"] {
	if (isBearer(headers, auth)) return "bearer";
	if (cookie === undefined || !auth.isCookie(cookie)) return "none";
	// A neighbouring port is the same site to a browser, so SameSite alone would let its pages use the cookie.
	const site = headers["sec-fetch-site"];
	return site === undefined || site === "same-origin" || site === "none" ? "cookie" : "none";
}

function cookieOf(header: string | undefined, name: string): string | undefined {
	for (const pair of header?.split(";") ?? []) {
		const at = pair.indexOf("=");
		if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
	}
	return undefined;
}
