/**
 * What a session's next run can be told of its past, kept ready for the sessions in use: reading a hundred turns again for each
 * new one would cost more than saving it. The Ledger's count of turns says whether what is kept is still all there is.
 */

import type { Ledger } from "../ledger/ledger.ts";
import { type PastTurn, pastTurnOf } from "./context.ts";
import type { BrokerLimits } from "./limits.ts";

const TURNS_PER_PAGE = 16;

interface Kept {
	/** How many turns the session had when this was read. */
	turns: number;
	/** Newest first, as many as a context can hold. */
	past: PastTurn[];
	chars: number;
}

export class History {
	readonly #ledger: Ledger;
	readonly #limits: BrokerLimits;
	/** Least recently used first. */
	readonly #kept = new Map<string, Kept>();
	#chars = 0;

	constructor(ledger: Ledger, limits: BrokerLimits) {
		this.#ledger = ledger;
		this.#limits = limits;
	}

	/** Newest first. */
	async past(session: string): Promise<readonly PastTurn[]> {
		const turns = (await this.#ledger.sessions.get(session))?.turns ?? 0;
		if (turns === 0) return [];
		const before = this.#take(session);
		const missing = before === undefined ? Infinity : turns - before.turns;
		const kept = before?.past ?? [];
		const past = this.#trim(missing > 0 ? [...(await this.#read(session, missing)), ...kept] : kept);
		this.#keep(session, { turns, past, chars: past.reduce((sum, turn) => sum + turn.chars, 0) });
		return past;
	}

	async #read(session: string, count: number): Promise<PastTurn[]> {
		const read: PastTurn[] = [];
		let left = Math.min(count, this.#limits.contextTurnsMax);
		let tokens = 0;
		for (let before: string | undefined; left > 0 && tokens <= this.#limits.contextTokensMax; ) {
			const limit = Math.min(left, TURNS_PER_PAGE);
			const page = await this.#ledger.turns.list({ session, limit, ...(before !== undefined && { before }) });
			for (const turn of page) {
				const past = pastTurnOf(turn);
				tokens += past.tokens;
				read.push(past);
			}
			before = page.at(-1)?.runId;
			left = page.length < limit ? 0 : left - page.length;
		}
		return read;
	}

	/** Without what no context has room for. */
	#trim(past: PastTurn[]): PastTurn[] {
		let tokens = 0;
		const end = past.findIndex((turn, n) => {
			tokens += turn.tokens;
			return n >= this.#limits.contextTurnsMax || tokens > this.#limits.contextTokensMax;
		});
		return end < 0 ? past : past.slice(0, end);
	}

	#take(session: string): Kept | undefined {
		const kept = this.#kept.get(session);
		if (kept) {
			this.#kept.delete(session);
			this.#chars -= kept.chars;
		}
		return kept;
	}

	#keep(session: string, kept: Kept): void {
		// Two that read at once keep the same session.
		this.#take(session);
		this.#kept.set(session, kept);
		this.#chars += kept.chars;
		for (const oldest of this.#kept.keys()) {
			if (this.#chars <= this.#limits.historyCharsMax) return;
			this.#take(oldest);
		}
	}
}
