/** Scenarios on a real Bus and Ledger, with a provider that the test plays and connectors that are a list. */

import { type Bus, follow } from "../../../packages/daemon/src/bus/bus.ts";
import { checkInline } from "../../../packages/daemon/src/services/connectors/checks.ts";
import type {
	ConnectorInfo,
	Connectors,
	InlineCredential,
	Provider,
	TextEvent,
} from "../../../packages/daemon/src/services/connectors/port.ts";
import { noUserTokens } from "../../../packages/daemon/src/services/scenarios/metadata.ts";
import type {
	AdmittedScenario,
	ScenarioRequest,
	ScenarioSpec,
} from "../../../packages/daemon/src/services/scenarios/port.ts";
import { createScenarios, type ScenariosOptions } from "../../../packages/daemon/src/services/scenarios/scenarios.ts";
import {
	createVerifier,
	decodeFrame,
	type EndFrame,
	type Frame,
	NexusError,
} from "../../../packages/protocol/src/protocol.ts";
import { type ForTestOptions, lookInto, storeForTest, type TestStore } from "../../store.ts";
import { connectorOf, durableParts } from "../parts.ts";

export { appPrincipal, connectorOf, OWNER } from "../parts.ts";

export type Play = (signal: AbortSignal) => AsyncIterable<TextEvent>;

/** Says these deltas. */
export const saying = (...deltas: string[]): Play =>
	async function* () {
		for (const delta of deltas) yield { type: "text", delta };
	};

const refuse = async (): Promise<never> => {
	throw new NexusError("engine_failed", "this provider cannot do it");
};

export const playedProvider = (play: Play, fields: Partial<Provider> = {}): Provider => ({
	demo: false,
	text: (_, signal) => play(signal),
	speak: refuse,
	image: refuse,
	embed: refuse,
	transcribe: refuse,
	...fields,
});

export interface FakeConnectors extends Connectors {
	readonly reports: [id: string, ok: boolean][];
	readonly inline: InlineCredential[];
}

/** Endpoints that contain `private` may not be dialled; names that contain `nowhere` do not resolve. */
export function fakeConnectors(provider: Provider, list: readonly ConnectorInfo[]): FakeConnectors {
	const reports: [string, boolean][] = [];
	const inline: InlineCredential[] = [];
	return {
		reports,
		inline,
		find: async (id, { owner, appId }) =>
			list.find((one) => one.id === id && (owner || one.appId === undefined || one.appId === appId)),
		async checkEndpoint(endpoint) {
			if (endpoint.includes("private"))
				throw new NexusError("forbidden", `${endpoint} is private`, { reason: "AI_ENDPOINT_FORBIDDEN" });
			if (endpoint.includes("nowhere"))
				throw new NexusError("unavailable", `${endpoint} does not resolve`, { reason: "AI_ENDPOINT_UNRESOLVED" });
		},
		endpointOf: ({ endpoint, providerType }) =>
			endpoint ?? (providerType === "openai-compatible" ? undefined : "https://usual.example"),
		checkInline,
		async open({ id }) {
			if (id !== "keyless") return provider;
			throw new NexusError("precondition", "no key", { reason: "AI_CONNECTOR_CREDENTIAL_MISSING" });
		},
		async openInline(credential) {
			inline.push(credential);
			return provider;
		},
		report: (id, { ok }) => void reports.push([id, ok]),
	};
}

export interface RigOptions
	extends Partial<Omit<ScenariosOptions, "bus" | "rows" | "connectors">>,
		Pick<ForTestOptions, "path" | "connection" | "dies"> {
	provider?: Partial<Provider>;
	connectors?: readonly ConnectorInfo[];
	/** Instead of a new one. */
	store?: TestStore;
}

export function rig(
	play: Play,
	{
		path,
		connection,
		dies,
		store = storeForTest({ path, connection, dies }),
		provider,
		connectors: list,
		...options
	}: RigOptions = {},
) {
	const played = playedProvider(play, provider);
	const connectors = fakeConnectors(played, list ?? [connectorOf("main")]);
	const parts = durableParts(store, options.clock);
	const scenarios = createScenarios({ ...parts, connectors, verifyUser: noUserTokens, ...options });
	const start = scenarios.start.bind(scenarios);
	scenarios.start = ({ provider: own, ...admitted }, ...more) =>
		start({ ...admitted, provider: own === PLAYED ? played : own }, ...more);
	return {
		...store,
		look: lookInto(store),
		connectors,
		scenarios,
		frames: (runId: string) => framesOf(store.bus, runId),
	};
}

export const HELLO: ScenarioSpec = { kind: "text", messages: [{ role: "user", text: "hello" }] };

export const requestOf = (
	fields: Partial<ScenarioRequest> = {},
	metadata: Record<string, string> = {},
): ScenarioRequest => ({
	head: { appId: "shop", userId: "", connectorId: "main" },
	spec: HELLO,
	metadata: (name) => metadata[name],
	...fields,
});

/** Stands for the provider of the rig that starts the call. */
const PLAYED = {} as Provider;

export const admittedOf = (fields: Partial<AdmittedScenario> = {}): AdmittedScenario => ({
	appId: "shop",
	userId: "owner",
	spec: HELLO,
	model: "small",
	timeoutMs: 120_000,
	source: { connector: connectorOf("main") },
	provider: PLAYED,
	...fields,
});

/** All frames of a run, verified (I2, I3), once it has ended. */
export async function framesOf(bus: Bus, runId: string): Promise<Frame[]> {
	const verifier = createVerifier();
	const frames: Frame[] = [];
	for await (const batch of follow(await bus.cursor({ log: runId }, 0))) {
		for (const record of batch.records) {
			const frame = decodeFrame(record);
			const violation = verifier.push(frame);
			if (violation) throw new Error(violation.message);
			frames.push(frame);
		}
	}
	return frames;
}

export const finalOf = (frames: readonly Frame[]): EndFrame => frames.at(-1) as EndFrame;

export const textOf = (frames: readonly Frame[]): string =>
	frames.map((frame) => (frame.type === "stream.chunk" ? frame.payload : "")).join("");
