/** The engine port: an agent is an async generator. */

import type { ContentPart, Modality, SignedReasoning } from "./protocol.ts";

/** A file that came with a user's message: text or base64, as its content type says. */
export interface Attachment {
	name: string;
	contentType: string;
	/** Base64. */
	data: string;
}

/** A tool call that an earlier turn made; always paired with how it ended. */
export interface PastToolCall {
	callId: string;
	name: string;
	args: unknown;
	status: "completed" | "failed";
	/** What it answered, as text. */
	result: string;
	/** What it answered in parts, where that is more than text. */
	content?: readonly ContentPart[];
	/** After how many characters of the message's text it was made; left out = after all of it. */
	after?: number;
}

/** One message of the context, oldest first; the last one is the user's new message. */
export interface EngineMessage {
	role: "user" | "assistant";
	text: string;
	attachments?: readonly Attachment[];
	toolCalls?: readonly PastToolCall[];
	/** What the model thought, as far as its provider signed it, in order. An engine uses only signatures that it made itself. */
	reasoning?: readonly SignedReasoning[];
	/** Which agent's words these are, where the session has several. */
	agent?: string;
	/** An assistant message that was cut short: stopped by the user, or failed. The text already says so to the model. */
	interrupted?: "aborted" | "failed";
}

/** Who wrote the message that a run answers. */
export interface Sender {
	/** In the platform's words. */
	id: string;
	name?: string;
	channel: string;
	account: string;
	/** The message came from a group, where others read the answer. */
	group?: boolean;
	/** Somebody else wrote some of the messages that this run answers. */
	amongOthers?: boolean;
}

export interface EngineRequest {
	session: string;
	runId: string;
	/** Who wrote the newest message; left out when nobody in particular did, as with a program that calls the API. */
	sender?: Sender;
	/** Names of the tools that this run may use; left out = all that the engine has. An engine does not offer the others to its model. A `*` at the end stands for any rest. */
	allowedTools?: readonly string[];
	/** Names of tools that this run may not use, whatever `allowedTools` says. A `*` at the end stands for any rest. */
	deniedTools?: readonly string[];
	/** Everybody whose words this run answers has the owner's rights. Left out counts as no. */
	owner?: boolean;
	/** Whether a person has to agree before a tool acts, by its name; stronger than the tool's own word, weaker than the agent's. A `*` at the end stands for any rest. */
	approval?: Readonly<Record<string, ApprovalPolicy>>;
	/** Words in `messages` that have fewer rights than those that the run answers: what they may not do needs an approval, whatever the policy says. */
	among?: Among;
	/** Names of tools that bring text from outside: once a result of one is in the context, it counts as such words. A `*` at the end stands for any rest. */
	outsideTools?: readonly string[];
	/** Which agent is asked, where the configuration has several. */
	agent?: string;
	/** Agents that everybody whose words this run answers may use; left out = all. */
	allowedAgents?: readonly string[];
	/** What the session works on, where its engine knows phases. */
	phase?: SessionPhase;
	/** Where an earlier run of the session was cut off: this one goes on from there. */
	continues?: Continued;
	messages: readonly EngineMessage[];
	/** The attachments of the newest message. */
	attachments: readonly Attachment[];
	/** How long one tool may take before the engine should fail it. */
	toolTimeoutMs: number;
}

/** Whose words are in the context beside those that a run answers, and what all of these people may do. */
export interface Among {
	/** In words, for the person who decides. */
	whose: string;
	/** Whom notes of the run name as the one who asked. */
	from: { channel: string; account: string; sender: string };
	allowedTools?: readonly string[];
	deniedTools?: readonly string[];
}

/** A session's phase is durable: it outlives its run. */
export interface SessionPhase {
	name: string;
	/** In milliseconds since the epoch. */
	since: number;
	/** The one before, and why it was left. */
	from?: string;
	because?: string;
}

export interface Continued {
	runId: string;
	/** The last `checkpoint` that the engine yielded in that run, as JSON. */
	checkpoint: unknown;
	/** What was shown after that checkpoint: the model has to go on behind it, and must not repeat it. */
	shown: string;
	/** What became of the approval or the question that the run was cut off at. */
	answer?: ApprovalOutcome & { callId: string };
}

/** Whether a person has to agree before a tool acts. */
export type ApprovalPolicy = "never" | "non-owner" | "always";

/** A person is asked about a tool call, and answers. */
export interface ToolApproval {
	/** Of the engine's choice, unique in the run: what `context.answer` is asked for. People see a short id that the Broker gives it, such as `K7Q2`. */
	id: string;
	kind: "approval" | "question";
	state: "pending" | "approved" | "denied" | "answered" | "expired" | "withdrawn";
	/** In milliseconds since the epoch. The Broker says it. */
	expiresAt?: number;
	/** What is asked, and between what to choose; an approval has neither. */
	question?: string;
	choices?: readonly string[];
	/** Of a tool that comes from outside: it is not the same tool under another one. */
	revision?: string;
	/** Why a person is asked whatever the policy says, for that person. */
	because?: string;
	/** It can be agreed to only this once, not for the rest of the session. */
	once?: boolean;
	/** Who decided, in words. */
	by?: string;
}

export interface ApprovalOutcome {
	/** As people saw it. */
	id: string;
	state: Exclude<ToolApproval["state"], "pending">;
	/** In words: who decided, why, or what was answered. */
	by?: string;
	reason?: string;
	text?: string;
	/** Of the tool and arguments that were asked about (`digestOf`): what is run has to have the same. */
	digest?: string;
}

/** What happened in a run beside its words and tools, for whoever asks later how it came about. */
export interface ExecutionEntry {
	kind: "routing" | "phase" | "attempt" | "reminder" | "completion" | "reasoning" | "model" | "note";
	agent?: string;
	/** For people. */
	text: string;
	/** JSON. */
	data?: Readonly<Record<string, unknown>>;
}

export type ToolStatus = "started" | "progress" | "completed" | "failed";

/** What an agent yields. The order of yields is the order a person should see: that alone defines `align`. */
export type EngineEvent =
	| { type: "text"; delta: string; agent?: string }
	| { type: "reasoning"; delta: string; agent?: string }
	/**
	 * Reasoning of this message that its provider signed, whole: shown to nobody, given back in later turns as `reasoning` of the message.
	 * `after` counts characters of the message's text; left out = those yielded so far. Yield it before the message's tool calls.
	 */
	| { type: "signed_reasoning"; text: string; signature: string; after?: number; agent?: string }
	/**
	 * A new assistant message begins, of this agent, and ends that agent's last one; agents that work side by side have one open message each.
	 * Not `visible`: its words are in the log, and shown to nobody who chats; what it does with tools is.
	 */
	| { type: "message"; agent?: string; visible?: boolean }
	/** The agent's message is whole. An agent that has finished says so: chat platforms show messages one after another, in the order they were begun. */
	| { type: "message_end"; agent?: string }
	| {
			type: "tool";
			/** Unique in the run. */
			callId: string;
			name: string;
			status: ToolStatus;
			agent?: string;
			args?: unknown;
			/** A person is or was asked about this call; with `progress`, before `started`. */
			asking?: ToolApproval;
			summary?: string;
			/** What a person is shown; with `content` alone it is the text of that. */
			result?: unknown;
			/** What it answered in parts: a later turn gives these to the model. Frames do not carry them. */
			content?: readonly ContentPart[];
	  }
	/** A card, carousel, image or audio piece; shown after the text yielded so far. */
	| { type: "part"; modality: Modality; contentType: string; payload: string; agent?: string }
	/** Tokens of a model call, by the names they have on the wire; -1 = the model did not say. Several are added up. */
	| {
			type: "usage";
			input: number;
			output: number;
			cache_read?: number;
			cache_write?: number;
			reasoning?: number;
			agent?: string;
			model?: string;
	  }
	| { type: "compaction"; phase: "start" | "end" }
	/** Where the run can go on after a crash, as JSON: replaces the one before, and is durable together with what is yielded in the same array. */
	| { type: "checkpoint"; data: unknown }
	/** The session works on something else from now on. */
	| { type: "phase"; name: string; because: string; agent?: string }
	/** For the execution log: in no frame. */
	| { type: "log"; entry: ExecutionEntry };

/** One event, or several that came at once: taken in order, as if each had been yielded alone. An empty array is nothing. */
export type EngineYield = EngineEvent | readonly EngineEvent[];

/** What a run may use of the house. Only `signal` is always there. */
export interface EngineContext {
	signal: AbortSignal;
	/** Waits for the answer to what was yielded as `lookup` in the state `pending`. Clocks of the run stand still meanwhile; the signal withdraws the question. */
	answer?(id: string, signal: AbortSignal): Promise<ApprovalOutcome>;
	/**
	 * Messages that arrived during the run and are handed to it, oldest first; from then on they are this run's. Where there are some, `checkpoint`
	 * is asked for the one that knows them, which commits with them: a run that goes on from there has read them.
	 */
	inbox?: { take(checkpoint?: (arrived: readonly EngineMessage[]) => unknown): Promise<readonly EngineMessage[]> };
}

/** Returning ends the run, throwing fails it, `signal` aborts it. */
export interface Engine {
	name: string;
	/** No model answers, but a script: people are told. */
	scripted?: boolean;
	/** It yields checkpoints, and can go on from one. */
	continues?: boolean;
	/** Digest of what its checkpoints depend on: one that was made under another is not continued. */
	configHash?: string;
	/** The phases it knows; a session begins in the first. Left out: any name will do. */
	phases?: readonly string[];
	/** It takes messages out of the context's inbox while it runs. */
	injects?: boolean;
	/** Its answers, or the answer to this message, come in one piece: one chunk per message, and one delivery when it is finished. */
	disableStreaming?: boolean | ((message: { session: string; text: string }) => boolean);
	run(request: EngineRequest, context: EngineContext): AsyncIterable<EngineYield>;
	/** Called once at shutdown. */
	close?(): void | Promise<void>;
}
