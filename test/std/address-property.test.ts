/** Over all addresses: only global unicast passes, however an address is spelled or wrapped (Z27). */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { addressKind, urlProblem } from "../../packages/adapter/src/net/address-guard.ts";
import { atEffort } from "../effort.ts";

const numRuns = atEffort(500);

/** First and last IPv4 address of what is not the internet, as numbers: another way of saying it than the guard's. */
const NOT_PUBLIC: readonly (readonly [first: number, last: number])[] = [
	[0x00000000, 0x00ffffff],
	[0x0a000000, 0x0affffff],
	[0x64400000, 0x647fffff],
	[0x7f000000, 0x7fffffff],
	[0xa83f8110, 0xa83f8110],
	[0xa9fe0000, 0xa9feffff],
	[0xac100000, 0xac1fffff],
	[0xc0000000, 0xc00000ff],
	[0xc0000200, 0xc00002ff],
	[0xc0586300, 0xc05863ff],
	[0xc0a80000, 0xc0a8ffff],
	[0xc6120000, 0xc613ffff],
	[0xc6336400, 0xc63364ff],
	[0xcb007100, 0xcb0071ff],
	[0xe0000000, 0xffffffff],
];
const isPublic = (ipv4: number) => !NOT_PUBLIC.some(([first, last]) => ipv4 >= first && ipv4 <= last);

/** All numbers, and those on either side of a border more often than by chance. */
const ipv4 = fc.oneof(
	fc.integer({ min: 0, max: 0xffffffff }),
	fc
		.constantFrom(...NOT_PUBLIC.flat())
		.chain((edge) => fc.integer({ min: -2, max: 2 }).map((by) => Math.min(0xffffffff, Math.max(0, edge + by)))),
);
const dotted = (n: number) => [n >>> 24, (n >>> 16) & 255, (n >>> 8) & 255, n & 255].join(".");
const hex = (n: number) => n.toString(16);
const groups = (n: number) => `${hex(n >>> 16)}:${hex(n & 0xffff)}`;

describe("address guard: all addresses", () => {
	test("Z27: an IPv4 address is public exactly outside of the ranges that are not the internet", () => {
		fc.assert(
			fc.property(ipv4, (n) => {
				expect(addressKind(dotted(n)) === "public").toBe(isPublic(n));
			}),
			{ numRuns },
		);
	});

	test("Z27: wrapped, an address is public exactly when it is public by itself, and never this machine over a gateway", () => {
		fc.assert(
			fc.property(ipv4, fc.integer({ min: 0, max: 0xffff }), (n, rest) => {
				const own = addressKind(dotted(n));
				for (const mapped of [`::ffff:${dotted(n)}`, `::ffff:${groups(n)}`, `0:0:0:0:0:FFFF:${groups(n)}`])
					expect(addressKind(mapped), mapped).toBe(own);
				const gateways = [`64:ff9b::${groups(n)}`, `64:ff9b::${dotted(n)}`, `2002:${groups(n)}::${hex(rest)}`];
				for (const wrapped of gateways) {
					expect(addressKind(wrapped) === "public", wrapped).toBe(isPublic(n));
					expect(addressKind(wrapped), wrapped).not.toBe("loopback");
				}
			}),
			{ numRuns },
		);
	});

	test("Z27: an IPv6 address outside of 2000::/3 is never public, unless it holds a public IPv4 address", () => {
		const group = fc.integer({ min: 0, max: 0xffff });
		fc.assert(
			fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (parts) => {
				const address = parts.map(hex).join(":");
				const holdsIpv4 = /^(?:0:0:0:0:0:ffff|64:ff9b:0:0:0:0):/.test(address);
				if (parts[0]! >> 13 !== 1 && !holdsIpv4) expect(addressKind(address), address).not.toBe("public");
			}),
			{ numRuns },
		);
	});

	test("Z27: whatever number a URL spells an IPv4 address with, it is judged by what is dialled", () => {
		fc.assert(
			fc.property(ipv4, (n) => {
				for (const host of [dotted(n), String(n), `0x${hex(n)}`, `0${n.toString(8)}`, `[::ffff:${groups(n)}]`])
					expect(urlProblem(new URL(`https://${host}/`), {}) === undefined, host).toBe(isPublic(n));
			}),
			{ numRuns },
		);
	});
});
