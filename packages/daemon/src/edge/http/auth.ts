/** Authentication: the owner's token, an application's token, the cookie of a sign-in, and the one-time codes that give a cookie. */

import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";
import { NexusError } from "@nexus-stream/protocol";
import { type Clock, elapsing } from "@nexus-stream/protocol/clock";
import type { EdgeDeps, EdgeLimits, Principal, SignIns } from "../port.ts";
import { clientKey, forgetOldest } from "./strangers.ts";

export type Credential = { code: string } | { token: string };

/** The identity that a caller has proved, and until when that holds. */
export interface Proof {
	by: "owner" | "app" | "sign-in";
	/** The application that the token belongs to. */
	appId?: string;
	/** The sign-in of a page. */
	signInId?: string;
	/** Aborts when it is taken back: what was opened by it ends. */
	ended?: AbortSignal;
}

export type Auth = ReturnType<typeof createAuth>;

export interface AuthParts extends Pick<EdgeDeps, "token" | "apps" | "signIns" | "clock"> {
	limits: AuthLimits;
}

type AuthLimits = Pick<
	EdgeLimits,
	| "signInCodeMs"
	| "signInCodesMax"
	| "signInFailuresPerMinuteMax"
	| "signedInMs"
	| "tokenFailuresPerMinuteMax"
	| "tokenFailureDelayMs"
>;

/** Cookies of version 1 stood for themselves and could not be signed out: they are not taken any more. */
const COOKIE_VERSION = "v2";
const FAILURE_WINDOW_MS = 60_000;
/** Addresses whose failures are remembered; beyond it the oldest is forgotten. */
const ADDRESSES_MAX = 10_000;

const digest = (text: string): Buffer => hash("sha256", text, "buffer");

/** Takes the same time wherever the texts differ, and whatever their lengths. */
const same = (left: Buffer, right: string): boolean => timingSafeEqual(left, digest(right));

export function createAuth({ token, limits, clock, apps, signIns }: AuthParts) {
	if (token === "") throw new NexusError("config", "the edge needs a token that is not empty");
	const tokenDigest = digest(token);
	/** Keyed with the token: a reader of the store learns the ids, but cannot make a cookie from one. */
	const sign = (id: string) => createHmac("sha256", token).update(`nexus sign-in ${id}`).digest("base64url");
	const codes = createCodes(limits, clock);
	const failures = createFailures(limits.signInFailuresPerMinuteMax, clock, signIns);
	const guesses = createFailures(limits.tokenFailuresPerMinuteMax, clock, signIns);
	const isToken = (text: string) => same(tokenDigest, text);
	return {
		/** The sender of this token; undefined if the token is unknown. */
		authenticate(bearer: string): Proof | undefined {
			if (isToken(bearer)) return { by: "owner" };
			const app = apps.authenticate(bearer);
			return app && { by: "app", ...app };
		},
		/** Counts a token that is not good; says for how long its answer is held back. A good token is never held back. */
		refuse: (address: string) => (guesses.add(address) ? limits.tokenFailureDelayMs : 0),
		/** Tokens and codes that were not good, since start. */
		get failures(): number {
			return failures.total + guesses.total;
		},
		/** The sign-in that the cookie belongs to, if the cookie is still valid. */
		byCookie(value: string): Proof | undefined {
			const [version, id = "", signature = "", ...rest] = value.split(".");
			if (version !== COOKIE_VERSION || rest.length > 0) return undefined;
			if (!same(digest(sign(id)), signature)) return undefined;
			const found = signIns.find(id);
			return found && { by: "sign-in", signInId: id, ended: found.ended };
		},
		newCode: codes.make,
		/**
		 * The value of a fresh cookie, which outlives restarts. Rejects with `unauthenticated`, or `busy` after too many failures from one
		 * address; a good token or code signs in all the same. A code is good once.
		 */
		async signIn(credential: Credential, address: string): Promise<string> {
			if ("token" in credential ? isToken(credential.token) : codes.redeem(credential.code)) {
				const { id } = await signIns.open(address, limits.signedInMs);
				return `${COOKIE_VERSION}.${id}.${sign(id)}`;
			}
			if (failures.add(address)) throw new NexusError("busy", "too many failed sign-ins; wait a minute");
			throw new NexusError(
				"unauthenticated",
				"token" in credential
					? "wrong token"
					: "this sign-in link was used already or is too old; run `nexus url` for a new one",
			);
		},
		/** The cookie of that sign-in is worth nothing any more. */
		signOut: (signInId: string, principal: Principal) => signIns.end(signInId, principal),
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
			forgetOldest(goodUntil, limits.signInCodesMax);
			return code;
		},
		redeem(code: string): boolean {
			const until = goodUntil.get(key(code));
			goodUntil.delete(key(code));
			return until !== undefined && until > now();
		},
	};
}

/** Reports the first failure of an address at once, and those of the following minute together. */
function createFailures(perMinuteMax: number, clock: Clock, signIns: Pick<SignIns, "refused">) {
	const now = elapsing(clock);
	const windows = new Map<string, { since: number; count: number }>();
	let total = 0;
	const current = (key: string) => {
		const window = windows.get(key);
		return window && now() - window.since < FAILURE_WINDOW_MS ? window : undefined;
	};
	return {
		/** Says whether there were too many before. */
		add(address: string): boolean {
			total++;
			const key = clientKey(address);
			const known = current(key);
			const window = known ?? { since: now(), count: 0 };
			window.count++;
			if (!known) {
				signIns.refused(address, 1);
				clock.after(FAILURE_WINDOW_MS, () => window.count > 1 && signIns.refused(address, window.count - 1));
			}
			windows.delete(key);
			windows.set(key, window);
			forgetOldest(windows, ADDRESSES_MAX);
			return window.count > perMinuteMax;
		},
		get total() {
			return total;
		},
	};
}
