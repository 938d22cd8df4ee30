/** The connector `default`: what the daemon is configured with. Its address and key are the operator's, so no guard stands before them. */

import type { Engine } from "@nexus-stream/protocol/engine";
import type { ConfiguredModel } from "../../engine/engine.ts";
import { DEFAULT_ID } from "./checks.ts";
import { demoProvider } from "./demo.ts";
import { engineText } from "./engine-provider.ts";
import type { OpenProvider } from "./http-provider.ts";
import type { ConnectorInfo } from "./port.ts";
import { ALL_KINDS, CONFIGURED, DEMO, providerType } from "./provider-types.ts";
import { unsupported } from "./unsupported.ts";
import { WIRE_LIMITS } from "./wire.ts";

/** A model that can be asked by itself, or else the engine. */
export type ConfiguredAnswerer = { model: ConfiguredModel } | { engine: Engine };

export interface BuiltIn {
	info: ConnectorInfo;
	open(): Promise<OpenProvider>;
}

const NAME = "the configured model";

export function builtIn(configured: ConfiguredAnswerer, now: number): BuiltIn {
	const shared = { id: DEFAULT_ID, enabled: true, createdAt: now, updatedAt: now, builtIn: true };
	if ("model" in configured) {
		const { model } = configured.model;
		return {
			info: { ...shared, providerType: CONFIGURED, defaultModel: model, models: [model], kinds: ["text"] },
			open: () => openModel(configured.model),
		};
	}
	const { engine } = configured;
	if (engine.scripted)
		return {
			info: { ...shared, providerType: DEMO, defaultModel: DEMO, models: [DEMO], kinds: ALL_KINDS },
			open: async () => demoProvider(engine),
		};
	return {
		info: { ...shared, providerType: CONFIGURED, defaultModel: engine.name, models: [engine.name], kinds: ["text"] },
		open: async () => engineProvider(engine),
	};
}

async function openModel({ provider, baseUrl, apiKey }: ConfiguredModel): Promise<OpenProvider> {
	const { httpProvider } = await import("./http-provider.ts");
	return httpProvider({
		name: NAME,
		providerType: provider,
		baseUrl: baseUrl ?? providerType(provider)!.endpoint!,
		apiKey,
		kinds: ["text"],
		fetch,
		fetchElsewhere: fetch,
		responseBytesMax: WIRE_LIMITS.responseBytesMax,
	});
}

function engineProvider(engine: Engine): OpenProvider {
	const no = (kind: Parameters<typeof unsupported>[1]) => async () => Promise.reject(unsupported(NAME, kind));
	return {
		demo: false,
		text: (request, signal) => engineText(engine, request, signal),
		speak: no("speech"),
		image: no("image"),
		embed: no("embed"),
		transcribe: no("transcribe"),
		models: async () => [engine.name],
	};
}
