/** Phases: what a session works on, since when, and how much was done in it. */

import { type Reading, writesOf } from "../../std/write.ts";

export interface StoredPhase {
	session: string;
	name: string;
	/** In milliseconds since the epoch. */
	since: number;
	/** The one before, and why it was left. */
	from?: string;
	because?: string;
	/** Turns that settled in it. */
	turns: number;
	/** Times that an agent said it had completed its work in it. */
	completions: number;
}

export interface Phases {
	get(session: string): Reading<StoredPhase | undefined>;
}

export interface PhaseOps {
	/** The session has a phase from now on, if it had none. */
	begin(session: string, name: string, at: number): void;
	/** Leaves the previous phase, whatever it was. Entering the current phase again changes nothing. */
	enter(session: string, name: string, because: string, at: number): void;
	/** Adds to what was done in it; nothing happens in a session without a phase. */
	count(session: string, turns: number, completions: number): void;
}

export const phaseWrites = writesOf<PhaseOps>("phases", ["begin", "enter", "count"]);
