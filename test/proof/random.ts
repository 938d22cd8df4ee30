/** Seeded randomness, so that a failure can be repeated. */

import { seeded } from "../../packages/lab/src/fake.ts";
import { seed as runSeed } from "../seed.ts";

export interface Random {
	readonly seed: number;
	/** A whole number from `low` to `high`, both included. */
	between(low: number, high: number): number;
	/** In another order. */
	shuffled<T>(list: readonly T[]): T[];
}

export function seededRandom(seed = runSeed): Random {
	const next = seeded(seed);
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
