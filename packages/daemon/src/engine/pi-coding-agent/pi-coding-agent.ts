/** The `pi-coding-agent` engine: reads, edits and runs commands in a folder, and compacts its own context. Keeps nothing on disk. */

import path from "node:path";
import type { UserMessage } from "@earendil-works/pi-ai";
import type { AgentSession, CompactionSettings, ModelRuntime, ToolDefinition } from "@earendil-works/pi-coding-agent";
import type { Engine, EngineContext, EngineRequest } from "@nexus-stream/protocol/engine";
import type { EngineServices, EnvironmentVariables } from "../entry.ts";
import { allowedTools, approved, bounded, type FailureContext, isAgreed, type Permitting } from "../kit/kit.ts";
import type { PiConfig } from "../pi/entry.ts";
import {
	type AgentHost,
	checkFilesRoot,
	chooseModel,
	drive,
	joiningTurn,
	type LoadedModel,
	loadModel,
	PI_LIMITS,
	type PiAgent,
	type PiContext,
	type PiLimits,
	signerOf,
	type TakeJoining,
	toPiContext,
} from "../pi/pi.ts";
import { ContextWords } from "../policy.ts";
import {
	type BashConfig,
	commandEnvironment,
	type GuardedFiles,
	guardedFiles,
	type ToolsConfig,
	wrappedCommand,
} from "../tools/tools.ts";

type CodingAgent = typeof import("@earendil-works/pi-coding-agent");

export type CodingLimits = Pick<PiLimits, "retriesMax" | "retryDelayMsMax" | "abortSettleMs">;

export interface CodingParts {
	loaded: LoadedModel;
	failure: FailureContext;
	config: PiConfig;
	limits: CodingLimits;
	compaction?: CompactionSettings;
	/** In addition to read, bash, edit and write. */
	tools?: readonly ToolDefinition[];
	/** Left out when nothing has to be kept from it. */
	services?: (Pick<EngineServices, "dataDir" | "protectedFiles" | "secretFiles"> & Partial<EngineServices>) | undefined;
}

export async function createPiCodingAgentEngine(
	config: PiConfig,
	env: EnvironmentVariables = process.env,
	limits: CodingLimits = PI_LIMITS,
	services?: CodingParts["services"],
): Promise<Engine> {
	const choice = chooseModel(config, env);
	await checkFilesRoot(config.filesRoot);
	const loaded = await loadModel(choice, config.thinking);
	return codingEngine({ loaded, failure: { ...choice, section: "pi" }, config, limits, services });
}

export async function codingEngine(parts: CodingParts): Promise<Engine> {
	const pi = await import("@earendil-works/pi-coding-agent");
	const { InMemoryCredentialStore } = await import("@earendil-works/pi-ai");
	const modelRuntime = await pi.ModelRuntime.create({
		credentials: new InMemoryCredentialStore(),
		modelsPath: null,
		refreshOnCreate: false,
	});
	modelRuntime.registerNativeProvider(parts.loaded.provider);

	const open = async (
		request: EngineRequest,
		{ take, teller }: AgentHost,
		answer: EngineContext["answer"],
	): Promise<PiAgent> => {
		const signer = signerOf(parts.loaded.model, parts.config.thinking, parts.failure.apiKey);
		const context = toPiContext(request, Date.now(), signer);
		const session = await openSession(pi, modelRuntime, parts, request, context, { answer, teller });
		joinBetweenTurns(session, take);
		return {
			subscribe: (listener) => session.subscribe(listener),
			// Resolves after `agent_settled`: behind `agent_end` a compaction and another round may still follow.
			start: () => session.prompt(...promptOf(context.prompt)),
			stop: () => session.abort(),
			dispose: () => session.dispose(),
		};
	};

	const { failure, limits } = parts;
	const { abortSettleMs } = limits;
	return {
		name: "pi-coding-agent",
		injects: true,
		run: (request, { signal, answer, inbox }) =>
			drive((host) => open(request, host, answer), { signal, failure, abortSettleMs, inbox, startsItself: () => true }),
	};
}

/** Behind what the session itself prepares, as a compaction. */
function joinBetweenTurns({ agent }: AgentSession, take: TakeJoining): void {
	const before = agent.prepareNextTurnWithContext;
	agent.prepareNextTurnWithContext = async (turn, signal) => {
		const prepared = await before?.(turn, signal);
		const joining = await joiningTurn(take);
		if (!joining) return prepared;
		return { ...prepared, messages: [...(prepared?.messages ?? []), ...joining.messages] };
	};
}

async function openSession(
	pi: CodingAgent,
	modelRuntime: ModelRuntime,
	{ loaded, config, limits, compaction, tools = [], services }: CodingParts,
	request: EngineRequest,
	{ history }: PiContext,
	{ answer, teller }: Pick<Permitting, "answer" | "teller">,
): Promise<AgentSession> {
	const cwd = path.resolve(config.filesRoot ?? process.cwd());
	const sessionManager = pi.SessionManager.inMemory(cwd);
	for (const message of history) sessionManager.appendMessage(message);
	const words = new ContextWords(request);
	// A call that a person has agreed to may go where the owner may.
	const isOwner = () => (isAgreed() ? words.agreed : words.request).owner === true;
	const files = guardedFiles({ root: cwd, isOwner, ...services });
	const offered = allowedTools([...codingTools(pi, cwd, files, bashOf(services)), ...tools], request);
	const permitting = { request, words, answer, teller };
	const definitions = offered.map((tool) => approved(bounded(tool, request.toolTimeoutMs), permitting));
	const { session } = await pi.createAgentSession({
		cwd,
		agentDir: cwd,
		modelRuntime,
		model: loaded.model,
		thinkingLevel: config.thinking ?? "off",
		noTools: "builtin",
		customTools: definitions,
		tools: definitions.map((tool) => tool.name),
		sessionManager,
		resourceLoader: resources(pi, config, cwd),
		settingsManager: pi.SettingsManager.inMemory({
			compaction,
			// A round that is repeated after it showed text would show it twice; refused calls are retried below, in the provider.
			retry: { enabled: false, provider: { maxRetries: limits.retriesMax, maxRetryDelayMs: limits.retryDelayMsMax } },
			cacheWarming: "off",
		}),
	});
	return session;
}

function codingTools(pi: CodingAgent, cwd: string, files: GuardedFiles, bash: BashConfig): ToolDefinition[] {
	const detectImageMimeType = async (file: string) => imageTypeOf(await files.readFile(file));
	const { enabled = true, wrapper = [], env: envNames = [] } = bash;
	const shell = pi.createBashToolDefinition(cwd, {
		exposeSessionEnvironment: false,
		spawnHook: ({ command, env, ...spawned }) => ({
			...spawned,
			command: wrapper.length === 0 ? command : wrappedCommand(wrapper, command),
			env: commandEnvironment(env, envNames),
		}),
	});
	const definitions = [
		pi.createReadToolDefinition(cwd, { operations: { ...files, detectImageMimeType } }),
		...(enabled ? [shell] : []),
		pi.createEditToolDefinition(cwd, { operations: files }),
		pi.createWriteToolDefinition(cwd, { operations: files }),
	];
	// Each has its own parameter type; the session validates before it calls.
	return definitions as unknown as ToolDefinition[];
}

/** Settings of the shell, shared by all engines. */
const bashOf = (services: CodingParts["services"]): BashConfig =>
	(services?.config?.tools as ToolsConfig | undefined)?.bash ?? {};

/** First bytes, in hexadecimal; dots are a length in between. */
const IMAGES: readonly [type: string, begins: RegExp][] = [
	["image/png", /^89504e470d0a1a0a/],
	["image/jpeg", /^ffd8ff/],
	["image/gif", /^47494638(?:37|39)61/],
	["image/webp", /^52494646.{8}57454250/],
];

/** Images that models see, recognised by their content, not by their names. */
function imageTypeOf(bytes: Buffer): string | undefined {
	const head = bytes.toString("hex", 0, 12);
	return IMAGES.find(([, begins]) => begins.test(head))?.[0];
}

type Resources = NonNullable<NonNullable<Parameters<CodingAgent["createAgentSession"]>[0]>["resourceLoader"]>;

/** The folder's own AGENTS.md, and nothing from the user's home: no extensions, skills or prompt templates. */
function resources(pi: CodingAgent, config: PiConfig, cwd: string): Resources {
	const extensions = { extensions: [], errors: [], runtime: pi.createExtensionRuntime() };
	const agentsFiles = pi.loadProjectContextFiles({ cwd, agentDir: cwd });
	return {
		getExtensions: () => extensions,
		getSkills: () => ({ skills: [], diagnostics: [] }),
		getPrompts: () => ({ prompts: [], diagnostics: [] }),
		getThemes: () => ({ themes: [], diagnostics: [] }),
		getAgentsFiles: () => ({ agentsFiles }),
		getSystemPrompt: () => config.systemPrompt,
		getSystemPromptSource: () => undefined,
		getAppendSystemPrompt: () => [],
		getAppendSystemPromptSources: () => [],
		extendResources: () => {},
		reload: async () => {},
	};
}

function promptOf({ content }: UserMessage): Parameters<AgentSession["prompt"]> {
	if (typeof content === "string") return [content, { expandPromptTemplates: false }];
	const text = content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");
	const images = content.filter((part) => part.type === "image");
	return [text, { expandPromptTemplates: false, images }];
}
