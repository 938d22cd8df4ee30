/** The kinds of model providers: their addresses, their abilities, and the default model of each. */

import { NexusError } from "@nexus-stream/protocol";
import { own } from "@nexus-stream/protocol/own";
import { ENGINES } from "../../engine/engine.ts";
import type { ConnectorInfo, ScenarioKind } from "./port.ts";

export interface ProviderType {
	/** Left out: a connector has to name its own. */
	endpoint?: string;
	/** Undefined: it asks for none. */
	key?: "required" | "optional";
	kinds: readonly ScenarioKind[];
	models: Readonly<Partial<Record<ScenarioKind, string>>>;
}

export const ALL_KINDS: readonly ScenarioKind[] = ["text", "speech", "image", "embed", "transcribe"];

const usualModel = (provider: string): string | undefined =>
	ENGINES.map(({ usualModels }) => own(usualModels, provider)).find((model) => model !== undefined);

const PROVIDER_TYPES: Readonly<Record<string, ProviderType>> = {
	openai: {
		endpoint: "https://api.openai.com/v1",
		key: "required",
		kinds: ALL_KINDS,
		models: {
			text: usualModel("openai")!,
			speech: "gpt-4o-mini-tts",
			image: "gpt-image-1",
			embed: "text-embedding-3-small",
			transcribe: "gpt-4o-mini-transcribe",
		},
	},
	anthropic: {
		endpoint: "https://api.anthropic.com",
		key: "required",
		kinds: ["text"],
		models: { text: usualModel("anthropic")! },
	},
	google: {
		// Its own wire takes no guarded connection, this one does.
		endpoint: "https://generativelanguage.googleapis.com/v1beta/openai",
		key: "required",
		kinds: ["text", "image", "embed"],
		models: { text: usualModel("google")!, embed: "gemini-embedding-001" },
	},
	"openai-compatible": { key: "optional", kinds: ALL_KINDS, models: {} },
	demo: {
		kinds: ALL_KINDS,
		models: { text: "demo", speech: "demo", image: "demo", embed: "demo", transcribe: "demo" },
	},
};

/** Type of the connector `default` when a model is configured: its address is the operator's, and is not shown. */
export const CONFIGURED = "configured";
export const DEMO = "demo";
export const ANTHROPIC = "anthropic";

export const providerTypeNames: readonly string[] = Object.keys(PROVIDER_TYPES);
export const providerType = (name: string): ProviderType | undefined => own(PROVIDER_TYPES, name);

/** Its own address, or its type's usual one. */
export const endpointOf = ({ providerType: type, endpoint }: Pick<ConnectorInfo, "providerType" | "endpoint">) =>
	endpoint ?? providerType(type)?.endpoint;

export const unsupported = (name: string, kind: ScenarioKind): NexusError =>
	new NexusError("precondition", `${name} does not offer ${kind}: use another connector`, {
		reason: "AI_SCENARIO_UNSUPPORTED",
	});

/** The model for a request that names none: the connector's default for text or for its only kind, else the provider's usual one. */
export function defaultModelOf(
	connector: Pick<ConnectorInfo, "providerType"> & Partial<Pick<ConnectorInfo, "defaultModel" | "kinds">>,
	kind: ScenarioKind,
): string | undefined {
	const { kinds = [], defaultModel } = connector;
	const usual = providerType(connector.providerType)?.models[kind];
	return kind === "text" || kinds.length === 1 ? (defaultModel ?? usual) : (usual ?? defaultModel);
}
