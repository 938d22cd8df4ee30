/** The errors for a provider that cannot do something. */

import { NexusError } from "@nexus-stream/protocol";
import type { ScenarioKind } from "./port.ts";

export const unsupported = (name: string, kind: ScenarioKind): NexusError =>
	new NexusError("precondition", `${name} does not offer ${kind}: use another connector`, {
		reason: "AI_SCENARIO_UNSUPPORTED",
	});
