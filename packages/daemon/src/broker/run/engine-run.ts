/** Starts the engine: builds its request and opens its iterator. */

import { NexusError } from "@nexus-stream/protocol";
import type { Engine, EngineContext, EngineRequest, EngineYield } from "@nexus-stream/protocol/engine";
import type { Ledger } from "../../ledger/ledger.ts";
import { defined } from "../../std/defined.ts";
import { assembleContext, chosenTurns, contextMessage, userMessage } from "../context.ts";
import type { History } from "../history.ts";
import type { BrokerLimits } from "../limits.ts";
import { type ExecuteRequest, passedOn } from "../port.ts";

export interface EngineRunDeps {
	engine: Engine;
	history: History;
	ledger: Pick<Ledger, "phases">;
	limits: Pick<BrokerLimits, "contextTokensMax" | "toolMs">;
}

/** Reads the past of the session. A run that continues others reads the turns before them, and their checkpoint. */
export async function engineRequestOf(deps: EngineRunDeps, request: ExecuteRequest): Promise<EngineRequest> {
	const { history, limits, engine, ledger } = deps;
	const { session, runId, events, context = [], continues } = request;
	const past = await history.past(session, runId);
	const chain = continues ? chainLength(past) : 0;
	const fresh = [...context.map(contextMessage), ...events.map(userMessage)];
	const turns = chosenTurns(past.slice(chain), fresh, limits.contextTokensMax);
	// Events of the continued runs count as read: their text is in the checkpoint.
	const read = [...turns, ...past.slice(0, chain).toReversed()].flatMap(({ events }) => events);
	const further = await request.reads?.(read);
	const phase = engine.phases ? await ledger.phases.get(session) : undefined;
	return defined({
		session,
		runId,
		messages: assembleContext(turns, fresh),
		attachments: events.at(-1)?.attachments ?? [],
		toolTimeoutMs: limits.toolMs,
		...passedOn({ ...request, ...further }),
		phase: phase && phaseOf(phase),
		continues: continues && continuedOf(continues),
	});
}

/** How many of the newest turns continue each other: a run that continues them gets their checkpoint instead. */
function chainLength(past: readonly { continues: boolean }[]): number {
	const first = past.findIndex(({ continues }) => !continues);
	return first < 0 ? past.length : first + 1;
}

const phaseOf = ({ name, since, from, because }: NonNullable<EngineRequest["phase"]>) => ({
	name,
	since,
	from,
	because,
});

const continuedOf = ({ root: _root, ...continued }: NonNullable<ExecuteRequest["continues"]>) => continued;

export function iteratorOf(engine: Engine, request: EngineRequest, context: EngineContext): AsyncIterator<EngineYield> {
	const answer = engine.run(request, context);
	if (typeof answer?.[Symbol.asyncIterator] === "function") return answer[Symbol.asyncIterator]();
	throw new NexusError(
		"engine_failed",
		`run() of the engine "${engine.name}" gave nothing to iterate over. Declare it as \`async *run(request, { signal })\` and yield events.`,
	);
}
