/** The agent that is measured: yields tokens in the rhythm that the message asks for. */

import { FILLER, paced, type Rhythm, rhythmOf, signal as started } from "./pace.ts";

const token = () => ({ type: "text", delta: FILLER });

/** As a plain agent would: one generator, like the one that the bare server reads. */
async function* flood({ tokens, go, end, burst = 0 }: Rhythm, signal: AbortSignal) {
	if (go) await started(go);
	for (let made = 0; made < tokens && !signal.aborted; made += burst || 1) {
		if (burst === 0) yield token();
		else yield Array.from({ length: Math.min(burst, tokens - made) }, token);
	}
	if (end) await started(end);
}

async function* inTime(rhythm: Rhythm, signal: AbortSignal) {
	for await (const delta of paced(rhythm)) {
		if (signal.aborted) return;
		yield { type: "text", delta };
	}
}

export default {
	name: "bench",
	run(request: { messages: readonly { text: string }[] }, { signal }: { signal: AbortSignal }) {
		const rhythm = rhythmOf(request.messages.at(-1)?.text ?? "");
		return rhythm.rate === 0 ? flood(rhythm, signal) : inTime(rhythm, signal);
	},
};
