/** Turns of sessions for workflows: a message in, the settled run out. */

import type { Broker } from "../broker/broker.ts";
import { type Bus, follow } from "../bus/bus.ts";
import type { Ledger, Turn } from "../ledger/ledger.ts";
import type { Accepted, ClientMessage } from "../nex/nex.ts";
import { NexusError } from "../protocol/protocol.ts";
import type { AgentOutcome, AgentTurns } from "../services/services.ts";
import type { Clock } from "../std/clock.ts";

/** A message that waits for its session is looked after this often. */
const QUEUE_LOOK_MS = 200;

interface Parts {
	bus: Bus;
	ledger: Ledger;
	broker: Broker;
	receive(message: ClientMessage): Promise<Accepted>;
	clock: Clock;
}

export function agentTurns({ bus, ledger, broker, receive, clock }: Parts): AgentTurns {
	const settled = async (runId: string): Promise<AgentOutcome | undefined> => {
		const info = await bus.describe(runId);
		// The turn is saved with the end of the log.
		if (info?.sealedAt === undefined && info)
			for await (const _ of follow(await bus.cursor({ log: runId }, info.head)));
		const turn = await ledger.turns.get(runId);
		return turn && outcomeOf(turn);
	};
	const runOf = async (eventId: string): Promise<string> => {
		for (;;) {
			const event = await ledger.inbox.get(eventId);
			if (!event) throw new NexusError("not_found", `the message ${eventId} is gone`);
			const { disposition } = event;
			if ("runId" in disposition && disposition.runId !== undefined) return disposition.runId;
			if (disposition.state !== "queued") {
				const because = "because" in disposition ? `: ${disposition.because}` : "";
				throw new NexusError("precondition", `the message became no run, it was ${disposition.state}${because}`);
			}
			await new Promise<void>((resolve) => clock.after(QUEUE_LOOK_MS, resolve));
		}
	};
	return {
		async start({ session, text, idempotencyKey }) {
			const { eventId, runId } = await receive({ session, text, idempotencyKey });
			const id = runId ?? (await runOf(eventId));
			const outcome = settled(id).then((found) => found ?? unsettled(id));
			return { runId: id, outcome };
		},
		outcomeOf: settled,
		async abort(runId) {
			await broker.abort(runId);
		},
	};
}

const outcomeOf = ({ status, error, reason, messages }: Turn): AgentOutcome => ({
	status,
	text: messages
		.filter(({ role, text, visible }) => role === "assistant" && visible !== false && text !== "")
		.map(({ text }) => text)
		.join("\n\n"),
	...(status !== "completed" && { error: error ?? { code: reason, message: `its run was ${status}` } }),
});

const unsettled = (runId: string): AgentOutcome => ({
	status: "failed",
	text: "",
	error: { code: "unavailable", message: `the turn of ${runId} could not be saved` },
});
