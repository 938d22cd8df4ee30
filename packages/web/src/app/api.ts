/** The client of the page (same origin, with the cookie of the sign-in), and the list of sessions. */

import {
	createClient,
	createRunFolds,
	type LinkPhase,
	type Source,
	type Stream,
	type StreamOptions,
	type StreamRecord,
} from "@nexus-stream/client";
import { NexusError, type RunView, shownOf } from "@nexus-stream/protocol";
import type { ApprovalJson, SessionJson } from "@nexus-stream/protocol/api";
import type { ScheduleFrame } from "../ui/timing.ts";

const client = createClient({
	// Errors of the daemon are written for people; errors of the client (with a cause) are for programs and are replaced.
	reword: (error, response) =>
		error.cause === undefined ? error : new NexusError(error.code, failureOf(response), { cause: error }),
});

/** The statuses of a gateway that cannot reach the daemon. */
const GATEWAY_STATUSES: readonly number[] = [502, 503, 504];

function failureOf(response: Response | undefined): string {
	if (!response || GATEWAY_STATUSES.includes(response.status)) return "The daemon cannot be reached.";
	if (response.ok) return "Something other than the daemon answered.";
	return `The request failed (HTTP ${response.status}).`;
}

export const { api } = client;

export const openStream = (source: Source, options: StreamOptions): Stream =>
	client.open(source, {
		onDamage: (error) => console.error("nexus:", error.message),
		...options,
		onState(state) {
			if (state.phase === "waiting") console.info("nexus: stream lost:", state.error?.message);
			options.onState?.(state);
		},
	});

/** Follows one run as a reader sees it: `onView` comes at most once per animation frame. */
export function followRun(
	runId: string,
	schedule: ScheduleFrame,
	on: { onView(view: RunView): void; onPhase(phase: LinkPhase): void },
): Stream {
	const folds = createRunFolds();
	let isDue = false;
	const draw = () => {
		isDue = false;
		const view = folds.changed().at(-1);
		if (view) on.onView(shownOf(view));
	};
	const onRecords = (records: readonly StreamRecord[]) => {
		for (const { frame } of records) folds.push(frame);
		if (!isDue) schedule(draw);
		isDue = true;
	};
	return openStream({ run: runId }, { onRecords, onState: ({ phase }) => on.onPhase(phase) });
}

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
