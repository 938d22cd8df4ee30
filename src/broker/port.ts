/** The Broker runs turns: EngineEvents become StreamEvents and frames on the Bus; a settled run becomes a turn in the Ledger. */

import type { Attachment, EngineRequest } from "../engine/engine.ts";
import type {
	Disposition,
	InboundEvent,
	Origin,
	QueueSettings,
	StoredMessage,
	StoredToolCall,
	Turn,
} from "../ledger/ledger.ts";
import type { StreamEvent } from "../protocol/protocol.ts";

/** What of a request the Broker only passes on. */
export type PassedOn = Pick<EngineRequest, "sender" | "permissions" | "allowedTools" | "agent">;

export interface ExecuteRequest extends PassedOn {
	session: string;
	runId: string;
	/** The inbound events this run answers, in order. */
	events: readonly { eventId: string; text: string; attachments: readonly Attachment[] }[];
	/** Where the answer should go, for consumers that push. Carried in stream.begin. */
	target?: unknown;
	/** The trace that the run is a part of, 32 hex digits; derived from the run's id when left out. */
	traceId?: string;
	/** What the engine is told beside the messages, for this run only. */
	context?: readonly string[];
	/** A message's text becomes one chunk, when it is whole. */
	disableStreaming?: boolean;
}

/** Messages that are about to become a run. */
export interface RunStart {
	session: string;
	runId: string;
	/** Oldest first. */
	events: readonly InboundEvent[];
	/** The engine wants the answer in one piece. */
	disableStreaming: boolean;
}

/** What a turn does not keep. */
export interface RunStats {
	/** Of all streams together. */
	chunks: number;
}

export type RunChanges = Partial<
	Pick<ExecuteRequest, "events" | "target" | "context" | "disableStreaming" | keyof PassedOn>
>;

/** What somebody above the Broker does at the turning points of every run that comes of messages, in this order. After the start a failure is logged and nothing else. */
export interface RunStages {
	/** What to change before the run starts; when it is no promise the run starts at once. Throwing rejects the messages with its words. */
	prepare?(start: RunStart): RunChanges | Promise<RunChanges>;
	/**
	 * What has to be there when the run is: called inside the transaction that makes its begin durable, and again when that has to be tried
	 * again. Throwing refuses the run.
	 */
	starting?(start: RunStart): void;
	/** The run's begin, what became of its messages and what `starting` wrote are durable; the engine goes after this. */
	started?(start: RunStart): void;
	/** The turn as it is to be saved. */
	settling?(turn: Turn): Turn;
	/** The turn is saved. */
	settled?(turn: Turn, stats: RunStats): void;
}

/** Live control over one run. */
export interface RunStream {
	/** Every event from the first on; a late listener gets what it missed. */
	onEvent(listener: (event: StreamEvent) => void): void;
	/** Stops the run; what was said so far is kept. Settles within the grace time (I12). */
	abort(): void;
	isStreaming(): boolean;
	isCompacting(): boolean;
}

export interface Execution {
	stream: RunStream;
	/** Resolves once the first begin is durable; rejects when the run could not be started (I9). */
	established: Promise<void>;
	/** The settled turn. Never rejects after establishment: failure is a turn with status failed. */
	result: Promise<Turn>;
}

export interface Submission {
	session: string;
	text: string;
	attachments?: readonly Attachment[];
	idempotencyKey?: string;
	/** An id of one's own choice; without it one is made. */
	eventId?: string;
	origin?: Origin;
	/** How it waits when the session is busy; without it one after another. */
	queue?: QueueSettings;
	/** The answer is to come in one piece. */
	disableStreaming?: boolean;
	/** The caller's trace, 32 hex digits: its run is a part of it. */
	traceId?: string;
	/** Kept with the event; a JSON object. */
	facts?: Record<string, unknown>;
}

export interface Accepted {
	eventId: string;
	disposition: Disposition;
	runId?: string;
}

/** A run that has not settled yet, as a person would want to see it. */
export interface LiveRun {
	runId: string;
	session: string;
	engine: string;
	status: "running" | "stopping";
	compacting: boolean;
	startedAt: number;
	firstTokenMs?: number;
	/** All that was said so far. */
	text: string;
	/** The user's messages, then what was said so far message by message. */
	messages: readonly StoredMessage[];
	/** Calls so far, in order of starting. */
	toolCalls: readonly LiveToolCall[];
}

/** A tool call of a live run: `started` until it has an outcome. */
export interface LiveToolCall extends Omit<StoredToolCall, "status" | "endedAt"> {
	status: "started" | StoredToolCall["status"];
	endedAt?: number;
}

export interface Broker {
	execute(request: ExecuteRequest): Execution;
	/** The stages that every run goes through from now on. */
	attach(stages: RunStages): void;
	/** Throws what `submit` would say to the shape of a message, for callers that have work to do before it. */
	check(submission: Submission): void;
	/** Takes a message in: starts a run, or lets it wait as its queue settings say, and says which (I10). */
	submit(submission: Submission): Promise<Accepted>;
	/** Stops a live run and waits for its turn; undefined when no such run is live. */
	abort(runId: string): Promise<Turn> | undefined;
	live(runId: string): LiveRun | undefined;
	liveRuns(): LiveRun[];
	/** How many runs have ended and cannot be saved at the moment: they are tried again, and their sessions wait. */
	readonly unsaved: number;
	/** Settles every run that a dead process left behind, and starts what is queued. Call before the port opens. */
	recover(): Promise<{ recovered: number }>;
	/** Refuses new work, waits for runs to end, aborts what is left at the deadline. */
	drain(deadlineMs: number): Promise<void>;
}
