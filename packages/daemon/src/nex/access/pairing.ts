/** Pairing: an unknown sender gets a short code, which the operator approves. */

import { NexusError, type Random } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { createKeyedQueue } from "@nexus-stream/protocol/keyed-queue";
import type { Bus } from "../../bus/bus.ts";
import { type Pairing, type Pairings, type Person, pairingWrites } from "../../ledger/pairings/port.ts";

export const PAIRING_LIMITS = {
	/** How long a code can be approved. */
	pairingMs: 60 * 60_000,
	/** The code is sent to the same sender again only after this. */
	pairingReplyMs: 10 * 60_000,
	/** Codes of one account that wait for approval. */
	pairingsPendingMax: 100,
};

export interface Stranger extends Person {
	senderName?: string;
	target: Record<string, unknown>;
}

/** `code` is set when it is to be sent to the sender now. */
export type PairingAnswer = { because: string; code?: string };

export type PairingService = ReturnType<typeof createPairingService>;

/** Without letters and digits that look alike. */
const CODE_ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ";
const CODE_CHARS = 6;
/** The sender or the operator waits for the commit. */
const WRITE_MS_MAX = 1000;

export interface PairingServiceOptions {
	bus: Pick<Bus, "write">;
	pairings: Pairings;
	clock: Clock;
	random: Random;
	limits: typeof PAIRING_LIMITS;
}

export const pairingText = (code: string): string =>
	`I don't know you yet. The person who runs me can approve you with:\n\n\`nexus pair ${code}\`\n\nThe code is valid for one hour.`;

export function createPairingService({ bus, pairings, clock, random, limits }: PairingServiceOptions) {
	/** One change of an account's pairings at a time, so that none is based on outdated rows (ST11). */
	const queue = createKeyedQueue();
	const ofAccount = <T>({ channel, account }: Omit<Person, "sender">, work: () => Promise<T>) =>
		queue.run(JSON.stringify([channel, account]), work);
	const save = (pairing: Pairing, ...before: ReturnType<typeof pairingWrites.expire>[]) =>
		bus.write([...before, pairingWrites.save(pairing)], WRITE_MS_MAX);
	const isOver = ({ state, expiresAt }: Pairing, now: number) => state === "pending" && expiresAt <= now;
	const remind = async (pairing: Pairing, now: number): Promise<PairingAnswer> => {
		const because = "unknown sender: waits to be paired";
		if (now - pairing.sentAt < limits.pairingReplyMs) return { because };
		// Resending the code restarts its expiry.
		await save({ ...pairing, sentAt: now, expiresAt: now + limits.pairingMs });
		return { because, code: pairing.code };
	};
	const ask = async (stranger: Stranger): Promise<PairingAnswer> => {
		const now = clock.now();
		const existing = await pairings.get(stranger);
		if (existing && !isOver(existing, now)) return remind(existing, now);
		const pending = await pairings.pending(stranger.channel, stranger.account);
		if (pending >= limits.pairingsPendingMax) await bus.write([pairingWrites.expire(now)], WRITE_MS_MAX);
		if ((await pairings.pending(stranger.channel, stranger.account)) >= limits.pairingsPendingMax)
			return { because: "unknown sender: too many others wait to be paired" };
		const code = await freshCode(pairings, random);
		const times = { createdAt: now, sentAt: now, expiresAt: now + limits.pairingMs };
		await save({ ...stranger, code, state: "pending", ...times }, pairingWrites.expire(now));
		return { because: "unknown sender: got a pairing code", code };
	};
	const byCode = async (code: string): Promise<Pairing> => {
		const pairing = await pairings.byCode(code);
		if (pairing) return pairing;
		throw new NexusError("not_found", `No pending request has the code ${code}; \`nexus pair\` lists them.`);
	};
	return {
		isPaired: async (person: Person) => (await pairings.get(person))?.state === "approved",
		/** Handles a message of an unknown sender. */
		ask: (stranger: Stranger) => ofAccount(stranger, () => ask(stranger)),
		/** Rejects with `not_found` for an unknown code, `expired` for one that is too old. `onApproved` is called once, however often it is entered. */
		async approve(given: string, onApproved?: (approved: Pairing) => void): Promise<Pairing> {
			const code = given.replace(/[\s-]/g, "").toUpperCase();
			return ofAccount(await byCode(code), async () => {
				const pairing = await byCode(code);
				if (pairing.state === "approved") return pairing;
				const now = clock.now();
				if (isOver(pairing, now))
					throw new NexusError("expired", `The code ${code} has expired: ask the sender to write again for a new one.`);
				const approved: Pairing = { ...pairing, state: "approved", approvedAt: now };
				await save(approved);
				onApproved?.(approved);
				return approved;
			});
		},
		/** Rejects with `not_found` when the sender is neither paired nor waits for approval. */
		revoke: (person: Person) =>
			ofAccount(person, async () => {
				if (!(await pairings.get(person)))
					throw new NexusError("not_found", `${person.sender} is not paired on ${person.channel}/${person.account}.`);
				await bus.write([pairingWrites.remove(person)], WRITE_MS_MAX);
			}),
		/** Newest first. */
		async list(): Promise<Pairing[]> {
			const now = clock.now();
			return (await pairings.list()).filter((pairing) => !isOver(pairing, now));
		},
	};
}

async function freshCode(pairings: Pairings, random: Random): Promise<string> {
	for (;;) {
		const chars = Array.from({ length: CODE_CHARS }, () => CODE_ALPHABET[Math.floor(random() * CODE_ALPHABET.length)]);
		const code = chars.join("");
		if (!(await pairings.byCode(code))) return code;
	}
}
