/** The JSON of the HTTP API about connectors: model providers with an address and a key. Keys go in and never come out. */

export type ScenarioKindJson = "text" | "speech" | "image" | "embed" | "transcribe";

export interface ConnectorJson {
	id: string;
	/** The application that may use it; left out: all. */
	app_id?: string;
	/** `openai`, `anthropic`, `google`, `openai-compatible` or `demo`; of `default` it may also be `configured`. */
	provider_type: string;
	endpoint?: string;
	/** The last four characters of its key; left out when it has none. */
	key_hint?: string;
	enabled: boolean;
	default_model?: string;
	/** Models that may be asked for; none = any. */
	models: string[];
	kinds: ScenarioKindJson[];
	created_at: number;
	updated_at: number;
	/** It is part of the daemon: it cannot be changed or removed. */
	built_in: boolean;
}

export interface ConnectorListJson {
	connectors: ConnectorJson[];
}

export interface ConnectorRequest {
	id: string;
	app_id?: string;
	provider_type: string;
	endpoint?: string;
	api_key?: string;
	default_model?: string;
	models?: string[];
	kinds?: ScenarioKindJson[];
}

/** What is left out stays as it is. Another endpoint needs the key again. */
export interface ConnectorChangeRequest {
	endpoint?: string;
	api_key?: string;
	enabled?: boolean;
	default_model?: string;
	models?: string[];
}

export interface ConnectorRemovedJson {
	removed: true;
}

export interface ConnectorTestJson {
	ok: boolean;
	/** As the runtime contract names it, such as `AI_PROVIDER_FAILED`. */
	reason?: string;
	/** What was found, and what to do. */
	message: string;
	models: string[];
}
