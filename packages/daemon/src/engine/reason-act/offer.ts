/** Everything that an agent's model is given: its instructions and the phase, the messages it reads within its context, and the tools it may use within the rights of the run. */

import type { Message, UserMessage } from "@earendil-works/pi-ai";
import { NexusError, wordsOf } from "@nexus-stream/protocol";
import type { EngineMessage, EngineRequest, ExecutionEntry } from "@nexus-stream/protocol/engine";
import { fitsSome } from "../../std/globs.ts";
import { END } from "../agents.ts";
import { type Signer, toPiMessages } from "../pi/pi.ts";
import { isToolAllowed } from "../policy.ts";
import { fieldsOf, type Tool, textResult } from "../tool.ts";
import { type ToolRegistry, toolRegistry } from "../tools/tools.ts";
import type { AgentNote } from "./checkpoint.ts";
import type { RunProgress } from "./progress.ts";
import { AGENT, type AgentSpec, forTool, type LoopSetup } from "./setup.ts";
import { TERMINAL } from "./termination.ts";

export type Offer = (agent: AgentSpec, enforced: boolean) => ToolRegistry;

/** Names of the loop's own tools, which no source may use. */
const RESERVED: readonly string[] = Object.values(TERMINAL);

/** Asks every source once: later changes count from the next run. */
export async function offerFor(
	setup: LoopSetup,
	request: EngineRequest,
	log: (entry: ExecutionEntry) => void,
): Promise<Offer> {
	const { toolSources: sources = [] } = setup;
	const lists = await Promise.all(
		sources.map(async (source) => {
			try {
				return await source.tools(request);
			} catch (cause) {
				log({ kind: "note", text: `${source.name} offers no tools: ${wordsOf(cause)}` });
				return [];
			}
		}),
	);
	const sourced = lists.flat();
	const known = new Map<string, ToolRegistry>();
	return (agent, enforced) => {
		const key = JSON.stringify([agent.name, enforced]);
		const found = known.get(key) ?? registryOf(agent, enforced, sourced, setup, request);
		known.set(key, found);
		return found;
	};
}

function registryOf(
	agent: AgentSpec,
	enforced: boolean,
	sourced: readonly Tool[],
	setup: LoopSetup,
	request: EngineRequest,
): ToolRegistry {
	const isOffered = ({ name }: Tool) =>
		!RESERVED.includes(name) && fitsSome(name, agent.toolNames ?? ["*"]) && isToolAllowed(name, request);
	// The agent's own tool wins over a server's tool of the same name.
	const byName = new Map([...sourced.toReversed(), ...agent.tools.tools].map((tool) => [tool.name, tool]));
	const own = [...byName.values()].filter(isOffered).map((tool) => asConfigured(tool, setup));
	const others = [...setup.agents.keys()].filter((name) => name !== agent.name && mayUse(request, name));
	const routing = [routeTool(others, Object.keys(setup.phases)), endTool];
	const ends = agent.orchestrator ? routing : enforced ? [completeTool] : [];
	return toolRegistry([...own, ...ends]);
}

function asConfigured(tool: Tool, setup: LoopSetup): Tool {
	const describe = forTool(setup.describe, tool.name);
	const priority = forTool(setup.priority, tool.name);
	if (describe === undefined && priority === undefined) return tool;
	return { ...tool, ...(describe && { describe }), ...(priority !== undefined && { priority }) };
}

/** Whether all senders of the run may use an agent. */
export const mayUse = ({ allowedAgents }: EngineRequest, agent: string): boolean =>
	allowedAgents === undefined || allowedAgents.includes(agent);

/** The agent that the run begins with. A single agent answers to every name in access rules; so does the first of several to the default name. */
export function entryAgent({ agents, entry }: LoopSetup, request: EngineRequest): string {
	const { agent = entry } = request;
	const isSeveral = agents.size > 1;
	const name = isSeveral && (agents.has(agent) || agent !== AGENT) ? agent : entry;
	if (!agents.has(name)) throw new NexusError("engine_failed", `there is no agent "${name}"`);
	if (isSeveral && !mayUse(request, name))
		throw new NexusError("engine_failed", `the sender may not use the agent "${name}"`);
	return name;
}

/** The schema lists the allowed agents and phases; others are refused. */
const routeTool = (agents: readonly string[], phases: readonly string[]): Tool => ({
	name: TERMINAL.route,
	description: `Decides who works next. They get your reason and work one after another, then you are called again. ${END} alone ends the conversation.`,
	parameters: fieldsOf(
		{
			agents: { type: "array", minItems: 1, items: { type: "string", enum: [...agents, END] } },
			phase: {
				type: "string",
				enum: phases,
				description: "What the session works on from now on; left out = as before.",
			},
			reason: { type: "string", minLength: 1, description: "What they have to do, and why. People see it, too." },
			parallel: { type: "boolean", description: "All at once instead of one after another." },
		},
		"agents",
		"reason",
	),
	terminal: true,
	describe: ({ agents, reason }) =>
		`➡️ ${Array.isArray(agents) ? agents.join(", ") : END}${typeof reason === "string" ? `: ${reason}` : ""}`,
	execute: async () => textResult("routed"),
});

const endTool: Tool = {
	name: TERMINAL.end,
	description: "Ends the conversation, with a last answer for the person.",
	parameters: fieldsOf({ response: { type: "string", description: "Shown to the person." } }),
	terminal: true,
	describe: () => "🏁 Ending the conversation",
	execute: async () => textResult("ended"),
};

/** The tool that ends an agent's work: the loop reads its arguments. */
const completeTool: Tool = {
	name: TERMINAL.complete,
	description: "Signals that your work is done. Call it once, at the very end.",
	parameters: fieldsOf({
		response: { type: "string", description: "Shown to the person, if you have said nothing else." },
		summary: { type: "string", description: "What you did, for the next agent." },
	}),
	terminal: true,
	describe: ({ summary }) => (typeof summary === "string" && summary !== "" ? `✅ Done: ${summary}` : "✅ Done"),
	execute: async () => textResult("done"),
};

export function systemPrompt(
	{ prompt, orchestrator }: AgentSpec,
	enforced: boolean,
	{ phase, transition }: Pick<RunProgress, "phase" | "transition">,
	{ recentTransitionMs, clock }: LoopSetup,
): string {
	const parts = [prompt];
	if (transition && clock.now() - transition.at < recentTransitionMs) {
		const how = transition.from === phase ? `been set to ${phase}` : `changed from ${transition.from} to ${phase}`;
		parts.push(`The phase has just ${how} because: ${transition.because}`);
	}
	if (enforced && !orchestrator)
		parts.push(`The phase is ${phase}. When your work is done, and only then, call the tool \`${TERMINAL.complete}\`.`);
	if (orchestrator)
		parts.push(
			`The phase is ${phase}. You decide who works next: end with the tool \`${TERMINAL.route}\` or \`${TERMINAL.end}\`.`,
		);
	return parts.filter((part) => part !== "").join("\n\n");
}

/** The session's turns, with the newest message last. */
export function sessionFor(agent: string, request: EngineRequest, now: number, signer: Signer | undefined): Message[] {
	const messages = request.messages.map((message) => (isForeign(message, agent) ? quoted(message) : message));
	return toPiMessages({ ...request, messages }, now, signer);
}

/** A message without a name is from a run with a single agent. */
const isForeign = ({ role, agent }: EngineMessage, reader: string): boolean =>
	role === "assistant" && agent !== undefined && agent !== reader;

/** Without its tools and reasoning: a model must not take another agent's calls for its own. */
const quoted = ({ agent, text }: EngineMessage): EngineMessage => ({
	role: "user",
	text: `[${agent}] ${text || "(no text)"}`,
});

/** Hand-over notes of the other agents since the agent last read; its own are in its own messages. */
export const notesFor = (agent: string, notes: readonly AgentNote[], now: number): UserMessage[] =>
	notes.filter((note) => note.agent !== agent).map((note) => userWords(`[${note.agent}] ${note.text}`, now));

export const userWords = (content: string, timestamp: number): UserMessage => ({ role: "user", content, timestamp });

const CHARS_PER_TOKEN = 4;
/** Approximate cost of a picture. */
const IMAGE_CHARS = 4800;
/** A result this short is not worth replacing. */
const RESULT_CHARS_MIN = 200;

/** The same array when nothing has to give way. */
export function trimmed(messages: readonly Message[], tokensMax: number): readonly Message[] {
	let chars = messages.reduce((sum, message) => sum + charsOf(message), 0);
	const charsMax = tokensMax * CHARS_PER_TOKEN;
	if (chars <= charsMax) return messages;
	const kept = [...messages];
	let changed = false;
	for (const [index, message] of messages.entries()) {
		if (chars <= charsMax) break;
		const size = charsOf(message);
		if (message.role !== "toolResult" || size <= RESULT_CHARS_MIN) continue;
		const text = `[this result of ${size} characters was removed to make room; call ${message.toolName} again if you need it]`;
		kept[index] = { ...message, content: [{ type: "text", text }] };
		chars += text.length - size;
		changed = true;
	}
	return changed ? kept : messages;
}

function charsOf(message: Message): number {
	if (typeof message.content === "string") return message.content.length;
	let chars = 0;
	for (const part of message.content) {
		if (part.type === "text") chars += part.text.length;
		else if (part.type === "thinking") chars += part.thinking.length;
		else if (part.type === "toolCall") chars += part.name.length + JSON.stringify(part.arguments).length;
		else chars += IMAGE_CHARS;
	}
	return chars;
}
