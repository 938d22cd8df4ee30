/** An offline engine, labelled as scripted, so that the connector `default` offers everything; its text waits in the middle until a test releases it. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Engine } from "@nexus-stream/protocol/engine";

const WORDS = 60;

async function released(gate: string, signal: AbortSignal): Promise<void> {
	const file = join(process.env.NEXUS_TEST_GATES ?? "", gate);
	while (!existsSync(file)) await sleep(10, undefined, { signal });
}

/** `hold <gate>`: 1 2 3 … 60, the second half only after the gate was released. */
const engine: Engine = {
	name: "held",
	scripted: true,
	async *run({ messages }, { signal }) {
		const [, gate = ""] = (messages.at(-1)?.text ?? "").split(" ");
		for (let word = 1; word <= WORDS; word += 1) {
			if (signal.aborted) return;
			if (word === WORDS / 2 + 1) await released(gate, signal);
			yield { type: "text", delta: `${word} ` };
		}
		yield { type: "usage", input: 1, output: WORDS };
	},
};

export default engine;
