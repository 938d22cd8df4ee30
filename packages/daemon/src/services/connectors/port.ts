/** Connectors: model providers with an address and a key, and what can be asked of them. */

import type { Reason } from "@nexus-stream/protocol";
import type { Principal } from "../kit/principal.ts";

export type ScenarioKind = "text" | "speech" | "image" | "embed" | "transcribe";

/** As it is shown: the key never comes out. */
export interface ConnectorInfo {
	id: string;
	/** The application that may use it; undefined: all. */
	appId?: string;
	providerType: string;
	endpoint?: string;
	keyHint?: string;
	enabled: boolean;
	defaultModel?: string;
	/** Empty: any. */
	models: readonly string[];
	kinds: readonly ScenarioKind[];
	createdAt: number;
	updatedAt: number;
	/** Part of the daemon: `default` answers with the model that the daemon is configured with. */
	builtIn: boolean;
}

export interface NewConnector {
	id: string;
	appId?: string;
	providerType: string;
	endpoint?: string;
	apiKey?: string;
	defaultModel?: string;
	models?: readonly string[];
	kinds?: readonly ScenarioKind[];
}

export interface ConnectorChange {
	endpoint?: string;
	apiKey?: string;
	enabled?: boolean;
	defaultModel?: string;
	models?: readonly string[];
}

/** A key that came with one request, in its metadata: it is used once and kept nowhere. */
export interface InlineCredential {
	providerType: string;
	endpoint?: string;
	apiKey: string;
	/** The application whose token sent it: it does not reach what the owner allows the owner's connectors. Left out: the owner. */
	app?: string;
}

export interface ConnectorTest {
	ok: boolean;
	reason?: Reason;
	message: string;
	models: readonly string[];
}

export interface TextRequest {
	model: string;
	system?: string;
	messages: readonly { role: "user" | "assistant"; text: string }[];
	temperature?: number;
	maxTokens?: number;
}

export type TextEvent =
	| { type: "text"; delta: string }
	/** Any other sign of life of the provider. */
	| { type: "alive" }
	| { type: "usage"; input: number; output: number };

export interface SpeechRequest {
	model: string;
	text: string;
	voice?: string;
	mimeType?: string;
}

export interface Media {
	mimeType: string;
	data: Uint8Array;
}

/** One provider with one key. Every method rejects with a NexusError that has a reason, and never with a key in its text. */
export interface Provider {
	/** No model answers, but the built-in demonstration. */
	readonly demo: boolean;
	text(request: TextRequest, signal: AbortSignal): AsyncIterable<TextEvent>;
	/** Audio as it comes. */
	speak(request: SpeechRequest, signal: AbortSignal): Promise<{ mimeType: string; audio: AsyncIterable<Uint8Array> }>;
	image(
		request: { model: string; prompt: string; size?: string; count?: number },
		signal: AbortSignal,
	): Promise<readonly Media[]>;
	embed(
		request: { model: string; inputs: readonly string[] },
		signal: AbortSignal,
	): Promise<{ vectors: readonly (readonly number[])[]; inputTokens: number }>;
	transcribe(
		request: { model: string; audio: Media; language?: string },
		signal: AbortSignal,
	): Promise<{ text: string }>;
}

export type CallOutcome = { ok: true } | { ok: false; error: Error };

/** Connectors, for those who make model calls. */
export interface Connectors {
	/** Undefined also for one of another application. */
	find(id: string, principal: Principal): Promise<ConnectorInfo | undefined>;
	/** Whether an address may be dialled now, of a connector or, with `app`, of an application's own choice. Rejects with `forbidden` (AI_ENDPOINT_FORBIDDEN) or `unavailable` (AI_ENDPOINT_UNRESOLVED). */
	checkEndpoint(endpoint: string, app?: string): Promise<void>;
	/** The address that is used: its own, or its provider type's usual one. Undefined where there is neither. */
	endpointOf(connector: Pick<ConnectorInfo, "providerType" | "endpoint">): string | undefined;
	/** Checks the address once more at every dial. Rejects with `precondition` when there is no usable key. */
	open(connector: ConnectorInfo): Promise<Provider>;
	/** Whether they can be understood at all; throws `invalid`. */
	checkInline(credential: InlineCredential): void;
	openInline(credential: InlineCredential): Promise<Provider>;
	/** Real calls tell how their provider is. */
	report(id: string, outcome: CallOutcome): void;
}

/** With what their owner does to them. */
export interface ConnectorService extends Connectors {
	/** Connectors that the caller may use, `default` first. */
	list(principal: Principal): Promise<ConnectorInfo[]>;
	create(connector: NewConnector, principal: Principal): Promise<ConnectorInfo>;
	update(id: string, change: ConnectorChange, principal: Principal): Promise<ConnectorInfo>;
	remove(id: string, principal: Principal): Promise<void>;
	/** Cheap, and never with anything that a user wrote. */
	test(id: string, principal: Principal): Promise<ConnectorTest>;
	/** Health of all providers: the current states first, then every change. */
	health: ProviderHealthFeed;
	close(): void;
}

export interface ProviderHealth {
	name: string;
	state: "unknown" | "healthy" | "degraded" | "unavailable" | "unauthorized" | "removed";
	reason?: string;
	consecutiveFailures: number;
	changedAt: number;
	checkedAt?: number;
}

export interface ProviderHealthFeed {
	list(): ProviderHealth[];
	/** Called with every change from now on; returns how to stop it. */
	subscribe(listener: (health: ProviderHealth) => void): () => void;
}
