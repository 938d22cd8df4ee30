/** The names of one chat on Telegram. */

import type { Target } from "@nexus-stream/adapter";

/** Public names are the same in any case. Each topic of a forum is a chat. */
export const chatNames = ({ to, thread_id = "" }: Target): readonly string[] => [
	`${to.startsWith("@") ? to.toLowerCase() : to}/${thread_id}`,
];
