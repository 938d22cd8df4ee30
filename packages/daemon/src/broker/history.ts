/**
 * The past turns of sessions in use, cached for their next runs: reading them again would cost more than saving a turn. The Ledger's count
 * of turns says whether the cache is complete, and the session's revision whether it is still true (A27).
 */

import type { Ledger } from "../ledger/ledger.ts";
import type { Turn } from "../ledger/turns/port.ts";
import { isInContext, type PastTurn, pastTurnOf } from "./context.ts";
import type { BrokerLimits } from "./port.ts";

const TURNS_PER_PAGE = 16;

/** Overhead per session, so that many sessions with one short turn each cannot fill the memory. */
export const SESSION_CHARS = 512;

interface CachedHistory {
	/** The session's count of turns and its revision at the time of reading. */
	turns: number;
	revision: number;
	/** Newest first, as many as a context can hold. */
	past: PastTurn[];
	chars: number;
	/** The last run that read: it holds the session, so its turn is the next one. */
	lastReader: string | undefined;
}

export class History {
	readonly #ledger: Ledger;
	readonly #limits: BrokerLimits;
	/** Least recently used first. */
	readonly #cached = new Map<string, CachedHistory>();
	#chars = 0;

	constructor(ledger: Ledger, limits: BrokerLimits) {
		this.#ledger = ledger;
		this.#limits = limits;
	}

	/** Newest first. `reader` is the live run of the session that reads, if any. */
	async past(session: string, reader?: string): Promise<readonly PastTurn[]> {
		const at = await this.#stateOf(session);
		const { turns } = at;
		const before = this.#take(session);
		// A cache with more turns than the Ledger holds a turn that was never stored.
		const valid = before && before.turns <= turns && before.revision === at.revision ? before : undefined;
		if (valid?.turns === turns) {
			this.#keep(session, at, valid.past, reader);
			return valid.past;
		}
		const read = await this.#read(session, valid ? turns - valid.turns : Infinity);
		const past = this.#trim([...read, ...(valid?.past ?? [])]);
		// If a turn was saved meanwhile it is unclear whether it was read: do not cache.
		const now = await this.#stateOf(session);
		if (now.turns === turns && now.revision === at.revision) this.#keep(session, at, past, reader);
		return past;
	}

	async #stateOf(session: string): Promise<{ turns: number; revision: number }> {
		const { turns = 0, revision = 0 } = (await this.#ledger.sessions.get(session)) ?? {};
		return { turns, revision };
	}

	/** The turn is durable. It is cached, unless the store may have changed it or another run has read meanwhile. */
	settled(turn: Turn): void {
		const { session, runId } = turn;
		const kept = this.#cached.get(session);
		if (kept === undefined || kept.lastReader !== runId || !isStoredAsItIs(turn)) return;
		const { turns, revision } = kept;
		this.#keep(session, { turns: turns + 1, revision }, this.#trim([pastTurnOf(turn), ...kept.past]));
	}

	async #read(session: string, count: number): Promise<PastTurn[]> {
		const read: PastTurn[] = [];
		let remaining = Math.min(count, this.#limits.contextTurnsMax);
		let tokens = 0;
		for (let before: string | undefined; remaining > 0 && tokens <= this.#limits.contextTokensMax; ) {
			const limit = Math.min(remaining, TURNS_PER_PAGE);
			const page = await this.#ledger.turns.list({ session, limit, before });
			for (const turn of page.filter(isInContext)) {
				const past = pastTurnOf(turn);
				tokens += past.tokens;
				read.push(past);
			}
			before = page.at(-1)?.runId;
			remaining = page.length < limit ? 0 : remaining - page.length;
		}
		return read;
	}

	/** Drops the turns that no context has room for. */
	#trim(past: PastTurn[]): PastTurn[] {
		let tokens = 0;
		const end = past.findIndex((turn, n) => {
			tokens += turn.tokens;
			return n >= this.#limits.contextTurnsMax || tokens > this.#limits.contextTokensMax;
		});
		return end < 0 ? past : past.slice(0, end);
	}

	#take(session: string): CachedHistory | undefined {
		const kept = this.#cached.get(session);
		if (kept) {
			this.#cached.delete(session);
			this.#chars -= kept.chars;
		}
		return kept;
	}

	#keep(session: string, at: { turns: number; revision: number }, past: PastTurn[], reader?: string): void {
		// Two that read at once keep the same session.
		this.#take(session);
		const chars = past.reduce((sum, turn) => sum + turn.chars, SESSION_CHARS);
		this.#cached.set(session, { ...at, past, chars, lastReader: reader });
		this.#chars += chars;
		for (const oldest of this.#cached.keys()) {
			if (this.#chars <= this.#limits.historyCharsMax) return;
			this.#take(oldest);
		}
	}
}

/** Plain text reads back exactly as written. Other turns are read from the store, which may have changed them. */
const isStoredAsItIs = ({ messages, toolCalls }: Turn): boolean =>
	toolCalls.length === 0 &&
	messages.every(
		({ text, attachments, parts, signedReasoning }) =>
			!attachments && !parts && !signedReasoning && text.isWellFormed() && !text.includes("\0"),
	);
