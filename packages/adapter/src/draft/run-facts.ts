/** What a line tells of the run that an answer comes from. */

import type { RunFacts } from "../port.ts";

const WORDS = ["agent", "model", "phase"] as const;

/** A field that is not there, or not as it should be, is not known. */
export function factsOf(line: object): RunFacts {
	const given = line as Record<string, unknown>;
	const words = WORDS.flatMap((name) => (typeof given[name] === "string" ? [[name, given[name]]] : []));
	const counts = Object.entries(given.usage ?? {}).filter(([, count]) => typeof count === "number");
	return { ...Object.fromEntries(words), ...(counts.length > 0 ? { usage: Object.fromEntries(counts) } : {}) };
}
