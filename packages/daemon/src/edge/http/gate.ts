/** The gate: every request and every upgrade passes it first. It refuses foreign hosts and origins and says who is calling. */

import type { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { addressKind } from "@nexus-stream/adapter/net/address-guard";
import { NexusError } from "@nexus-stream/protocol";
import type { Principal } from "../port.ts";
import type { Auth, Proof } from "./auth.ts";
import type { Proxies } from "./proxies.ts";

export interface Caller {
	/** The identity that the caller has proved, if any. */
	proof?: Proof;
	/** The client's own, also behind proxies that are trusted. */
	address: string;
	/** It came over a trusted proxy, whose connection others share. */
	proxied: boolean;
	/** A trusted proxy says that the client speaks https to it. */
	https: boolean;
	/** How long its refusal is held back, because its address sent too many wrong tokens. */
	heldMs?: number;
	/** A platform's, which the webhook's own limits count. */
	webhook?: true;
}

export type GateRequest = Pick<IncomingMessage, "method" | "headers" | "rawHeaders" | "socket" | "url">;

export type RequestGate = ReturnType<typeof createGate>;

/** A request to identify. The connection contributes only its address and whether it is encrypted. */
export interface Identifiable {
	headers: IncomingMessage["headers"];
	socket: Pick<IncomingMessage["socket"], "remoteAddress"> & { encrypted?: boolean };
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
	if (caller.proof) return;
	throw new NexusError(
		"unauthenticated",
		"send `Authorization: Bearer <token>`, or open the sign-in link that `nexus url` prints",
	);
}

/** Deny by default: an application reaches what is made for applications, and nothing else. */
export function requireReach(caller: Caller, isForApps: boolean | undefined): void {
	if (caller.proof?.by !== "app" || isForApps) return;
	throw new NexusError("forbidden", "an application's token does not reach this: use the owner's");
}

/** Calls back when what the caller has proved is taken back, unless the connection has closed before. */
export function whenEnded({ proof }: Caller, connection: Pick<EventEmitter, "once">, cut: () => void): void {
	const ended = proof?.ended;
	if (!ended) return;
	if (ended.aborted) cut();
	else ended.addEventListener("abort", cut, { once: true });
	connection.once("close", () => ended.removeEventListener("abort", cut));
}

/** On whose behalf a route calls a service. */
export function principalOfCaller({ proof, address, https }: Caller): Principal {
	const isPrivate = https || addressKind(address) === "loopback";
	return { ...whoOf(proof), address, isPrivate };
}

/** Owner, application, or unauthenticated. */
const whoOf = (proof: Proof | undefined): Pick<Principal, "owner" | "appId"> =>
	proof?.appId === undefined ? { owner: proof !== undefined } : { owner: false, appId: proof.appId };

export function createGate(facts: GateFacts) {
	return {
		/** Throws `forbidden` for a foreign Host (DNS rebinding) or Origin (another site's page), `invalid` for several Hosts. */
		admit(request: GateRequest): Caller {
			const { headers } = request;
			checkOneHost(request.rawHeaders);
			const host = hostOf(request);
			checkHost(host, facts.hosts());
			const client = facts.proxies.clientOf(request);
			// Platforms prove themselves by a signature that the adapter checks; they have no credential of ours to be misused.
			if (isWebhook(request.url ?? "")) return { ...client, webhook: true };
			const cookie = cookieOf(headers.cookie, facts.cookieName());
			const proof = proofOf(headers, cookie, facts.auth);
			const isPage = proof?.by === "sign-in";
			const origin = headers.origin;
			const sameOrigin = origin !== undefined && isSameOrigin(origin, host);
			if (origin !== undefined && !sameOrigin && !(proof && !isPage && cookie === undefined)) {
				throw new NexusError("forbidden", "pages of other sites may not call this daemon");
			}
			const changes = request.method !== "GET" && request.method !== "HEAD";
			if (isPage && !sameOrigin && (changes || headers.upgrade !== undefined)) {
				throw new NexusError("forbidden", "a signed-in page must send its Origin with this request");
			}
			return { ...client, ...(proof ? { proof } : heldBy(headers, client.address, facts.auth)) };
		},
		/** For the gRPC port, where a bearer token is all that counts: no page can present one by accident. */
		identify(request: Identifiable): Caller {
			const { headers, socket } = request;
			const client = facts.proxies.clientOf(request);
			const https = client.https || socket.encrypted === true;
			const proof = proofOf(headers, undefined, facts.auth);
			return { ...client, https, ...(proof ? { proof } : heldBy(headers, client.address, facts.auth)) };
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

function proofOf(headers: IncomingMessage["headers"], cookie: string | undefined, auth: Auth): Proof | undefined {
	const bearer = bearerIn(headers.authorization);
	const proof = bearer === undefined ? undefined : auth.authenticate(bearer);
	if (proof || cookie === undefined) return proof;
	// A neighbouring port is the same site to a browser, so SameSite alone would let its pages use the cookie.
	const site = headers["sec-fetch-site"];
	return site === undefined || site === "same-origin" || site === "none" ? auth.byCookie(cookie) : undefined;
}

/** A token that is not good counts against its address. */
function heldBy({ authorization }: IncomingMessage["headers"], address: string, auth: Auth): Pick<Caller, "heldMs"> {
	const heldMs = bearerIn(authorization) === undefined ? 0 : auth.refuse(address);
	return heldMs === 0 ? {} : { heldMs };
}

/** The token in an `authorization` header. */
const bearerIn = (header: string | undefined): string | undefined => /^Bearer +(\S+)$/i.exec(header ?? "")?.[1];

function cookieOf(header: string | undefined, name: string): string | undefined {
	for (const pair of header?.split(";") ?? []) {
		const at = pair.indexOf("=");
		if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
	}
	return undefined;
}
