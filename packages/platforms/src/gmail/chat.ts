/** The names of one chat on Gmail. */

import type { Target } from "@nexus-stream/adapter";

/** A thread with the same people. A mail without a thread begins one, under its subject. */
export function chatNames({ to, thread_id, subject }: Target): readonly string[] {
	const people = to.split(",").map((each) => (/<([^<>]*)>\s*$/.exec(each)?.[1] ?? each).trim().toLowerCase());
	const begun = typeof subject === "string" ? subject : "";
	return [JSON.stringify([people.toSorted(), thread_id === undefined ? { begun } : thread_id])];
}
