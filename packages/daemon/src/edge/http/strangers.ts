/** Limits of callers on both ports together: open requests and calls without a token, and the streams of each application. */

import type { EventEmitter } from "node:events";
import { isIPv6 } from "node:net";
import { NexusError } from "@nexus-stream/protocol";
import { type Clock, elapsing } from "@nexus-stream/protocol/clock";
import type { EdgeLimits, Principal } from "../port.ts";

export type Strangers = ReturnType<typeof createStrangers>;

type StrangerLimits = Pick<
	EdgeLimits,
	"tokenlessRequestsMax" | "tokenlessRequestsPerClientMax" | "tokenlessCallsPerSecondMax" | "tokenlessRefusedMs"
>;

interface Open {
	key: string;
	cut(): void;
}

/** Addresses whose calls are remembered; beyond it the oldest is forgotten. */
const ADDRESSES_MAX = 10_000;
/** A client may call at once what it may call in so many seconds. */
const BURST_SECONDS = 2;

/** Whom limits count by: one customer of an IPv6 network has a whole /64. */
export function clientKey(address: string): string {
	if (!isIPv6(address) || address.includes(".")) return address;
	const [head = "", tail] = address.split("::");
	const groups = head === "" ? [] : head.split(":");
	const last = tail === undefined || tail === "" ? [] : tail.split(":");
	const zeros = tail === undefined ? 0 : 8 - groups.length - last.length;
	return [...groups, ...Array<string>(zeros).fill("0"), ...last].slice(0, 4).join(":");
}

export function createStrangers(limits: StrangerLimits, clock: Clock) {
	const all = new Set<Open>();
	const byClient = new Map<string, Set<Open>>();
	const paces = createPaces(limits, elapsing(clock));
	let refused = 0;
	const remove = (open: Open) => {
		if (!all.delete(open)) return;
		const own = byClient.get(open.key);
		own?.delete(open);
		if (own?.size === 0) byClient.delete(open.key);
	};
	const cutOldest = (of: Iterable<Open>) => {
		for (const open of of) {
			remove(open);
			refused++;
			open.cut();
			return;
		}
	};
	return {
		/**
		 * Counts a request until `ended` closes. At a limit the oldest request is cut: a request that arrives whole is answered within moments,
		 * so the oldest one waits for its body or for its reader, and a person who signs in finds room.
		 */
		enter(address: string, ended: EventEmitter, cut: () => void): void {
			const key = clientKey(address);
			const own = byClient.get(key);
			if (own && own.size >= limits.tokenlessRequestsPerClientMax) cutOldest(own);
			else if (all.size >= limits.tokenlessRequestsMax) cutOldest(all);
			const open: Open = { key, cut };
			all.add(open);
			const mine = byClient.get(key) ?? new Set();
			byClient.set(key, mine.add(open));
			ended.once("close", () => remove(open));
		},
		/** Counts a call of the gRPC port, or its reset; false while the address is refused for too many. */
		calls(address: string): boolean {
			const isAllowed = paces.take(clientKey(address));
			if (!isAllowed) refused++;
			return isAllowed;
		},
		/** Whether the client with this key is refused now. */
		refuses: paces.isRefused,
		/** Requests that were cut and calls that were refused, since start. */
		get refused(): number {
			return refused;
		},
	};
}

interface AddressRate {
	/** Calls that count, of which `perSecondMax` are forgotten in a second. */
	level: number;
	at: number;
	refusedUntil: number;
}

function createPaces({ tokenlessCallsPerSecondMax, tokenlessRefusedMs }: StrangerLimits, now: () => number) {
	const paces = new Map<string, AddressRate>();
	return {
		isRefused: (key: string): boolean => now() < (paces.get(key)?.refusedUntil ?? 0),
		take(key: string): boolean {
			const time = now();
			const pace = paces.get(key) ?? { level: 0, at: time, refusedUntil: 0 };
			if (time < pace.refusedUntil) return false;
			pace.level = Math.max(0, pace.level - ((time - pace.at) / 1000) * tokenlessCallsPerSecondMax) + 1;
			pace.at = time;
			paces.delete(key);
			paces.set(key, pace);
			forgetOldest(paces, ADDRESSES_MAX);
			if (pace.level <= tokenlessCallsPerSecondMax * BURST_SECONDS) return true;
			pace.refusedUntil = time + tokenlessRefusedMs;
			return false;
		},
	};
}

/** Drops the entries that were added first, down to a size. */
export function forgetOldest(entries: Map<string, unknown>, sizeMax: number): void {
	for (const oldest of entries.keys()) {
		if (entries.size <= sizeMax) return;
		entries.delete(oldest);
	}
}

type Holder = Pick<Principal, "owner" | "appId">;

/** Counts one more stream of the caller until `ended` closes; throws `busy` at its limit. The owner's are limited with all others only. */
export type HoldStream = (holder: Holder | undefined, ended: EventEmitter) => void;

/** No application is called so. */
const NOBODY = "";

export function createShares({ streamsPerAppMax, streamsTokenlessMax }: EdgeLimits): HoldStream {
	const counts = createCounts();
	return (holder, ended) => {
		if (holder?.owner) return;
		const key = holder?.appId ?? NOBODY;
		const most = key === NOBODY ? streamsTokenlessMax : streamsPerAppMax;
		if (counts.of(key) >= most) throw tooMany(key, most);
		counts.add(key, ended);
	};
}

const tooMany = (appId: string, most: number): NexusError =>
	new NexusError(
		"busy",
		appId === NOBODY
			? `${most} streams without a token are open already: send a token, or ask with Check`
			: `${appId} has ${most} streams open already; close one or try later`,
	);

/** How many of something each of several has open. */
export function createCounts() {
	const counts = new Map<string, number>();
	const of = (key: string) => counts.get(key) ?? 0;
	return {
		of,
		/** Until `ended` closes; returns how many there are now. */
		add(key: string, ended: EventEmitter): number {
			counts.set(key, of(key) + 1);
			ended.once("close", () => {
				const left = of(key) - 1;
				if (left === 0) counts.delete(key);
				else counts.set(key, left);
			});
			return of(key);
		},
	};
}
