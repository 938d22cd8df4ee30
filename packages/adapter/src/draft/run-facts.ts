/** Facts about the run of an answer, read from a line. */

import type { RunFacts } from "../port.ts";

const WORDS = ["agent", "model", "phase"] as const;

/** Ignores absent and invalid fields. */
export function factsOf(line: object): RunFacts {
	const given = line as Record<string, unknown>;
	const words = WORDS.flatMap((name) => (typeof given[name] === "string" ? [[name, given[name]]] : []));
	const counts = Object.entries(given.usage ?? {}).filter(([, count]) => typeof count === "number");
	return { ...Object.fromEntries(words), ...(counts.length > 0 ? { usage: Object.fromEntries(counts) } : {}) };
}
