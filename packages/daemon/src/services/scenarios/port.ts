/** Scenarios: one model call without a session. Steps 1 to 9 establish it, the tenth begins its log. */

import type { Reason } from "@nexus-stream/protocol";
import type { Cursor } from "../../bus/bus.ts";
import type { Write } from "../../std/write.ts";
import type {
	ConnectorInfo,
	InlineCredential,
	Media,
	Provider,
	ScenarioKind,
	SpeechRequest,
	TextRequest,
} from "../connectors/port.ts";
import type { Principal } from "../kit/principal.ts";

/** A parsed request to a model (step 1). JSON: a job keeps it. */
export type ScenarioSpec =
	| ({ kind: "text" } & Omit<TextRequest, "model">)
	| ({ kind: "speech" } & Omit<SpeechRequest, "model">)
	| { kind: "image"; prompt: string; size?: string; count?: number }
	| { kind: "embed"; inputs: readonly string[] }
	/** The audio is an artifact, or came with the request: then it is made one before anything is kept. */
	| { kind: "transcribe"; artifactId: string; mimeType?: string; language?: string };

export interface ScenarioHead {
	appId: string;
	userId: string;
	model?: string;
	connectorId?: string;
	timeoutMs?: number;
}

/** As it arrived: the body, and what its metadata says. */
export interface ScenarioRequest {
	head: ScenarioHead;
	spec: ScenarioSpec;
	/** Reads one metadata value by its name in lower case. */
	metadata(name: string): string | undefined;
	/** Audio that came in the body; it takes the place of an artifact. */
	audio?: Media;
	/** Checked with the rest of the body; `start` takes it. */
	idempotencyKey?: string;
	/** Jobs and workflows: a key that comes with the request could not survive a restart. */
	durable?: boolean;
	/** Upper limit of `timeoutMs` for a call that no client waits for; left out: the limit of its kind. */
	timeoutMsMax?: number;
}

/** Everything that steps 1 to 9 have found. */
export interface AdmittedScenario {
	appId: string;
	userId: string;
	spec: ScenarioSpec;
	model: string;
	timeoutMs: number;
	/** The caller, for the audit log; nothing else may depend on it. */
	caller?: string;
	source: { connector: ConnectorInfo } | { inline: InlineCredential };
	/** Opened by its connector or credentials. */
	provider: Provider;
}

/** An admitted call as it is stored until it runs, without its key; JSON. */
export interface StoredScenario extends Pick<AdmittedScenario, "appId" | "userId" | "spec" | "model" | "timeoutMs"> {
	connector: { id: string; appId?: string };
}

export interface ScenarioOutcome {
	status: "completed" | "failed" | "aborted";
	text: string;
	/** Speech only. */
	audio?: Media;
	/** Embeddings only. */
	vectors?: readonly (readonly number[])[];
	usage: { input: number; output: number };
	/** Present unless it completed. */
	error?: { code: string; message: string; reason: Reason };
}

/** Facts of a run that are known from its beginning on. */
export interface ScenarioFacts {
	appId: string;
	userId: string;
	kind: ScenarioKind;
	model: string;
	/** Left out: the credentials came with the request. */
	connectorId?: string;
	/** No model answers, but the built-in demonstration. */
	demo: boolean;
}

export interface StartedScenario {
	runId: string;
	/** False: an earlier request with the same key made it. */
	isFirst: boolean;
	/** Read from the log, once it has ended; `grew` is called whenever the log has. Never rejects. */
	outcome(grew?: () => void): Promise<ScenarioOutcome>;
	abort(): void;
}

export interface StartOptions {
	idempotencyKey?: string;
	runId?: string;
	/** The audio to transcribe. */
	audio?: Media;
	/** Writes that commit with the log's beginning. */
	begin?: readonly Write[];
	/** No client waits for the beginning: it may wait for a store that cannot be written. */
	patient?: true;
}

export interface Scenarios {
	/** Steps 1 to 9 in order; the first fault wins, and leaves nothing behind. */
	admit(request: ScenarioRequest, principal: Principal): Promise<AdmittedScenario>;
	/** Step 10, for all kinds but images: resolves once the log's beginning is durable. The same key gives the same run. */
	start(admitted: AdmittedScenario, options?: StartOptions): Promise<StartedScenario>;
	/** For jobs: looks its connector up again. */
	readmit(stored: StoredScenario): Promise<AdmittedScenario>;
	/** The text that a run has written so far; undefined when it is longer than that, or cannot be read. */
	textSoFar(runId: string, charsMax: number): Promise<string | undefined>;
	/** Rejects with `not_found` for one that is not the caller's, too. */
	facts(runId: string, principal: Principal): Promise<ScenarioFacts>;
	/** The log of a run that the caller may read. From its terminal on it is the terminal again: no reader is left without one (Z5). */
	cursor(runId: string, after: number, principal: Principal): Promise<Cursor>;
	/** Ends a run; undefined when there is no such run that the caller may end. */
	abort(runId: string, principal: Principal): Promise<ScenarioOutcome> | undefined;
	/** Ends what a dead daemon left. */
	recover(): Promise<number>;
	readonly live: number;
	/** Refuses new ones, waits for those under way, aborts what is left at the deadline. */
	drain(deadlineMs: number): Promise<void>;
}

/** From the start to the first event of the provider; no request can change it (milliseconds). */
export const FIRST_PACKET_MS = 60_000;

/** Time limits of a whole call (milliseconds) when the request names none; only a node of a workflow can ask for more. */
export const SCENARIO_TIMEOUT_MS: Readonly<Record<ScenarioKind, number>> = {
	text: 120_000,
	speech: 45_000,
	image: 120_000,
	embed: 20_000,
	transcribe: 90_000,
};
