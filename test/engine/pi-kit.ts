/** Helpers of the pi tests: requests, a reader of engine events, and an engine on pi-ai's scripted provider. */

import type { Server } from "node:http";
import type { LLMock } from "@copilotkit/aimock";
import type { AgentTool } from "@earendil-works/pi-agent-core";
import {
	createModels,
	type FauxProviderHandle,
	type FauxResponseStep,
	fauxAssistantMessage,
	fauxProvider,
	type TranscriptContext,
} from "@earendil-works/pi-ai";
import { expect } from "vitest";
import type { FailureContext } from "../../packages/daemon/src/engine/kit/kit.ts";
import type { PiConfig } from "../../packages/daemon/src/engine/pi/config.ts";
import type { LoadedModel } from "../../packages/daemon/src/engine/pi/model.ts";
import { builtInTools, PI_LIMITS, type PiLimits, piEngine } from "../../packages/daemon/src/engine/pi/pi.ts";
import { type CodingParts, codingEngine } from "../../packages/daemon/src/engine/pi-coding-agent/pi-coding-agent.ts";
import type { Engine, EngineEvent, EngineRequest } from "../../packages/protocol/src/engine.ts";
import { oneByOne, textOf } from "./demo-play.ts";

export { textOf };

/** Longer than a test may take: a run that ends in time has not waited for it. */
export const LONGER_THAN_A_TEST_MS = 600_000;

export const ask = (text: string, more: Partial<EngineRequest> = {}): EngineRequest => ({
	session: "test",
	runId: "run_test",
	messages: [{ role: "user", text }],
	attachments: [],
	toolTimeoutMs: LONGER_THAN_A_TEST_MS,
	// Approvals have separate tests.
	owner: true,
	approval: { bash: "never" },
	...more,
});

export interface Ran {
	events: EngineEvent[];
	/** The engine's error, if any. */
	error?: unknown;
}

export interface RunOptions {
	/** Aborts after the first event for which it holds. */
	abortOn?: (event: EngineEvent) => boolean;
	signal?: AbortSignal;
}

export async function run(engine: Engine, request: EngineRequest, options: RunOptions = {}): Promise<Ran> {
	const controller = new AbortController();
	const signal = AbortSignal.any([controller.signal, ...(options.signal ? [options.signal] : [])]);
	const events: EngineEvent[] = [];
	try {
		for await (const event of oneByOne(engine.run(request, { signal }))) {
			events.push(structuredClone(event));
			if (options.abortOn?.(event)) controller.abort();
		}
		return { events };
	} catch (error) {
		return { events, error };
	}
}

/** A run that ends without an error. */
export async function ranWell(...given: Parameters<typeof run>): Promise<Ran> {
	const ran = await run(...given);
	expect(ran.error).toBeUndefined();
	return ran;
}

export const reasoningOf = (events: readonly EngineEvent[]): string =>
	events.map((event) => (event.type === "reasoning" ? event.delta : "")).join("");

export const toolsOf = (events: readonly EngineEvent[]) => events.filter((event) => event.type === "tool");

export const usageOf = (events: readonly EngineEvent[]) => events.filter((event) => event.type === "usage");

/** The order of what a reader sees, with neighbours of one kind as one word. */
export function shape(events: readonly EngineEvent[]): string {
	const visible = events.filter(
		(event) =>
			event.type !== "signed_reasoning" && event.type !== "log" && (event.type !== "text" || event.delta !== ""),
	);
	const words = visible.map((event) => (event.type === "tool" ? `${event.name}:${event.status}` : event.type));
	return words.filter((word, index) => word !== words[index - 1]).join(" ");
}

/** Every call starts once, before anything else of it, and ends once. */
export function expectPaired(events: readonly EngineEvent[]): void {
	const byCall = Map.groupBy(toolsOf(events), (event) => event.callId);
	for (const [callId, statuses] of byCall) {
		const order = statuses.map((event) => event.status).join(" ");
		expect(order, callId).toMatch(/^started( progress)* (completed|failed)$/);
	}
}

export const NO_RETRY: PiLimits = { ...PI_LIMITS, retriesMax: 0 };

const FAILURE: FailureContext = {
	provider: "faux",
	model: "faux-1",
	keySource: "FAUX_KEY",
	apiKey: "faux-secret-key",
	section: "pi",
};

export function fauxModel(
	responses: FauxResponseStep[],
	options: Parameters<typeof fauxProvider>[0] = {},
): { faux: FauxProviderHandle; loaded: LoadedModel; failure: FailureContext } {
	const faux = fauxProvider(options);
	faux.setResponses(responses);
	const models = createModels();
	models.setProvider(faux.provider);
	return { faux, loaded: { model: faux.getModel(), provider: faux.provider, models }, failure: FAILURE };
}

export interface FauxOptions {
	tools?: AgentTool[];
	config?: PiConfig;
	limits?: Partial<PiLimits>;
	provider?: Parameters<typeof fauxProvider>[0];
}

export async function fauxEngine(responses: FauxResponseStep[], options: FauxOptions = {}) {
	const { faux, ...parts } = fauxModel(responses, options.provider);
	const tools = [...builtInTools({ now: () => Date.UTC(2026, 0, 2, 3, 4, 5) }), ...(options.tools ?? [])];
	const limits = { ...NO_RETRY, ...options.limits };
	return { faux, engine: await piEngine({ ...parts, tools, config: options.config ?? {}, limits }) };
}

/** A model that answers once, and the names of the tools that it was offered. */
export function lookingModel(answer = fauxAssistantMessage("Done.")) {
	const offered: string[] = [];
	const response = ({ messages }: TranscriptContext) => {
		const tools = messages.flatMap((message) => (message.role === "system" ? (message.toolsAdded ?? []) : []));
		offered.splice(0, offered.length, ...tools.map(({ name }) => name));
		return answer;
	};
	return { response, offered };
}

/** The coding agent on pi-ai's scripted provider, by default in the folder of the tests. */
export async function fauxCodingEngine(
	responses: FauxResponseStep[],
	{ provider, ...more }: Partial<CodingParts> & Pick<FauxOptions, "provider"> = {},
) {
	const { faux, ...parts } = fauxModel(responses, provider);
	const config = { filesRoot: import.meta.dirname };
	return { faux, engine: await codingEngine({ ...parts, config, limits: NO_RETRY, ...more }) };
}

type MakeEngine = (
	responses: FauxResponseStep[],
	options?: Pick<FauxOptions, "tools" | "provider">,
) => ReturnType<typeof fauxCodingEngine>;

/** Both engines on pi, made of the same script. */
export const PI_ENGINES: [string, MakeEngine][] = [
	["pi", fauxEngine],
	["pi-coding-agent", (responses, options) => fauxCodingEngine(responses, options as never)],
];

/** A tool whose work is the given function. */
export const tool = (name: string, work: AgentTool["execute"], more: Partial<AgentTool> = {}): AgentTool => ({
	name,
	label: name,
	description: name,
	parameters: { type: "object", properties: {} },
	execute: work,
	...more,
});

export const said = (text: string) => ({ content: [{ type: "text" as const, text }], details: undefined });

/** Never settles and ignores its signal. */
export const deaf = (): Promise<never> => new Promise(() => {});

/** A model that never answers; the signal aborts once it has been asked. */
export function deafModel() {
	const stop = new AbortController();
	const response = () => {
		setImmediate(() => stop.abort());
		return deaf();
	};
	return { response, signal: stop.signal };
}

/** Without the wait for idle connections that fetch keeps open. */
export async function stopMock(mock: LLMock): Promise<void> {
	const { serverInstance } = mock as unknown as { serverInstance: { server: Server } };
	serverInstance.server.closeAllConnections();
	await mock.stop();
}
