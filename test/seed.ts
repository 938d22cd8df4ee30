/**
 * Where what tests leave to chance comes from. By default it is new in every run, and a failure prints its seed: `NEXUS_SEED=<seed> npm test` tries it again.
 * With CI=true it is always the same, because CI answers whether a change is sound: a rare case that the change did not bring must not stop it.
 */

import fc from "fast-check";

const CI_SEED = 20_261_116;

const { NEXUS_SEED, CI } = process.env;

/** Undefined: choose one. */
export const fixedSeed: number | undefined = NEXUS_SEED ? Number(NEXUS_SEED) : CI ? CI_SEED : undefined;

if (fixedSeed !== undefined) fc.configureGlobal({ seed: fixedSeed });
