/** Which of an engine's tools a run may use. */

import type { EngineRequest } from "@nexus-stream/protocol/engine";
import { isToolAllowed } from "../tools/tools.ts";

/** In the engine's order. A name that no tool has allows nothing. */
export function allowedTools<Tool extends { name: string }>(tools: readonly Tool[], request: EngineRequest): Tool[] {
	return tools.filter(({ name }) => isToolAllowed(name, request));
}
