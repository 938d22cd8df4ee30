/** How much a run proves: kills, property cases and tokens grow with NEXUS_EFFORT. 1 is `npm test`, 10 is `npm run proof`. */

export const FULL_EFFORT = 10;

export const effort = Number(process.env.NEXUS_EFFORT || 1);
if (!(effort > 0)) throw new Error(`NEXUS_EFFORT must be a positive number, not "${process.env.NEXUS_EFFORT}"`);

/** The time limit of one test or hook, which only a hanging one reaches. A full proof does ten times the work within one test. */
export const LIMIT_MS = 120_000 * Math.max(1, effort);

/** The share of `full`, the count of `npm run proof`, that this run makes; at least `least`. */
export const atEffort = (full: number, least = 1): number => Math.max(least, Math.round((full * effort) / FULL_EFFORT));
