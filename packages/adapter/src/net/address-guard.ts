/** Keeps requests to addresses that others chose away from this machine, its networks and reserved ranges. */

import { BlockList, isIP } from "node:net";

export type AddressKind = "public" | "loopback" | "private" | "link-local" | "metadata" | "reserved";

const KINDS: readonly (readonly [Exclude<AddressKind, "public">, readonly string[]])[] = [
	// Metadata services of clouds, which give credentials to every caller; some are also inside the other ranges.
	["metadata", ["169.254.169.254/32", "168.63.129.16/32", "100.100.100.200/32", "fd00:ec2::254/128"]],
	["loopback", ["127.0.0.0/8", "::1/128"]],
	["private", ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "fec0::/10"]],
	["link-local", ["169.254.0.0/16", "fe80::/10"]],
	[
		"reserved",
		[
			...["0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24"],
			...["203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"],
			...["2001::/23", "2001:db8::/32", "3fff::/20"],
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

/** Undefined when the text is not an IP address. */
export function addressKind(text: string): AddressKind | undefined {
	const address = text.replace(/^\[(.*)\]$/, "$1").replace(/%.*$/, "");
	const version = isIP(address);
	if (version === 0) return undefined;
	const within = version === 6 ? kindWithin(address) : undefined;
	if (within !== undefined) return within;
	const family = version === 6 ? "ipv6" : "ipv4";
	blocks ??= KINDS.map(([kind, ranges]) => ({ kind, list: blockList(ranges) }));
	const special = blocks.find(({ list }) => list.check(address, family))?.kind;
	return special ?? (version === 4 || isGlobalUnicast(address) ? "public" : "reserved");
}

/** 2000::/3. The rest of IPv6 is reserved, or holds an IPv4 address that a gateway would unpack behind the guard. */
const isGlobalUnicast = (address: string): boolean => Number.parseInt(groupsOf(address)[0]!, 16) >> 13 === 1;

/** The kind of the IPv4 address that a mapped, NAT64 or 6to4 address contains, in any spelling; undefined for all other addresses. */
function kindWithin(address: string): AddressKind | undefined {
	const groups = groupsOf(address);
	const prefix = groups.slice(0, 6).join(":");
	const ipv4At = (at: number) => ipv4Of(groups[at]!, groups[at + 1]!);
	// This is the IPv4 address itself; the others lead to it over a gateway.
	if (prefix === "0:0:0:0:0:ffff") return addressKind(ipv4At(6));
	const isNat64 = prefix === "64:ff9b:0:0:0:0";
	if (!isNat64 && groups[0] !== "2002") return undefined;
	// A gateway is not this machine: what it leads to has to be public, and nothing else about it counts.
	const kind = addressKind(ipv4At(isNat64 ? 6 : 1));
	return kind === "public" || kind === "metadata" ? kind : "reserved";
}

/** The eight groups of an IPv6 address. The URL parser has one spelling for each address, without dots. */
function groupsOf(address: string): string[] {
	const spelled = new URL(`http://[${address}]`).hostname.slice(1, -1);
	const [left = "", right] = spelled.split("::");
	const parts = (text: string) => (text === "" ? [] : text.split(":"));
	if (right === undefined) return parts(left);
	const [head, tail] = [parts(left), parts(right)];
	return [...head, ...Array<string>(8 - head.length - tail.length).fill("0"), ...tail];
}

function ipv4Of(highGroup: string, lowGroup: string): string {
	const [high, low] = [Number.parseInt(highGroup, 16), Number.parseInt(lowGroup, 16)];
	return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

export interface GuardRules {
	/** Lets requests to this machine pass, and without TLS; to nowhere else. */
	allowLoopback?: boolean;
	/** Allowed by the operator, also without TLS: `host:port`, or a block of addresses (`isAllowEntry`). */
	allow?: readonly string[];
}

/** The rules and their place in `nexus.yaml`, for the error that refuses an address. */
export interface Guard extends GuardRules {
	/** With a dot at its end. */
	section?: string;
}

/** The guard refused, or there was nothing to dial: nothing was sent. */
export class AddressRefused extends Error {
	readonly refusal: "forbidden" | "unresolved";

	constructor(refusal: AddressRefused["refusal"], message: string, options?: { cause?: unknown }) {
		super(message, options);
		this.name = "AddressRefused";
		this.refusal = refusal;
	}
}

/** An IP address, or a block of them in CIDR notation, as people write it in a configuration. */
export function isAddressBlock(text: string): boolean {
	const [address = "", bits, ...rest] = text.split("/");
	if (isIP(address) === 0 || address.includes("%") || rest.length > 0) return false;
	return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (isIP(address) === 4 ? 32 : 128));
}

/** A host with its port, or an address or a block of them. */
export const isAllowEntry = (text: string): boolean => isAddressBlock(text) || hostAndPort(text) !== undefined;

/** As a URL spells it: in lower case, an IPv6 address in brackets. */
function hostAndPort(text: string): string | undefined {
	const [, host, port] = /^(\[[^\]]+\]|[^:/?#@\s]+):(\d{1,5})$/.exec(text) ?? [];
	const url = host === undefined ? null : URL.parse(`http://${host}`);
	const number = Number(port);
	return url === null || url.hostname === "" || number < 1 || number > 65535 ? undefined : `${url.hostname}:${number}`;
}

export const hostOf = ({ hostname, port, protocol }: URL): string =>
	`${hostname}:${port === "" ? (protocol === "https:" ? 443 : 80) : port}`;

const isListedHost = (url: URL, { allow = [] }: GuardRules): boolean =>
	allow.some((entry) => hostAndPort(entry) === hostOf(url));

/** A block never opens a metadata service: the operator has to name its address and port. */
function isAllowed(url: URL, address: string, kind: AddressKind, rules: GuardRules): boolean {
	const isWritten = addressKind(url.hostname) !== undefined;
	if (kind === "metadata") return isWritten && isListedHost(url, rules);
	if (isListedHost(url, rules)) return true;
	const blocks = (rules.allow ?? []).filter(isAddressBlock);
	return blocks.length > 0 && isWithin(address, blocks);
}

function isWithin(text: string, blocks: readonly string[]): boolean {
	const address = text.replace(/^\[(.*)\]$/, "$1");
	if (isIP(address) === 0) return false;
	const ranges = blocks.map((block) => (block.includes("/") ? block : `${block}/${isIP(block) === 4 ? 32 : 128}`));
	return blockList(ranges).check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}

/** The problem of an address as it is written, before its name is resolved. */
export function urlProblem(url: URL, rules: Guard): string | undefined {
	if (url.protocol !== "https:" && url.protocol !== "http:") return `${url.protocol} is not allowed: use https`;
	if (url.username !== "" || url.password !== "") return "it has a user or a password in it: use a header";
	const kind = addressKind(url.hostname) ?? (isLocalName(url.hostname) ? "loopback" : undefined);
	if (kind !== undefined) return addressProblem(url, { address: url.hostname, kind }, rules);
	if (url.protocol === "https:" || isListedHost(url, rules)) return undefined;
	// Whether it is in one of the operator's blocks is known when the name is resolved.
	return rules.allow?.some(isAddressBlock) ? undefined : "http is not allowed: use https";
}

const isLocalName = (name: string): boolean => /^(?:.+\.)?localhost\.?$/i.test(name);

/** `name`: the name that led to the address. */
export function addressProblem(
	url: URL,
	{ address, kind, name }: { address: string; kind: AddressKind; name?: string },
	rules: Guard,
): string | undefined {
	if (isAllowed(url, address, kind, rules)) return undefined;
	const shown = name === undefined ? address : `${name} (${address})`;
	if (kind === "loopback") {
		if (rules.allowLoopback) return undefined;
		return `${shown} is this machine; \`${rules.section ?? ""}allowLoopback: true\` lets it pass`;
	}
	if (kind !== "public") return `${shown} is a ${kind} address, which is not allowed`;
	return url.protocol === "https:" ? undefined : "http is not allowed: use https";
}
