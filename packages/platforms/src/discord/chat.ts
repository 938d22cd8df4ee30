/** The names of one chat on Discord. */

import type { Target } from "@nexus-stream/adapter";

export const PERSON = "user:";

/** A thread is a separate channel. A direct channel has its own id, and the person's. */
export function chatNames({ to, thread_id, user_id }: Target): readonly string[] {
	if (thread_id !== undefined) return [thread_id];
	const person = typeof user_id === "string" ? [`${PERSON}${user_id}`] : [];
	return [to.replace(/^channel:/, ""), ...person];
}
