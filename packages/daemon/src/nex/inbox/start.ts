/** How messages become a run: what the queue hands over, and what it gets back. */

import type { Continuation, RunInbox, Saved } from "../../broker/broker.ts";
import type { Turn } from "../../ledger/ledger.ts";
import type { Write } from "../../std/write.ts";
import type { InboxMessage } from "./message.ts";

/** Messages that become a run. */
export interface Start {
	session: string;
	/** Oldest first. */
	messages: readonly InboxMessage[];
	/** What becomes of the messages, to be committed with the run's begin. */
	begin(runId: string): Write[];
	/** What becomes of the messages when the run ends, to be committed beside its turn. */
	settle(turn: Turn): Write[];
	/** What comes during the run and may join it. */
	inbox: RunInbox;
	/** The run that it goes on from: its messages are that one's, and were answered by it. */
	continues?: Continuation;
	/** Whoever sent the message waits to hear that it is safe. */
	patienceMs?: number;
}

export interface Launched {
	/** Resolves once the run's begin is durable; rejects when it could not start. */
	established: Promise<{ runId: string; saved: Promise<Saved> }>;
	/** Stops the run, as soon as it is one. */
	abort(): void;
}
