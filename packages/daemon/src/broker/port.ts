/** The Broker runs one turn: EngineEvents become frames on the Bus; the settled run becomes a turn in the Ledger. */

import type { Attachment, Continued, EngineEvent, EngineRequest, ToolApproval } from "../engine/engine.ts";
import type { Requester } from "../ledger/approvals/port.ts";
import type { StoredPhase } from "../ledger/phases/port.ts";
import type { StoredMessage, StoredToolCall, Turn, TurnStatus } from "../ledger/turns/port.ts";
import type { Reading, Write } from "../std/write.ts";
import type { ApprovalsPort } from "./approvals.ts";

/** Fields of a request that the Broker passes to the engine unchanged. */
export type PassedOn = Pick<EngineRequest, (typeof PASSED_ON)[number]>;

const PASSED_ON = [
	"sender",
	"owner",
	"approval",
	"among",
	"agent",
	"allowedAgents",
	"allowedTools",
	"deniedTools",
	"outsideTools",
] as const;

export const passedOn = (request: PassedOn): PassedOn =>
	Object.fromEntries(PASSED_ON.map((name) => [name, request[name]]));

export interface ExecuteRequest extends PassedOn {
	session: string;
	runId: string;
	/** The inbound events this run answers, in order. */
	events: readonly { eventId: string; text: string; attachments: readonly Attachment[] }[];
	/** Further fields for the engine, which depend on the events of earlier runs whose text is in its context. */
	reads?(events: readonly string[]): Promise<Partial<PassedOn>>;
	/** The person on whose behalf approvals are requested, and the chat. */
	requester?: Requester;
	/** Continues an interrupted run of the session: the events are those of that run. */
	continues?: Continuation;
	/** The chat that the answer goes to. Carried in stream.begin. */
	target?: unknown;
	/** The trace that the run is a part of, 32 hex digits; derived from the run's id when left out. */
	traceId?: string;
	/** Context in addition to the messages, for this run only. */
	context?: readonly string[];
	/** Each message's text becomes one chunk when it is whole. */
	disableStreaming?: boolean;
	/** Messages that arrive during the run and may join it. */
	inbox?: RunInbox;
	/** Committed with the run's first begin. If one of these writes is refused, the run is. */
	begin?: readonly Write[];
	/** Returns the writes that commit with the turn. */
	settle?: Settle;
	/** How long the first begin may wait for a store that refuses commits; without it, the store's own limit applies. */
	patienceMs?: number;
}

/** A message that joins a run. */
export interface Joining {
	eventId: string;
	text: string;
	attachments: readonly Attachment[];
	/** Context in addition to the message. */
	context?: readonly string[];
}

/** Appends messages to the run's log together with the writes; false when the run takes no more. */
export type Join = (messages: readonly Joining[], writes: readonly Write[]) => Promise<boolean>;

export interface RunInbox {
	/** Calls `join` with the waiting messages that may join now, if any. */
	take(join: Join): Promise<void>;
}

/** The point from which an interrupted run can be continued. */
export interface Continuation extends Continued {
	/** The first run of the chain of continuations: it has the messages that are answered. */
	root: string;
}

/** Pure: called again for every attempt to save the turn, with the turn of that attempt. */
export type Settle = (turn: Turn) => readonly Write[];

/**
 * The turn as stored, or `lost` when the run's log has ended without one: the session is free for its next run. Undefined when the
 * run did not begin, or this daemon stops before.
 */
export type Saved = Turn | "lost" | undefined;

/** One run, from the call on. */
export interface Execution {
	/** Resolves once the first begin is durable; rejects when the run could not be started (I9). */
	established: Promise<void>;
	/** The settled turn. Never rejects after establishment: failure is a turn with status failed. */
	result: Promise<Turn>;
	/** Later than `result` when the store gave up the run. Never rejects. */
	saved: Promise<Saved>;
	/** Stops the run and keeps its text so far. Settles within the grace time (I12). */
	abort(): void;
	/** Counts all ended streams. */
	readonly chunks: number;
}

/** A run that has not settled yet. */
export interface LiveRun {
	runId: string;
	session: string;
	engine: string;
	status: "running" | "stopping";
	compacting: boolean;
	startedAt: number;
	/** The run that it continues. */
	continues?: string;
	firstTokenMs?: number;
	/** All visible text so far. */
	text: string;
	/** The user's messages, then the answer's messages so far. */
	messages: readonly StoredMessage[];
	/** Calls so far, in order of starting. */
	toolCalls: readonly LiveToolCall[];
}

/** A tool call of a live run: `started` until it has an outcome. */
export interface LiveToolCall extends Omit<StoredToolCall, "status" | "endedAt"> {
	status: "started" | StoredToolCall["status"];
	endedAt?: number;
	/** Its approval or question. */
	asking?: ToolApproval;
}

export interface Recovered {
	/** How many runs were settled. */
	recovered: number;
	/** Runs that cannot be settled yet: the Broker retries, and their sessions wait. */
	later: { session: string; saved: Promise<Saved> }[];
}

/** Observes runs, outside of the hot path of tokens. It must neither throw nor block. */
export interface RunObserver {
	/** Every event except text and reasoning. */
	took(runId: string, event: EngineEvent, at: number): void;
	/** The turn is durable. */
	settled(turn: Turn, traceId: string): void;
}

export interface Broker {
	/** Runs one turn. A session has one run at a time: a second one is a `conflict`. */
	execute(request: ExecuteRequest): Execution;
	/**
	 * Settles every run that a dead daemon left behind. Call before the port opens. `settle` returns the writes that commit with the turn of a run that no
	 * `execute` of this process began; it may read for that.
	 */
	recover(settle?: (turn: Turn) => Reading<readonly Write[]>): Promise<Recovered>;
	/**
	 * Where a settled run can be continued. Rejects with `not_found`, or with `conflict` and the reason: also while it waits for a person,
	 * unless that person's decision continues it (`answered`).
	 */
	continuation(runId: string, answered?: boolean): Promise<Continuation>;
	/** Whether `continuation` would resolve. */
	canContinue(turn: Turn): Promise<boolean>;
	/** Why no new run may answer the messages of this one; undefined = one may. */
	retryRefusal(turn: Turn): Promise<string | undefined>;
	/** A session's phase, and the names that the engine knows. */
	phase(session: string): Promise<{ phase?: StoredPhase; known?: readonly string[] }>;
	/** Rejects with `invalid` for a name that the engine does not know. */
	enterPhase(session: string, name: string, because: string): Promise<void>;
	/** Stops a live run and waits for its turn; undefined when no such run is live. */
	abort(runId: string): Promise<Turn> | undefined;
	/** Approvals and questions, including those of earlier daemons. */
	readonly approvals: ApprovalsPort;
	live(runId: string): LiveRun | undefined;
	liveRuns(): LiveRun[];
	/** Runs that have ended but cannot be saved at the moment: the Broker retries, and their sessions wait. */
	readonly unsaved: number;
	/** Runs settled since start, by how they ended. */
	readonly settled: Readonly<Record<TurnStatus, number>>;
	/** Refuses new runs, waits for the live ones, and aborts the rest at the deadline. */
	drain(deadlineMs: number): Promise<void>;
}
