/** The names of one chat on Slack. */

import type { Target } from "@nexus-stream/adapter";

/** A direct channel has its own id, and the person's. Each thread is a chat. */
export function chatNames({ to, thread_id = "", direct, user_id }: Target): readonly string[] {
	const names = direct && typeof user_id === "string" ? [to, user_id] : [to];
	return names.map((name) => `${name}/${thread_id}`);
}
