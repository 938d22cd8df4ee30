/** A session's settings and phase, and the log of its runs. */

import { type LogEntryJson, NexusError, type PhaseJson } from "@nexus-stream/protocol";
import type { Broker } from "../../broker/broker.ts";
import type { StoredEntry } from "../../ledger/execution/port.ts";
import type { StoredPhase } from "../../ledger/phases/port.ts";
import { defined } from "../../std/defined.ts";
import type { Handlers } from "../http/handler.ts";
import type { EdgeDeps, EdgeLimits } from "../port.ts";

const ENTRIES_DEFAULT = 200;
const BECAUSE = "set by the owner";

export function sessionHandlers({ broker, ledger, trust }: EdgeDeps, { listItemsMax }: EdgeLimits) {
	const settingsOf = async (session: string) => ({ session, trust_history: (await trust?.of(session)) ?? false });
	return {
		getSettings: ({ params: { session } }) => settingsOf(session),
		async setSettings({ params: { session }, body: { trust_history: trusted } }) {
			if (!trust) throw new NexusError("not_found", "sessions have no settings here");
			await trust.set(session, trusted);
			return settingsOf(session);
		},
		getPhase: ({ params: { session } }) => phaseView(broker, session),
		async setPhase({ params: { session }, body: { name, because = BECAUSE } }) {
			await broker.phases.enter(session, name, because);
			return phaseView(broker, session);
		},
		async listLog({ params: { session }, query: { run: runId, before, limit = ENTRIES_DEFAULT } }) {
			const most = Math.min(limit, listItemsMax);
			const entries = await ledger.execution.list({ session, runId, before, limit: most });
			return { entries: entries.toReversed().map(entryView) };
		},
	} satisfies Partial<Handlers>;
}

async function phaseView(broker: Pick<Broker, "phases">, session: string) {
	const { phase, known } = await broker.phases.of(session);
	return { session, phase: phase ? phaseOf(phase) : null, known: known && [...known] };
}

const phaseOf = ({ name, since, from, because, turns, completions }: StoredPhase): PhaseJson =>
	defined({ name, since, from, because, turns, completions });

const entryView = ({ id, runId, at, kind, agent, text, data }: StoredEntry & { id: number }): LogEntryJson =>
	defined({ id, run_id: runId, at, kind, agent, text, data });
