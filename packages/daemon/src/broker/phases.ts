/** The phases of sessions: which names are valid, and how the owner changes one. */

import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Engine } from "@nexus-stream/protocol/engine";
import type { Bus } from "../bus/bus.ts";
import { executionWrites } from "../ledger/execution/port.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { phaseWrites } from "../ledger/phases/port.ts";
import { clippedText } from "./frames/text.ts";
import type { PhasesPort } from "./port.ts";

/** The name comes from a model, a tool or a person. */
const PHASE_CHARS_MAX = 64;

/** Throws `invalid` with the names that are known. */
export function checkPhase(name: string, known: readonly string[] | undefined): void {
	if (known && !known.includes(name))
		throw new NexusError("invalid", `there is no phase "${clippedText(name, 64)}"; the phases are ${known.join(", ")}`);
	if (name === "" || name.length > PHASE_CHARS_MAX)
		throw new NexusError("invalid", `a phase's name has 1 to ${PHASE_CHARS_MAX} characters`);
}

export interface PhasesDeps {
	bus: Pick<Bus, "write">;
	ledger: Pick<Ledger, "phases">;
	engine: Pick<Engine, "phases">;
	clock: Clock;
}

export const sessionPhases = ({ bus, ledger, engine, clock }: PhasesDeps): PhasesPort => ({
	of: async (session) => ({ phase: await ledger.phases.get(session), known: engine.phases }),
	async enter(session, name, because) {
		checkPhase(name, engine.phases);
		const at = clock.now();
		const entry = { session, at, kind: "phase", text: `${name}: ${because}`, data: { phase: name } };
		// A session without a phase leaves the engine's first one.
		const [first = name] = engine.phases ?? [];
		const begin = first === name ? [] : [phaseWrites.begin(session, first, at)];
		await bus.write([...begin, phaseWrites.enter(session, name, because, at), executionWrites.add([entry])]);
	},
});
