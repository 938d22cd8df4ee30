/** Turns of sessions for workflows: a message in, the settled run out. */

import { NexusError, type Reason } from "@nexus-stream/protocol";
import type { Broker } from "../../broker/broker.ts";
import { type Bus, follow } from "../../bus/bus.ts";
import { disposedCall, type InboundEvent } from "../../ledger/inbox/port.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Turn } from "../../ledger/turns/port.ts";
import type { Accepted, ClientMessage } from "../../nex/nex.ts";
import type { AgentOutcome, AgentTurns } from "../workflows/port.ts";

interface AgentTurnParts {
	bus: Bus;
	ledger: Ledger;
	broker: Broker;
	receive(message: ClientMessage): Promise<Accepted>;
	/** Takes a message back that waits; a `conflict` once it does not. */
	cancel(eventId: string): Promise<unknown>;
}

export function agentTurns({ bus, ledger, broker, receive, cancel }: AgentTurnParts): AgentTurns {
	const settled = async (runId: string): Promise<AgentOutcome | undefined> => {
		const info = await bus.describe(runId);
		// The turn is saved with the end of the log.
		if (info?.sealedAt === undefined && info)
			for await (const _ of follow(await bus.cursor({ log: runId }, info.head)));
		const turn = await ledger.turns.get(runId);
		return turn && outcomeOf(turn);
	};
	/** Waits behind whatever its session is busy with. */
	const runOf = async (eventId: string): Promise<string> => {
		let wake = () => {};
		const unlisten = bus.listen(disposedCall(eventId), () => wake());
		try {
			for (;;) {
				const changed = new Promise<void>((resolve) => (wake = resolve));
				const runId = runIn(eventId, await ledger.inbox.get(eventId));
				if (runId !== undefined) return runId;
				await changed;
			}
		} finally {
			unlisten();
		}
	};
	return {
		async start({ session, text, idempotencyKey }) {
			const { eventId, runId } = await receive({ session, text, idempotencyKey });
			const begun = runId === undefined ? runOf(eventId) : Promise.resolve(runId);
			const outcome = begun.then(async (id) => (await settled(id)) ?? unsettled(id));
			// A failure to begin rejects `begun` as well, where the caller handles it.
			outcome.catch(() => {});
			return {
				begun,
				outcome,
				async stop() {
					const waits = await cancel(eventId).then(() => true, isConflict);
					if (!waits) await broker.abort(await begun);
				},
			};
		},
		outcomeOf: settled,
		async abort(runId) {
			await broker.abort(runId);
		},
	};
}

/** Undefined while it waits. */
function runIn(eventId: string, event: InboundEvent | undefined): string | undefined {
	if (!event) throw new NexusError("not_found", `the message ${eventId} is gone`);
	const { disposition } = event;
	if ("runId" in disposition && disposition.runId !== undefined) return disposition.runId;
	if (disposition.state === "queued") return undefined;
	const because = "because" in disposition ? `: ${disposition.because}` : "";
	throw new NexusError("precondition", `the message became no run, it was ${disposition.state}${because}`);
}

function isConflict(cause: unknown): false {
	if (cause instanceof NexusError && cause.code === "conflict") return false;
	throw cause;
}

const outcomeOf = ({ status, error, reason, messages }: Turn): AgentOutcome => ({
	status,
	text: messages
		.filter(({ role, text, visible }) => role === "assistant" && visible !== false && text !== "")
		.map(({ text }) => text)
		.join("\n\n"),
	error:
		status !== "completed"
			? { ...(error ?? { code: reason, message: `its run was ${status}` }), ...stopOf(reason, error) }
			: undefined,
});

/** A turn keeps no reason code: only the daemon's own stop aborts a run with an error. */
const stopOf = (reason: Turn["reason"], error: Turn["error"]): { reason?: Reason } =>
	reason === "aborted" && error?.code === "unavailable" ? { reason: "STOPPING" } : {};

const unsettled = (runId: string): AgentOutcome => ({
	status: "failed",
	text: "",
	error: { code: "unavailable", message: `the turn of ${runId} could not be saved` },
});
