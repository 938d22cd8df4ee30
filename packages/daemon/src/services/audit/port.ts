/** Records that commit together with the change they describe: the audit log, and the events of agents and of memory. */

import type { Reason } from "@nexus-stream/protocol";
import type { Write } from "../../std/write.ts";

export type AuditPayload = Readonly<Record<string, string | number | boolean | undefined>>;

/** Ids and numbers: never the text of a message, an argument or a secret. */
export interface AuditEntry {
	domain: string;
	operation: string;
	appId?: string;
	userId?: string;
	reason?: Reason;
	traceId?: string;
	/** The caller: an address, an account, an agent. */
	caller?: string;
	payload?: AuditPayload;
}

/** Makes the write that commits with what it tells of. */
export type Audit = (entry: AuditEntry) => Write;

const MINUTE_MS = 60_000;
const REPORTED_PER_MINUTE_MAX = 60;

/** Anybody can be refused: in a minute with many refusals the audit log tells of the first ones, and then how many more there were. */
export class Flood {
	#minute = 0;
	#reported = 0;
	#untold = 0;

	/** Undefined: this refusal is only counted. Otherwise how many were only counted since the last recorded one, if any. */
	next(now: number): { untold: number | undefined } | undefined {
		const minute = Math.floor(now / MINUTE_MS);
		if (minute !== this.#minute) this.#reported = 0;
		this.#minute = minute;
		if (this.#reported >= REPORTED_PER_MINUTE_MAX) {
			this.#untold++;
			return undefined;
		}
		this.#reported++;
		const untold = this.#untold || undefined;
		this.#untold = 0;
		return { untold };
	}
}
