/** Records that commit together with the change they describe: the audit log, and the events of agents and of memory. */

import type { Reason } from "@nexus-stream/protocol";
import type { Write } from "../../std/write.ts";

export type AuditPayload = Readonly<Record<string, string | number | boolean>>;

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
