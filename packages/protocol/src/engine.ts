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
	/** The tool's result as text. */
	result: string;
	/** The tool's result as parts, if it has more than text. */
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
	/** Reasoning that the provider signed, in order. An engine uses only signatures from its own provider. */
	reasoning?: readonly SignedReasoning[];
	/** Which agent's words these are, where the session has several. */
	agent?: string;
	/** An assistant message that was cut short: stopped by the user, or failed. The text already says so to the model. */
	interrupted?: "aborted" | "failed";
}

/** The author of the message that a run answers. */
export interface Sender {
	/** In the platform's words. */
	id: string;
	name?: string;
	channel: string;
	account: string;
	/** The message came from a group, where others read the answer. */
	group?: boolean;
	/** Another person wrote some of the messages that this run answers. */
	amongOthers?: boolean;
}

export interface EngineRequest {
	session: string;
	runId: string;
	/** The author of the newest message; absent when there is no person, for example for an API client. */
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
	/** The session's phase, for engines with phases. */
	phase?: SessionPhase;
	/** The point where an earlier run of the session was interrupted: this run continues from there. */
	continues?: Continued;
	messages: readonly EngineMessage[];
	/** The attachments of the newest message. */
	attachments: readonly Attachment[];
	/** How long one tool may take before the engine should fail it. */
	toolTimeoutMs: number;
}

/** The other authors in the model's context, and the rights that all of these people have. */
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
	/** Text shown after that checkpoint: the model must continue after it and not repeat it. */
	shown: string;
	/** The decision on the approval or question at which the run was interrupted. */
	answer?: ApprovalOutcome & { callId: string };
}

/** Whether a person has to agree before a tool acts. */
export type ApprovalPolicy = "never" | "non-owner" | "always";

/** A person is asked about a tool call, and answers. */
export interface ToolApproval {
	/** Chosen by the engine, unique in the run: the key for `context.answer`. People see the short id that the Broker assigns, such as `K7Q2`. */
	id: string;
	kind: "approval" | "question";
	state: "pending" | "approved" | "denied" | "answered" | "expired" | "withdrawn";
	/** In milliseconds since the epoch. The Broker says it. */
	expiresAt?: number;
	/** The question and its choices; an approval has neither. */
	question?: string;
	choices?: readonly string[];
	/** The source of an external tool: a tool of the same name from another source is a different tool. */
	revision?: string;
	/** Why a person is asked whatever the policy says, for that person. */
	because?: string;
	/** It can be agreed to only this once, not for the rest of the session. */
	once?: boolean;
	/** The name of the person who decided, as shown to people. */
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
	/** The digest (`digestOf`) of the approved tool and arguments: the call that runs must have the same digest. */
	digest?: string;
}

/** An event of a run other than text and tools, kept for later inspection. */
export interface ExecutionEntry {
	kind: "routing" | "phase" | "attempt" | "reminder" | "completion" | "reasoning" | "model" | "note";
	agent?: string;
	/** For people. */
	text: string;
	/** JSON. */
	data?: Readonly<Record<string, unknown>>;
}

export type ToolStatus = "started" | "progress" | "completed" | "failed";

/** An event that an agent yields. The order of the events is the order that a person sees: it alone defines `align`. */
export type EngineEvent =
	| { type: "text"; delta: string; agent?: string }
	| { type: "reasoning"; delta: string; agent?: string }
	/**
	 * The complete signed reasoning of this message: never shown, passed back in later turns as `reasoning` of the message.
	 * `after` counts characters of the message's text; left out = those yielded so far. Yield it before the message's tool calls.
	 */
	| { type: "signed_reasoning"; text: string; signature: string; after?: number; agent?: string }
	/**
	 * A new assistant message begins, of this agent, and ends that agent's last one; agents that work side by side have one open message each.
	 * Not `visible`: its text is in the log but not shown in chats; its tool calls are shown.
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
			/** The text shown to people; by default the text of `content`. */
			result?: unknown;
			/** The result as parts: a later turn passes these to the model. Frames do not carry them. */
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

/** Services that a run may use. Only `signal` is always present. */
export interface EngineContext {
	signal: AbortSignal;
	/** Waits for the answer to what was yielded as `lookup` in the state `pending`. Clocks of the run stand still meanwhile; the signal withdraws the question. */
	answer?(id: string, signal: AbortSignal): Promise<ApprovalOutcome>;
	/**
	 * Messages that arrived during the run and are handed to it, oldest first; from then on they are this run's. Where there are some, `checkpoint`
	 * is asked for the one that knows them, which commits with them: a run that resumes from there has read them.
	 */
	inbox?: { take(checkpoint?: (arrived: readonly EngineMessage[]) => unknown): Promise<readonly EngineMessage[]> };
}

/** Returning ends the run, throwing fails it, `signal` aborts it. */
export interface Engine {
	name: string;
	/** A script answers instead of a model; the page and the chats say so. */
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
