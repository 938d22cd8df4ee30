/** The names of one chat on Signal. */

import type { Target } from "@nexus-stream/adapter";

export const GROUP = "group:";

/** A person has an id and mostly a number. The ids of groups are base64. */
export function chatNames({ to, uuid }: Target): readonly string[] {
	if (to.startsWith(GROUP)) return [to];
	const names = typeof uuid === "string" ? [to, uuid] : [to];
	return names.map((name) =>
		name.replace(/^\+[\d\s().-]+$/, (number) => number.replace(/[\s().-]/g, "")).toLowerCase(),
	);
}
