/** How a stranger is let in: told a short code once, approved by a person who runs the daemon. */

import type { Pairing, Pairings, Person } from "../../ledger/ledger.ts";
import { NexusError, type Random } from "../../protocol/protocol.ts";
import type { Clock } from "../../std/clock.ts";

export interface PairingLimits {
	/** How long a code can be approved. */
	pairingMs: number;
	/** A sender is told the code again only after this. */
	pairingReplyMs: number;
	/** Codes of one account that wait for approval. */
	pairingsPendingMax: number;
}

export const PAIRING_LIMITS: PairingLimits = {
	pairingMs: 60 * 60_000,
	pairingReplyMs: 10 * 60_000,
	pairingsPendingMax: 100,
};

export interface Stranger extends Person {
	senderName?: string;
	target: Record<string, unknown>;
}

/** `tell` is the code that the sender is to be told now. */
export type PairingAnswer = { because: string; tell?: string };

export interface PairingDesk {
	isPaired(person: Person): boolean;
	/** A stranger has written. */
	ask(stranger: Stranger): PairingAnswer;
	/**
	 * Throws `not_found` for a code that nobody was told, `expired` for one that came too late. `letIn` hears of it once, however often the same
	 * code is entered.
	 */
	approve(code: string, letIn?: (approved: Pairing) => void): Pairing;
	/** Throws `not_found` when the sender was not paired and did not ask. */
	revoke(person: Person): void;
	/** Newest first. */
	list(): Pairing[];
}

/** Without the letters and digits that are mistaken for one another. */
const CODE_ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ";
const CODE_CHARS = 6;

export interface PairingDeskOptions {
	pairings: Pairings;
	clock: Clock;
	random: Random;
	limits: PairingLimits;
}

export function createPairingDesk({ pairings, clock, random, limits }: PairingDeskOptions): PairingDesk {
	const freshCode = (): string => {
		for (;;) {
			const digits = Array.from(
				{ length: CODE_CHARS },
				() => CODE_ALPHABET[Math.floor(random() * CODE_ALPHABET.length)],
			);
			const code = digits.join("");
			if (!pairings.byCode(code)) return code;
		}
	};
	const remind = (known: Pairing, now: number): PairingAnswer => {
		const because = "unknown sender: waits to be paired";
		if (now - known.toldAt < limits.pairingReplyMs) return { because };
		// Who is told it is told how long it is good for.
		pairings.save({ ...known, toldAt: now, expiresAt: now + limits.pairingMs });
		return { because, tell: known.code };
	};
	return {
		isPaired: (person) => pairings.get(person)?.state === "approved",
		ask(stranger) {
			const now = clock.now();
			pairings.expire(now);
			const known = pairings.get(stranger);
			if (known) return remind(known, now);
			if (pairings.pending(stranger.channel, stranger.account) >= limits.pairingsPendingMax)
				return { because: "unknown sender: too many others wait to be paired" };
			const code = freshCode();
			const times = { createdAt: now, toldAt: now, expiresAt: now + limits.pairingMs };
			pairings.save({ ...stranger, code, state: "pending", ...times });
			return { because: "unknown sender: was told how to be paired", tell: code };
		},
		approve(given, letIn) {
			const code = given.replace(/[\s-]/g, "").toUpperCase();
			const known = pairings.byCode(code);
			if (!known)
				throw new NexusError("not_found", `No pending request has the code ${code}; \`nexus pair\` lists them.`);
			if (known.state === "approved") return known;
			const now = clock.now();
			if (known.expiresAt <= now)
				throw new NexusError("expired", `The code ${code} is too old: let the sender write again for a new one.`);
			const approved: Pairing = { ...known, state: "approved", approvedAt: now };
			pairings.save(approved);
			letIn?.(approved);
			return approved;
		},
		revoke(person) {
			if (!pairings.remove(person))
				throw new NexusError("not_found", `${person.sender} is not paired on ${person.channel}/${person.account}.`);
		},
		list() {
			pairings.expire(clock.now());
			return pairings.list();
		},
	};
}
