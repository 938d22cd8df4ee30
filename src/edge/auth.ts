/** Who is calling: the bearer token, the page's cookie that is derived from it, and the one-time codes that a cookie is got with. */

import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";
import { NexusError } from "../protocol/protocol.ts";
import { type Clock, elapsing } from "../std/clock.ts";
import type { EdgeLimits } from "./port.ts";

export type Credential = { code: string } | { token: string };

export interface Auth {
	isToken(text: string): boolean;
	/** The value of a cookie that `cookie()` made, still good. */
	isCookie(value: string): boolean;
	/** A fresh cookie value; it outlives restarts because only the token and the clock decide about it. */
	cookie(): string;
	newCode(): string;
	/** Throws `unauthenticated`, or `busy` after too many failures from one address. A code is good once. */
	signIn(credential: Credential, address: string): void;
}

type AuthLimits = Pick<EdgeLimits, "signInCodeMs" | "signInCodesMax" | "signInFailuresPerMinuteMax" | "signedInMs">;

const FAILURE_WINDOW_MS = 60_000;
/** Addresses whose failures are remembered; beyond it the oldest is forgotten. */
const ADDRESSES_MAX = 10_000;

const digest = (text: string): Buffer => hash("sha256", text, "buffer");

/** Takes the same time wherever the texts differ, and whatever their lengths. */
const same = (left: Buffer, right: string): boolean => timingSafeEqual(left, digest(right));

export function createAuth(token: string, limits: AuthLimits, clock: Clock): Auth {
	if (token === "") throw new NexusError("config", "the edge needs a token that is not empty");
	const tokenDigest = digest(token);
	const sign = (expiry: string) => createHmac("sha256", token).update(`nexus cookie ${expiry}`).digest("base64url");
	const codes = createCodes(limits, clock);
	const failures = createFailures(limits.signInFailuresPerMinuteMax, clock);
	const isToken = (text: string) => same(tokenDigest, text);
	return {
		isToken,
		isCookie(value) {
			const [version, expiry = "", signature = "", ...rest] = value.split(".");
			if (version !== "v1" || rest.length > 0 || !/^\d{1,16}$/.test(expiry)) return false;
			return same(digest(sign(expiry)), signature) && Number(expiry) > clock.now();
		},
		cookie() {
			const expiry = String(clock.now() + limits.signedInMs);
			return `v1.${expiry}.${sign(expiry)}`;
		},
		newCode: codes.make,
		signIn(credential, address) {
			failures.check(address);
			if ("token" in credential ? isToken(credential.token) : codes.redeem(credential.code)) return;
			failures.add(address);
			throw new NexusError(
				"unauthenticated",
				"token" in credential
					? "wrong token"
					: "this sign-in link was used already or is too old; run `nexus url` for a new one",
			);
		},
	};
}

/** One-time codes, kept as digests so that looking one up tells nothing by its timing. */
function createCodes(limits: AuthLimits, clock: Clock) {
	const now = elapsing(clock);
	const goodUntil = new Map<string, number>();
	const key = (code: string) => digest(code).toString("base64");
	return {
		make(): string {
			const code = randomBytes(16).toString("base64url");
			goodUntil.set(key(code), now() + limits.signInCodeMs);
			for (const oldest of goodUntil.keys()) {
				if (goodUntil.size <= limits.signInCodesMax) break;
				goodUntil.delete(oldest);
			}
			return code;
		},
		redeem(code: string): boolean {
			const until = goodUntil.get(key(code));
			goodUntil.delete(key(code));
			return until !== undefined && until > now();
		},
	};
}

function createFailures(perMinuteMax: number, clock: Clock) {
	const now = elapsing(clock);
	const windows = new Map<string, { since: number; count: number }>();
	const current = (address: string) => {
		const window = windows.get(address);
		return window && now() - window.since < FAILURE_WINDOW_MS ? window : undefined;
	};
	return {
		check(address: string): void {
			if ((current(address)?.count ?? 0) < perMinuteMax) return;
			throw new NexusError("busy", "too many failed sign-ins; wait a minute");
		},
		add(address: string): void {
			const window = current(address) ?? { since: now(), count: 0 };
			window.count++;
			windows.delete(address);
			windows.set(address, window);
			for (const oldest of windows.keys()) {
				if (windows.size <= ADDRESSES_MAX) break;
				windows.delete(oldest);
			}
		},
	};
}
