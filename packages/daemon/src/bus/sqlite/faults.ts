/** Faults of a unit, a commit or a stored record. */

import { NexusError, type RefusalKind, Refused, wordsOf } from "@nexus-stream/protocol";
import { sqliteFailure } from "../../std/sqlite.ts";
import { fenced } from "../refusals.ts";
import type { Commit, Committed, UnitOutcome } from "../storage.ts";

/** A unit is to be refused, and the others of its commit are not. */
export class UnitFault extends Error {
	constructor(cause: unknown) {
		super("a unit is refused", { cause });
	}
}

/** A refused unit as a journal row keeps it: its place in the commit, and why. */
export type Refusal = [place: number, kind: RefusalKind, message: string];

export function refusalsIn(text: string | null): Map<number, UnitOutcome> {
	const refusals = JSON.parse(text ?? "[]") as Refusal[];
	return new Map(refusals.map(([place, kind, message]) => [place, { refused: new Refused(kind, message) }]));
}

export function allFenced({ units }: Commit, now: number): Committed {
	return { now, outcomes: new Map(units.map((_, place) => [place, { refused: fenced() }])) };
}

/** Any failure inside a unit refuses that unit; the others of the commit stand. */
export function refusalOf(cause: unknown): Refused {
	if (cause instanceof Refused) return cause;
	const kind = sqliteFailure(cause)?.kind === "duplicate" ? "duplicate" : "conflict";
	return new Refused(kind, wordsOf(cause), { cause });
}

export const damaged = (log: string, offset: number): NexusError =>
	new NexusError(
		"data_loss",
		`the records of ${log} from offset ${offset} on are damaged on disk: restore the data directory from a backup (\`nexus doctor --deep\` lists what is damaged)`,
	);

/** Undefined where the file is damaged: the caller looks elsewhere, or reports what it misses. */
export function unlessCorrupt<T>(read: () => T): T | undefined {
	try {
		return read();
	} catch (cause) {
		if (sqliteFailure(cause)?.kind === "corrupt") return undefined;
		throw cause;
	}
}
