/** The `pi` engine: a real agent on pi-agent-core, with OpenAI, Anthropic, Google or any OpenAI-compatible endpoint. The door of this folder. */

import { createHash } from "node:crypto";
import type { AgentTool, StreamFn } from "@earendil-works/pi-agent-core";
import type { Api, Model, TextContent } from "@earendil-works/pi-ai";
import type { Engine } from "@nexus-stream/protocol/engine";
import type { EngineServices, EnvironmentVariables } from "../entry.ts";
import { allowedTools, approved, bounded, type FailureContext } from "../kit/kit.ts";
import { ContextWords } from "../policy.ts";
import type { Tool, ToolContext } from "../tool.ts";
import { checkToolRoot, readTool, timeTool } from "../tools/tools.ts";
import { chooseModel, type PiConfig } from "./config.ts";
import { type AgentHost, drive, type PiAgent, type TakeJoining } from "./drive.ts";
import { joiningTurn, jsonObject, type PiContext, toolResult, toPiContext, toPiMessages } from "./messages.ts";
import { callModel, type LoadedModel, loadModel } from "./model.ts";
import { accountOf, type Signer, signedReasoning } from "./signature.ts";

export {
	type AgentHost,
	callModel,
	chooseModel,
	drive,
	joiningTurn,
	jsonObject,
	type LoadedModel,
	loadModel,
	type PiAgent,
	type PiContext,
	type Signer,
	signedReasoning,
	type TakeJoining,
	toolResult,
	toPiContext,
	toPiMessages,
};

export const PI_LIMITS = {
	/** Tries again when a call is refused before its first token (429, 5xx, no connection); never after text was shown. */
	retriesMax: 2,
	/** A provider that asks for a longer pause is an error at once. */
	retryDelayMsMax: 10_000,
	/** After an abort, how long pi may still report its own ends. */
	abortSettleMs: 100,
	/** How often in one run the model may ask for tools: one that never stops asking is stopped. */
	toolTurnsMax: 64,
};
export type PiLimits = typeof PI_LIMITS;

export const SYSTEM_PROMPT =
	"You are a helpful assistant. Answer in Markdown, briefly and to the point. Use the tools you have when they help; say so when you do not know.";

/** Everything the engine is made of once configuration is out of the way. */
export interface PiParts {
	loaded: LoadedModel;
	failure: FailureContext;
	tools: readonly AgentTool[];
	config: PiConfig;
	limits: PiLimits;
}

/** Configuration mistakes are said here; after that, only runs can fail. */
export async function createPiEngine(
	config: PiConfig,
	env: EnvironmentVariables = process.env,
	limits = PI_LIMITS,
	services?: Pick<EngineServices, "dataDir" | "secretFiles">,
): Promise<Engine> {
	const choice = chooseModel(config, env);
	await checkFilesRoot(config.filesRoot, services?.dataDir);
	const loaded = await loadModel(choice, config.thinking);
	const tools = builtInTools({ filesRoot: config.filesRoot, secretFiles: services?.secretFiles, now: Date.now });
	return piEngine({ loaded, failure: { ...choice, section: "pi" }, tools, config, limits });
}

export async function piEngine({ loaded, failure, tools, config, limits }: PiParts): Promise<Engine> {
	const { Agent } = await import("@earendil-works/pi-agent-core");
	const { clampThinkingLevel } = await import("@earendil-works/pi-ai");
	const { model, models } = loaded;
	const thinkingLevel = clampThinkingLevel(model, config.thinking ?? "off");
	const streamFn: StreamFn = (called, context, options) =>
		models.streamSimple(called, context, {
			...options,
			maxRetries: limits.retriesMax,
			maxRetryDelayMs: limits.retryDelayMsMax,
		});

	const run: Engine["run"] = (request, { signal, answer, inbox }) => {
		let toolTurns = 0;
		const limitReached = () =>
			toolTurns < limits.toolTurnsMax
				? undefined
				: `the model asked for tools ${toolTurns} times in one run and was stopped`;
		const words = new ContextWords(request);
		const open = async ({ take, teller }: AgentHost): Promise<PiAgent> => {
			const { history, prompt } = toPiContext(request, Date.now(), signerOf(model, thinkingLevel, failure.apiKey));
			const agent = new Agent({
				initialState: {
					systemPrompt: config.systemPrompt ?? SYSTEM_PROMPT,
					model,
					thinkingLevel,
					tools: allowedTools(tools, request).map((tool) =>
						approved(bounded(tool, request.toolTimeoutMs), { request, words, answer, teller }),
					),
					messages: history,
				},
				streamFn,
				sessionId: cacheKey(request.session),
				prepareNextTurn: () => joiningTurn(take),
				finishTurn: ({ toolResults }) => {
					if (toolResults.length > 0) toolTurns += 1;
					return limitReached() === undefined ? undefined : { action: "end" };
				},
			});
			return {
				subscribe: (listener) => agent.subscribe(listener),
				start: () => agent.prompt(prompt),
				stop: () => agent.abort(),
			};
		};
		return drive(open, {
			signal,
			failure,
			abortSettleMs: limits.abortSettleMs,
			limitReached,
			inbox,
			startsItself: () => true,
		});
	};

	return { name: "pi", injects: true, run };
}

/** A model that does not think now is not given what it thought before: not every provider takes it. */
export const signerOf = (model: Model<Api>, thinking: string | undefined, apiKey: string): Signer | undefined =>
	thinking === undefined || thinking === "off"
		? undefined
		: { api: model.api, provider: model.provider, model: model.id, account: accountOf(apiKey) };

/** Lets a provider find its prompt cache again without learning who the session belongs to. */
export const cacheKey = (session: string): string => createHash("sha256").update(session).digest("hex").slice(0, 32);

export async function checkFilesRoot(filesRoot: string | undefined, dataDir?: string): Promise<void> {
	if (filesRoot !== undefined) await checkToolRoot(filesRoot, "pi.filesRoot", dataDir);
}

export interface ToolOptions {
	/** Without it, no file can be read. */
	filesRoot?: string | undefined;
	/** Are not read. */
	secretFiles?: readonly string[] | undefined;
	now: () => number;
}

export function builtInTools({ filesRoot: root, secretFiles = [], now }: ToolOptions): AgentTool[] {
	const tools = [timeTool(now)];
	if (root !== undefined) tools.push({ ...readTool({ root, secretFiles }), name: "read_file" });
	return tools.map(asAgentTool);
}

/** Both tools use nothing of the context and answer in text. */
function asAgentTool({ name, description, parameters, execute }: Tool): AgentTool {
	return {
		name,
		label: name,
		description,
		parameters,
		async execute(_id, args) {
			const { content } = await execute(args as Record<string, unknown>, {} as ToolContext);
			return { content: content as TextContent[], details: undefined };
		},
	};
}
