/** Whom a request comes from when reverse proxies stand in between: their headers are believed only from addresses that are configured. */

import type { IncomingMessage } from "node:http";
import { BlockList, isIP, isIPv4 } from "node:net";
import { isAddressBlock } from "@nexus-stream/adapter/net/address-guard";
import { NexusError } from "@nexus-stream/protocol";

export interface ClientAddress {
	/**
	 * The rightmost address that is not a trusted proxy. If a proxy's headers do not name one, the proxy's own address after a question mark:
	 * a client that garbles the headers must not count as a client on the proxy's own machine.
	 */
	address: string;
	/** The request came over a trusted proxy. */
	proxied: boolean;
	/** A trusted proxy says that its side of the way is https. */
	https: boolean;
}

/** As much of a request as tells whom it comes from. */
interface ProxiedRequest {
	headers: IncomingMessage["headers"];
	socket: Pick<IncomingMessage["socket"], "remoteAddress">;
}

export type Proxies = ReturnType<typeof createProxies>;

interface Hop {
	address: string | undefined;
	proto: string | undefined;
}

/** Throws `config` for what is neither an address nor a CIDR block. */
export function createProxies(trusted: readonly string[]) {
	const list = new BlockList();
	for (const entry of trusted) add(list, entry);
	const isTrusted = (address: string): boolean =>
		trusted.length > 0 && isIP(address) !== 0 && list.check(address, isIPv4(address) ? "ipv4" : "ipv6");
	return {
		isTrusted: (address: string) => isTrusted(plain(address)),
		clientOf({ headers, socket }: ProxiedRequest): ClientAddress {
			const peer = plain(socket?.remoteAddress ?? "");
			if (!isTrusted(peer)) return { address: peer, proxied: false, https: false };
			const paths = [readForwarded(headers.forwarded), readPath(headers["x-forwarded-for"])];
			const told = paths.flatMap((hops) => (hops ? [nearestStranger(hops, peer, isTrusted)] : []));
			// A proxy that writes one of the headers passes the other on as the client sent it: two that differ prove nothing.
			const [first = { address: peer }, ...others] = told;
			const isAgreed = others.every(({ address }) => address === first.address);
			const https = told.some(({ proto }) => proto === "https") || firstOf(headers["x-forwarded-proto"]) === "https";
			return { address: isAgreed ? first.address : unclear(peer), proxied: true, https };
		},
	};
}

function add(list: BlockList, entry: string): void {
	if (!isAddressBlock(entry))
		throw new NexusError("config", `trustedProxies: ${entry} is not an address or CIDR block`);
	const [address = "", bits] = entry.split("/");
	const family = isIPv4(address) ? "ipv4" : "ipv6";
	if (bits === undefined) list.addAddress(address, family);
	else list.addSubnet(address, Number(bits), family);
}

const unclear = (proxy: string): string => `?${proxy}`;

/** Walks from our peer outwards past trusted proxies; a hop that is not an address ends the walk at the proxy that named it. */
function nearestStranger(hops: readonly Hop[], peer: string, isTrusted: (address: string) => boolean) {
	let nearest = { address: peer, proto: undefined as string | undefined };
	for (const { address, proto } of hops.toReversed()) {
		nearest = { address: address ?? unclear(nearest.address), proto };
		if (address === undefined || !isTrusted(address)) break;
	}
	return nearest;
}

/** An IPv4 client of a server that listens on IPv6 too. */
const plain = (address: string): string => (/^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(address) ? address.slice(7) : address);

/** With or without a port; IPv6 in brackets then. Undefined for `unknown`, hidden names and garbage. */
function addressOf(node: string): string | undefined {
	const text = node.trim();
	const bare = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(text)?.[1] ?? text;
	return isIP(bare) === 0 || bare.includes("%") ? undefined : plain(bare.toLowerCase());
}

function readPath(value: string | string[] | undefined): Hop[] | undefined {
	const path = joined(value)?.split(",");
	return path?.map((hop) => ({ address: addressOf(hop), proto: undefined }));
}

/** The browser's protocol comes first; later proxies append the protocol between them. */
const firstOf = (value: string | string[] | undefined): string | undefined =>
	joined(value)?.split(",")[0]?.trim().toLowerCase();

const joined = (value: string | string[] | undefined): string | undefined =>
	Array.isArray(value) ? value.join(",") : value;

/** One `name=value` of RFC 7239 with what ends it. */
const PAIR = /\s*([!#$%&'*+.^_`|~\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s",;]*))\s*([;,]|$)/y;

/** No hop is believed of a header that is not well-formed as a whole: an open quote of the client's would swallow what proxies added. */
function readForwarded(value: string | string[] | undefined): Hop[] | undefined {
	const text = joined(value);
	if (text === undefined) return undefined;
	const hops: Hop[] = [];
	let pairs = new Map<string, string>();
	PAIR.lastIndex = 0;
	while (PAIR.lastIndex < text.length) {
		const found = PAIR.exec(text);
		if (!found) return [{ address: undefined, proto: undefined }];
		const [, name = "", quoted, token = "", end] = found;
		pairs.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, "$1") ?? token);
		if (end === ";") continue;
		hops.push({ address: addressOf(pairs.get("for") ?? ""), proto: pairs.get("proto")?.toLowerCase() });
		pairs = new Map();
	}
	return hops;
}
