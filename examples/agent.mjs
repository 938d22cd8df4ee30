// @ts-check
/** A whole agent: an async generator. Returning ends the answer, throwing fails it, `signal` stops it. */

import { setTimeout as sleep } from "node:timers/promises";

/** @satisfies {import("nexus-stream").Engine} */
const parrot = {
	name: "parrot",
	async *run({ messages }, { signal }) {
		yield { type: "text", delta: "You said:" };
		for (const word of messages.at(-1)?.text.split(/\s+/) ?? []) {
			await sleep(50, undefined, { signal });
			yield { type: "text", delta: ` ${word}` };
		}
	},
};

export default parrot;
