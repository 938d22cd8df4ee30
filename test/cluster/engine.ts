/** An engine for daemons that die: it echoes, and a message that says "hold" keeps it busy until its run is stopped. */

import { once } from "node:events";
import type { Engine } from "@nexus-stream/protocol/engine";

export const engine: Engine = {
	name: "held",
	async *run({ messages }, { signal }) {
		const { text = "" } = messages.at(-1) ?? {};
		yield { type: "text", delta: `re ${text}` };
		if (text.includes("hold") && !signal.aborted) await once(signal, "abort");
	},
};
