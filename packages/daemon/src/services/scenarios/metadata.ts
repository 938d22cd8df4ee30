/** Metadata that accompanies a request's body. Credentials come here only. */

import { NexusError } from "@nexus-stream/protocol";

const NAMES = {
	userToken: "x-nexus-user-token",
	keySource: "x-nexus-key-source",
	providerType: "x-nexus-provider-type",
	providerEndpoint: "x-nexus-provider-endpoint",
	apiKey: "x-nexus-provider-api-key",
} as const;

/** Size of one value. */
const VALUE_BYTES_MAX = 4096;

export type KeySource = "managed" | "inline";

export type ScenarioMetadata = Partial<Record<Exclude<keyof typeof NAMES, "keySource">, string>> & {
	keySource?: KeySource;
};

/** An empty value counts as none. The message of an error never has the value. */
export function metadataOf(read: (name: string) => string | undefined): ScenarioMetadata {
	const metadata: Partial<Record<keyof typeof NAMES, string>> = {};
	for (const [key, name] of Object.entries(NAMES) as [keyof typeof NAMES, string][]) {
		const value = read(name) ?? "";
		if (Buffer.byteLength(value) > VALUE_BYTES_MAX)
			throw new NexusError("invalid", `metadata ${name} has more than ${VALUE_BYTES_MAX} bytes`);
		if (value !== "") metadata[key] = value;
	}
	const { keySource, ...others } = metadata;
	return keySource === undefined ? others : { ...others, keySource: keySourceOf(keySource) };
}

function keySourceOf(value: string): KeySource {
	if (value === "managed" || value === "inline") return value;
	throw new NexusError("invalid", `${NAMES.keySource} is managed or inline`);
}
