/** The handlers about memory, and how it is told as JSON. */

import { type MemoryJson, type MemoryProvenanceJson, NexusError } from "@nexus-stream/protocol";
import type { MemoryItem, MemoryProvenance } from "../../../services/memory/rows.ts";
import { defined } from "../../../std/defined.ts";
import type { Handlers } from "../../http/handler.ts";
import type { EdgeDeps, EdgeLimits } from "../../port.ts";

const LIMIT_DEFAULT = 50;
const TURNS_STAY = "turns keep what was said in them";

export function memoryHandlers(
	{ rows: { memory }, remembers = false, forget }: EdgeDeps,
	{ listItemsMax }: EdgeLimits,
) {
	const most = (limit = LIMIT_DEFAULT) => Math.min(limit, listItemsMax);
	return {
		async listMemory({ query: { bank, query, limit, before } }) {
			const asked = { limit: most(limit), banks: bank === undefined ? undefined : [bank] };
			const found = query?.trim() ? await memory.search(query, asked) : await memory.list({ ...asked, before });
			return { enabled: remembers, memory: found.map(memoryView) };
		},
		async listMemoryChanges({ query: { limit, before } }) {
			const changes = await memory.changes({ limit: most(limit), before });
			return {
				changes: changes.map(({ provenance, ...change }) => ({ ...change, provenance: provenanceView(provenance) })),
			};
		},
		async forgetMemory({ params: { id } }) {
			if (!forget) throw new NexusError("not_found", `there is no memory ${id}`);
			await forget(id);
			return { forgotten: true, note: TURNS_STAY };
		},
	} satisfies Partial<Handlers>;
}

const provenanceView = ({ runId, ...provenance }: MemoryProvenance): MemoryProvenanceJson =>
	defined({ ...provenance, run_id: runId });

const memoryView = ({ id, bank, text, provenance }: MemoryItem): MemoryJson => ({
	id,
	bank,
	text,
	provenance: provenanceView(provenance),
});
