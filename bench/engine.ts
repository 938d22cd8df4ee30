/** The agent that is measured: yields tokens in the rhythm that the message asks for. */

import { FILLER, paced, rhythmOf, signal as started } from "./pace.ts";

export default {
	name: "bench",
	async *run(request: { messages: readonly { text: string }[] }, { signal }: { signal: AbortSignal }) {
		const rhythm = rhythmOf(request.messages.at(-1)?.text ?? "");
		if (rhythm.rate === 0) {
			// As a plain agent would: one generator, like the one that the bare server reads.
			if (rhythm.go) await started(rhythm.go);
			for (let made = 0; made < rhythm.tokens && !signal.aborted; made++) yield { type: "text", delta: FILLER };
			return;
		}
		for await (const delta of paced(rhythm)) {
			if (signal.aborted) return;
			yield { type: "text", delta };
		}
	},
};
