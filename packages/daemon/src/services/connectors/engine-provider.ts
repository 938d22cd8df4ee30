/** Text of the daemon's own engine, asked without a session and without tools: what `default` is where no model can be asked by itself. */

import { newId } from "@nexus-stream/protocol";
import type { Engine, EngineMessage } from "@nexus-stream/protocol/engine";
import type { TextEvent, TextRequest } from "./port.ts";

/** No tool is offered, so none can take longer. */
const TOOL_TIMEOUT_MS = 1000;

export async function* engineText(
	engine: Engine,
	request: TextRequest,
	signal: AbortSignal,
): AsyncGenerator<TextEvent, void> {
	const messages: EngineMessage[] = request.messages.map(({ role, text }) => ({ role, text }));
	if (request.system !== undefined) messages.unshift({ role: "user", text: request.system });
	const runId = newId("run");
	const asked = { session: runId, runId, messages, attachments: [], allowedTools: [], toolTimeoutMs: TOOL_TIMEOUT_MS };
	for await (const yielded of engine.run(asked, { signal })) {
		for (const event of Array.isArray(yielded) ? yielded : [yielded]) {
			if (event.type === "text") {
				if (event.delta !== "") yield { type: "text", delta: event.delta };
			} else if (event.type === "usage") yield { type: "usage", input: event.input, output: event.output };
			else yield { type: "alive" };
		}
	}
}
