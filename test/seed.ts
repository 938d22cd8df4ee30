/**
 * Where what tests leave to chance comes from: the seed that `npm test` prints at its start, so that `NEXUS_SEED=<seed> npm test` repeats the run.
 * With CI=true it is always the same, because CI answers whether a change is sound: a rare case that the change did not bring must not stop it.
 */

import fc from "fast-check";

const CI_SEED = 20_261_116;

const { NEXUS_SEED, CI } = process.env;

export const chooseSeed = (): number =>
	NEXUS_SEED ? Number(NEXUS_SEED) : CI && CI !== "false" ? CI_SEED : Date.now() % 1_000_000;

/** The seed of this run. A file that is run without `npm test` chooses its own, and a failure prints it. */
export const seed = chooseSeed();

fc.configureGlobal({ seed });
