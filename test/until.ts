/** The one way in which tests wait: for what happened, with one deadline that only a hang reaches. */

import { LIMIT_MS } from "./effort.ts";

/** Under the time limit of a test, so that a hang is reported by what was waited for. */
const DEADLINE_MS = LIMIT_MS - 20_000;
const LOOK_EVERY_MS = 5;

export async function until(
	what: string,
	condition: () => boolean | Promise<boolean>,
	deadlineMs = DEADLINE_MS,
): Promise<void> {
	const deadline = performance.now() + deadlineMs;
	while (!(await condition())) {
		if (performance.now() > deadline) throw new Error(`not within ${deadlineMs} ms: ${what}`);
		await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
	}
}
