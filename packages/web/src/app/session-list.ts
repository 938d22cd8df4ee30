/** The list of sessions, with the approvals and questions that wait for a person in any of them. */

import type { ApprovalJson, SessionJson } from "@nexus-stream/protocol/api";
import { api } from "./api.ts";

/** The daemon's limit per request. */
const SESSIONS_PER_CALL_MAX = 200;

export interface SessionList {
	readonly sessions: readonly SessionJson[];
	/** There are older sessions than these. */
	readonly more: boolean;
	/** The engine that answers; undefined until the daemon has named it. */
	readonly engine?: string;
	/** A script answers instead of a model. */
	readonly scripted: boolean;
	readonly pending: readonly ApprovalJson[];
}

export const NO_SESSIONS: SessionList = { sessions: [], more: false, scripted: false, pending: [] };

export async function readSessionList(wanted: number): Promise<SessionList> {
	const [read, { approvals }] = await Promise.all([readSessions(wanted), api.approvals({ state: "pending" })]);
	return { ...read, pending: approvals };
}

/** The newest sessions. A response has more than the limit when its last sessions were used in the same millisecond. */
export async function readSessions(wanted: number): Promise<Omit<SessionList, "pending">> {
	const sessions: SessionJson[] = [];
	for (;;) {
		const limit = Math.min(SESSIONS_PER_CALL_MAX, wanted - sessions.length);
		const page = await api.sessions({ limit, before: sessions.at(-1)?.updated_at });
		sessions.push(...page.sessions);
		const more = page.sessions.length >= limit;
		const { engine, scripted = false } = page;
		if (!more || sessions.length >= wanted) return { sessions, more, engine: engine || undefined, scripted };
	}
}
