/** Which addresses are this machine, its networks or nobody's: requests to addresses that others chose are kept away from them. */

import { BlockList, isIP } from "node:net";

export type AddressKind = "public" | "loopback" | "private" | "link-local" | "metadata" | "reserved";

const KINDS: readonly (readonly [Exclude<AddressKind, "public">, readonly string[]])[] = [
	// Services of clouds that hand out credentials to whoever asks; those within the other ranges are refused as these are.
	["metadata", ["169.254.169.254/32", "168.63.129.16/32", "100.100.100.200/32", "fd00:ec2::254/128"]],
	["loopback", ["127.0.0.0/8", "::1/128"]],
	["private", ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "fec0::/10"]],
	["link-local", ["169.254.0.0/16", "fe80::/10"]],
	[
		"reserved",
		[
			...["0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24"],
			...["203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "ff00::/8", "2001:db8::/32", "100::/64", "3fff::/20"],
			// These hold IPv4 addresses, which a gateway would unpack behind the guard's back.
			...["::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/23"],
		],
	],
];

/** Made when the first address is looked at: most daemons never do. */
let blocks: { kind: AddressKind; list: BlockList }[] | undefined;

function blockList(ranges: readonly string[]): BlockList {
	const list = new BlockList();
	for (const range of ranges) {
		const [address = "", bits] = range.split("/");
		list.addSubnet(address, Number(bits), address.includes(":") ? "ipv6" : "ipv4");
	}
	return list;
}

/** Undefined when the text is no IP address. */
export function addressKind(text: string): AddressKind | undefined {
	const address = text.replace(/^\[(.*)\]$/, "$1").replace(/%.*$/, "");
	const version = isIP(address);
	if (version === 0) return undefined;
	const mapped = version === 6 ? mappedAddress(address) : undefined;
	if (mapped !== undefined) return addressKind(mapped);
	const family = version === 6 ? "ipv6" : "ipv4";
	blocks ??= KINDS.map(([kind, ranges]) => ({ kind, list: blockList(ranges) }));
	return blocks.find(({ list }) => list.check(address, family))?.kind ?? "public";
}

/** The IPv4 address within `::ffff:…`, however that is spelled. */
function mappedAddress(address: string): string | undefined {
	// The URL parser has one spelling for each address, without dots.
	const spelled = new URL(`http://[${address}]`).hostname.slice(1, -1);
	const found = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(spelled);
	if (!found) return undefined;
	const [high, low] = [Number.parseInt(found[1]!, 16), Number.parseInt(found[2]!, 16)];
	return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

export interface GuardRules {
	/** Lets requests to this machine pass, and without TLS; to nowhere else. */
	allowLoopback?: boolean;
}

/** What is wrong with an address as it is written, as far as that can be said without asking for the name. */
export function urlProblem(url: URL, rules: GuardRules): string | undefined {
	if (url.protocol !== "https:" && url.protocol !== "http:") return `${url.protocol} is not allowed: use https`;
	if (url.username !== "" || url.password !== "") return "it has a user or a password in it: use a header";
	const kind = addressKind(url.hostname) ?? (isLocalName(url.hostname) ? "loopback" : undefined);
	if (kind !== undefined) return addressProblem(url, url.hostname, kind, rules);
	return url.protocol === "https:" ? undefined : "http is not allowed: use https";
}

const isLocalName = (name: string): boolean => /^(?:.+\.)?localhost\.?$/i.test(name);

/** `address` is as a person reads it. */
export function addressProblem(url: URL, address: string, kind: AddressKind, rules: GuardRules): string | undefined {
	if (kind === "loopback") {
		if (rules.allowLoopback) return undefined;
		return `${address} is this machine; \`allowLoopback: true\` lets it pass`;
	}
	if (kind !== "public") return `${address} is a ${kind} address, which is not allowed`;
	return url.protocol === "https:" ? undefined : "http is not allowed: use https";
}
