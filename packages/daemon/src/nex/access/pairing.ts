/** How a stranger is let in: told a short code once, approved by a person who runs the daemon. */

import { NexusError, type Random } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Bus } from "../../bus/bus.ts";
import { type Pairing, type Pairings, type Person, pairingWrites } from "../../ledger/ledger.ts";
import { createOrder } from "../inbox/order.ts";

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

export interface PairingService {
	isPaired(person: Person): Promise<boolean>;
	/** A stranger has written. */
	ask(stranger: Stranger): Promise<PairingAnswer>;
	/**
	 * Rejects with `not_found` for a code that nobody was told, `expired` for one that came too late. `letIn` hears of it once, however often the
	 * same code is entered.
	 */
	approve(code: string, letIn?: (approved: Pairing) => void): Promise<Pairing>;
	/** Rejects with `not_found` when the sender was not paired and did not ask. */
	revoke(person: Person): Promise<void>;
	/** Newest first. */
	list(): Promise<Pairing[]>;
}

/** Without the letters and digits that are mistaken for one another. */
const CODE_ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ";
const CODE_CHARS = 6;
/** Whoever wrote or approved waits for it. */
const WRITE_MS_MAX = 1000;

export interface PairingServiceOptions {
	bus: Pick<Bus, "write">;
	pairings: Pairings;
	clock: Clock;
	random: Random;
	limits: PairingLimits;
}

export const pairingText = (code: string): string =>
	`I do not know you yet. To let you in, the person who runs me has to enter:\n\n\`nexus pair ${code}\`\n\nThe code is good for one hour.`;

export function createPairingService({ bus, pairings, clock, random, limits }: PairingServiceOptions): PairingService {
	/** What is read of an account's pairings holds until it is changed (ST11). */
	const inOrder = createOrder();
	const ofAccount = <T>({ channel, account }: Omit<Person, "sender">, work: () => Promise<T>) =>
		inOrder(JSON.stringify([channel, account]), work);
	const save = (pairing: Pairing, ...before: ReturnType<typeof pairingWrites.expire>[]) =>
		bus.write([...before, pairingWrites.save(pairing)], WRITE_MS_MAX);
	const isOver = ({ state, expiresAt }: Pairing, now: number) => state === "pending" && expiresAt <= now;

	const freshCode = async (): Promise<string> => {
		for (;;) {
			const digits = Array.from(
				{ length: CODE_CHARS },
				() => CODE_ALPHABET[Math.floor(random() * CODE_ALPHABET.length)],
			);
			const code = digits.join("");
			if (!(await pairings.byCode(code))) return code;
		}
	};
	const remind = async (known: Pairing, now: number): Promise<PairingAnswer> => {
		const because = "unknown sender: waits to be paired";
		if (now - known.sentAt < limits.pairingReplyMs) return { because };
		// Who is told it is told how long it is good for.
		await save({ ...known, sentAt: now, expiresAt: now + limits.pairingMs });
		return { because, tell: known.code };
	};
	const ask = async (stranger: Stranger): Promise<PairingAnswer> => {
		const now = clock.now();
		const known = await pairings.get(stranger);
		if (known && !isOver(known, now)) return remind(known, now);
		const pending = await pairings.pending(stranger.channel, stranger.account);
		if (pending >= limits.pairingsPendingMax) await bus.write([pairingWrites.expire(now)], WRITE_MS_MAX);
		if ((await pairings.pending(stranger.channel, stranger.account)) >= limits.pairingsPendingMax)
			return { because: "unknown sender: too many others wait to be paired" };
		const code = await freshCode();
		const times = { createdAt: now, sentAt: now, expiresAt: now + limits.pairingMs };
		await save({ ...stranger, code, state: "pending", ...times }, pairingWrites.expire(now));
		return { because: "unknown sender: was told how to be paired", tell: code };
	};
	const byCode = async (code: string): Promise<Pairing> => {
		const known = await pairings.byCode(code);
		if (known) return known;
		throw new NexusError("not_found", `No pending request has the code ${code}; \`nexus pair\` lists them.`);
	};
	return {
		isPaired: async (person) => (await pairings.get(person))?.state === "approved",
		ask: (stranger) => ofAccount(stranger, () => ask(stranger)),
		async approve(given, letIn) {
			const code = given.replace(/[\s-]/g, "").toUpperCase();
			return ofAccount(await byCode(code), async () => {
				const known = await byCode(code);
				if (known.state === "approved") return known;
				const now = clock.now();
				if (isOver(known, now))
					throw new NexusError("expired", `The code ${code} is too old: let the sender write again for a new one.`);
				const approved: Pairing = { ...known, state: "approved", approvedAt: now };
				await save(approved);
				letIn?.(approved);
				return approved;
			});
		},
		revoke: (person) =>
			ofAccount(person, async () => {
				if (!(await pairings.get(person)))
					throw new NexusError("not_found", `${person.sender} is not paired on ${person.channel}/${person.account}.`);
				await bus.write([pairingWrites.remove(person)], WRITE_MS_MAX);
			}),
		async list() {
			const now = clock.now();
			return (await pairings.list()).filter((pairing) => !isOver(pairing, now));
		},
	};
}
