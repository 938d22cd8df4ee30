/** The Broker runs one turn: EngineEvents become frames on the Bus; the settled run becomes a turn in the Ledger. */

import type { Attachment, Continued, EngineEvent, EngineRequest, ToolApproval } from "../engine/engine.ts";
import type { Requester, StoredMessage, StoredPhase, StoredToolCall, Turn, TurnStatus } from "../ledger/ledger.ts";
import type { Reading, Write } from "../std/write.ts";
import type { ApprovalsPort } from "./approvals.ts";

/** What of a request the Broker only passes on. */
export type PassedOn = Pick<
	EngineRequest,
	| "sender"
	| "allowedTools"
	| "deniedTools"
	| "owner"
	| "approval"
	| "agent"
	| "allowedAgents"
	| "among"
	| "outsideTools"
>;

/** The fields that the engine gets as they are. */
export function passedOn(request: PassedOn): PassedOn {
	const { sender, allowedTools, deniedTools, owner, approval, agent, allowedAgents, among, outsideTools } = request;
	return { sender, allowedTools, deniedTools, owner, approval, agent, allowedAgents, among, outsideTools };
}

export interface ExecuteRequest extends PassedOn {
	session: string;
	runId: string;
	/** The inbound events this run answers, in order. */
	events: readonly { eventId: string; text: string; attachments: readonly Attachment[] }[];
	/** What else the engine gets, once it is known which events of earlier runs have words in its context. */
	reads?(events: readonly string[]): Promise<Partial<PassedOn>>;
	/** For whom a person would be asked, and where. */
	requester?: Requester;
	/** Goes on where an earlier run of the session was cut off: the events are those that that run was asked with. */
	continues?: Continuation;
	/** Where the answer should go, for consumers that push. Carried in stream.begin. */
	target?: unknown;
	/** The trace that the run is a part of, 32 hex digits; derived from the run's id when left out. */
	traceId?: string;
	/** What the engine is told beside the messages, for this run only. */
	context?: readonly string[];
	/** A message's text becomes one chunk, when it is whole. */
	disableStreaming?: boolean;
	/** Messages that come during the run and may join it. */
	inbox?: RunInbox;
	/** What commits with the run's first begin. When one of these writes is refused, the run is. */
	begin?: readonly Write[];
	/** What commits beside the turn. */
	settle?: Settle;
	/** A store that refuses commits is waited for as long as its limit says, or not longer than this, until the run has begun. */
	patienceMs?: number;
}

/** A message that joins a run. */
export interface Joining {
	eventId: string;
	text: string;
	attachments: readonly Attachment[];
	/** What the engine is told beside it. */
	context?: readonly string[];
}

/** Puts messages into the run's log and commits the writes with that; false when the run takes nothing any more. */
export type Join = (messages: readonly Joining[], writes: readonly Write[]) => Promise<boolean>;

export interface RunInbox {
	/** Calls `join` with what waits and may join now, if anything does. */
	take(join: Join): Promise<void>;
}

/** Where a run that was cut off can go on. */
export interface Continuation extends Continued {
	/** The run whose messages are answered: the first of those that continue each other. */
	root: string;
}

/** Pure: called again for every attempt to save the turn, with the turn of that attempt. */
export type Settle = (turn: Turn) => readonly Write[];

/**
 * The turn as it is on record, or `lost` when the run's log has ended without one: the session is free for its next run. Undefined when the
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
	/** Stops the run; what was said so far is kept. Settles within the grace time (I12). */
	abort(): void;
	/** Of all its streams so far. */
	readonly chunks: number;
}

/** A run that has not settled yet, as a person would want to see it. */
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
	/** What a person is or was asked about it. */
	asking?: ToolApproval;
}

export interface Recovered {
	/** How many runs were settled. */
	recovered: number;
	/** Those that cannot be settled yet: they are tried again, and their sessions have to wait. */
	later: { session: string; saved: Promise<Saved> }[];
}

/** Hears what happens in runs, beside the way of their tokens. It must neither throw nor take time. */
export interface RunObserver {
	/** Everything but text and reasoning, as it was taken. */
	took(runId: string, event: EngineEvent, at: number): void;
	/** The turn is on record. */
	settled(turn: Turn, traceId: string): void;
}

export interface Broker {
	/** Runs one turn. A session has one run at a time: a second one is a `conflict`. */
	execute(request: ExecuteRequest): Execution;
	/**
	 * Settles every run that a dead daemon left behind. Call before the port opens. `settle` says what commits beside the turn of a run that no
	 * `execute` of this process began, and may have to read for it.
	 */
	recover(settle?: (turn: Turn) => Reading<readonly Write[]>): Promise<Recovered>;
	/**
	 * Where a settled run can be continued. Rejects with `not_found`, or with `conflict` and the reason: also while it waits for a person,
	 * unless that person's decision goes on with it (`answered`).
	 */
	continuation(runId: string, answered?: boolean): Promise<Continuation>;
	/** Whether `continuation` would find something. */
	canContinue(turn: Turn): Promise<boolean>;
	/** Why no new run may answer the messages of this one; undefined = one may. */
	retryRefusal(turn: Turn): Promise<string | undefined>;
	/** A session's phase, and the names that the engine knows. */
	phase(session: string): Promise<{ phase?: StoredPhase; known?: readonly string[] }>;
	/** Rejects with `invalid` for a name that the engine does not know. */
	enterPhase(session: string, name: string, because: string): Promise<void>;
	/** Stops a live run and waits for its turn; undefined when no such run is live. */
	abort(runId: string): Promise<Turn> | undefined;
	/** What runs ask people, those of earlier daemons included. */
	readonly approvals: ApprovalsPort;
	live(runId: string): LiveRun | undefined;
	liveRuns(): LiveRun[];
	/** How many runs have ended and cannot be saved at the moment: they are tried again, and their sessions wait. */
	readonly unsaved: number;
	/** Runs settled since start, by how they ended. */
	readonly settled: Readonly<Record<TurnStatus, number>>;
	/** Refuses new work, waits for runs to end, aborts what is left at the deadline. */
	drain(deadlineMs: number): Promise<void>;
}
