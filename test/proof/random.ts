/** Seeded randomness, so that a failure can be repeated. */

import { seed as runSeed } from "../seed.ts";

export interface Random {
	readonly seed: number;
	/** A whole number from `low` to `high`, both included. */
	between(low: number, high: number): number;
	/** In another order. */
	shuffled<T>(list: readonly T[]): T[];
}

/** mulberry32 */
export function seededRandom(seed = runSeed): Random {
	let state = seed >>> 0;
	const next = () => {
		state = (state + 0x6d2b79f5) >>> 0;
		let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
		mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
	};
	const between = (low: number, high: number) => low + Math.floor(next() * (high - low + 1));
	return {
		seed,
		between,
		shuffled(list) {
			const left = [...list];
			return list.map(() => left.splice(between(0, left.length - 1), 1)[0]!);
		},
	};
}
