/** The one way in which tests wait: for what happened, with one deadline that only a hang reaches. */

import { LIMIT_MS } from "./effort.ts";

/** Under the time limit of a test, so that a hang is reported by what was waited for. */
const DEADLINE_MS = LIMIT_MS - 20_000;
const LOOK_EVERY_MS = 5;
/** Looks without a pause first: a condition that is only a few turns of the event loop away is seen at once. */
const QUICK_LOOKS = 50;

export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
	const deadline = performance.now() + DEADLINE_MS;
	for (let looks = 0; !(await condition()); looks += 1) {
		if (performance.now() > deadline) throw new Error(`not within ${DEADLINE_MS} ms: ${what}`);
		await new Promise((resolve) => (looks < QUICK_LOOKS ? setImmediate(resolve) : setTimeout(resolve, LOOK_EVERY_MS)));
	}
}
