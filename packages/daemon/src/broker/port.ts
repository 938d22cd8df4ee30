/** The Broker runs one turn: EngineEvents become frames on the Bus; the settled run becomes a turn in the Ledger. */

import type { Attachment, Continued, EngineEvent, EngineRequest, ToolApproval } from "@nexus-stream/protocol/engine";
import type { Approval, Requester } from "../ledger/approvals/port.ts";
import type { StoredPhase } from "../ledger/phases/port.ts";
import type { StoredMessage, StoredToolCall, Turn, TurnStatus } from "../ledger/turns/port.ts";
import type { Reading, Write } from "../std/write.ts";

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

/** Returns the writes that commit with the turn of a run that no `execute` of this process began; it may read first. */
export type SettleOrphan = (turn: Turn) => Reading<readonly Write[]>;

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

/** A session's phase. */
export interface PhasesPort {
	/** The current one, and the names that the engine knows. */
	of(session: string): Promise<{ phase?: StoredPhase; known?: readonly string[] }>;
	/** Rejects with `invalid` for a name that the engine does not know. */
	enter(session: string, name: string, because: string): Promise<void>;
}

/** A person's decision. */
export interface ApprovalDecision {
	state: "approved" | "denied" | "answered";
	/** The person, as shown to others. */
	by: string;
	reason?: string;
	text?: string;
}

export interface ApprovalListener {
	/** The row is durable: people can be asked. */
	opened?(row: Approval): void;
	/** `live`: its run continues with the answer, or has ended without it. Otherwise only a new run can continue. */
	closed?(row: Approval, live: boolean): void;
}

/** Operations on approvals for the layers above. */
export interface ApprovalsPort {
	/** Oldest first. */
	pending(): Approval[];
	/** The first decision counts: a later one is a `conflict` that says who decided. `writes` commit with it. */
	decide(runId: string, id: string, decision: ApprovalDecision, writes?: readonly Write[]): Promise<Approval>;
	listen(listener: ApprovalListener): () => void;
	/** Sets the function that names the person who agreed to a call in advance; undefined = a person is asked. */
	relyOn(agreed: (row: Approval) => string | undefined): void;
}

export interface Broker {
	/** Runs one turn. A session has one run at a time: a second one is a `conflict`. */
	execute(request: ExecuteRequest): Execution;
	/** Settles every run that a dead daemon left behind. Call before the port opens. */
	recover(settle?: SettleOrphan): Promise<Recovered>;
	/**
	 * Where a settled run can be continued. Rejects with `not_found`, or with `conflict` and the reason: also while it waits for a person,
	 * unless that person's decision continues it (`answered`).
	 */
	continuation(runId: string, answered?: boolean): Promise<Continuation>;
	/** Whether `continuation` would resolve, and why no new run may answer the messages of this one; undefined = one may. */
	resumption(turn: Turn): Promise<{ canContinue: boolean; retryRefusal: string | undefined }>;
	readonly phases: PhasesPort;
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

/** Everything in the Broker has a limit (I11). `Infinity` switches a watchdog off. */
export interface BrokerLimits {
	/** Size of an engine's context, estimated. */
	contextTokensMax: number;
	contextTurnsMax: number;
	/** Past turns kept ready in memory, all sessions together. */
	historyCharsMax: number;
	/** Upper limit for the chunks of every modality, in addition to P1.18. */
	chunkBytesMax: number;
	/** Arguments and results of tools are cut to this length. */
	toolJsonCharsMax: number;
	/** Reasoning kept in the turn and shown to the next run, up to this length; 0 = none. */
	reasoningCharsMax: number;
	/** Signed reasoning kept per turn, signatures included; 0 = none. */
	signedReasoningCharsMax: number;
	/** Images (as base64) and resources of tool results kept per turn; one that does not fit becomes a note. */
	toolContentCharsMax: number;
	/** As JSON. A run with a larger checkpoint cannot be continued. */
	checkpointBytesMax: number;
	/** Entries that a run may add to the execution log; further ones are dropped. */
	executionEntriesMax: number;
	/** Limit of an entry's text, and of its data as JSON. */
	executionCharsMax: number;
	/** How long an engine may take to end after a stop (I12). */
	abortGraceMs: number;
	/** From the start to the first event of any kind. */
	firstTokenMs: number;
	/** From one event to the next while no tool runs. */
	interTokenMs: number;
	/** One run as a whole. */
	totalMs: number;
	/** One tool call. */
	toolMs: number;
}

export const BROKER_LIMITS: BrokerLimits = {
	contextTokensMax: 100_000,
	contextTurnsMax: 200,
	historyCharsMax: 16 * 1024 * 1024,
	chunkBytesMax: 64 * 1024,
	toolJsonCharsMax: 256 * 1024,
	reasoningCharsMax: 0,
	signedReasoningCharsMax: 256 * 1024,
	toolContentCharsMax: 4 * 1024 * 1024,
	checkpointBytesMax: 4 * 1024 * 1024,
	executionEntriesMax: 2000,
	executionCharsMax: 8 * 1024,
	abortGraceMs: 2000,
	firstTokenMs: 60_000,
	interTokenMs: 120_000,
	totalMs: 30 * 60_000,
	toolMs: 10 * 60_000,
};

/** The limits of a turn. */
export const keptOf = ({ reasoningCharsMax, signedReasoningCharsMax, toolContentCharsMax }: BrokerLimits) => ({
	reasoningCharsMax,
	signedReasoningCharsMax,
	toolContentCharsMax,
});

/** Limits of approvals and questions. */
export interface ApprovalLimits {
	/** Time a person has to answer. */
	waitMs: number;
	/** Longer arguments and questions are refused: a person cannot decide about what is not shown whole. */
	argsCharsMax: number;
	/** Open questions at a time, of all runs. */
	pendingMax: number;
}
