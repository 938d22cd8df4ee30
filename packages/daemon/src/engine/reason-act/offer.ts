/** The tools offered to the agents of one run: their own and those of the daemon's sources, within the rights of the run. */

import { wordsOf } from "@nexus-stream/protocol";
import type { EngineRequest, ExecutionEntry } from "@nexus-stream/protocol/engine";
import { fitsSome } from "../../std/globs.ts";
import { type Tool, textResult } from "../tool.ts";
import { type ToolRegistry, toolRegistry } from "../tools/tools.ts";
import { type AgentSpec, forTool, type LoopSetup } from "./setup.ts";
import { END, TERMINAL } from "./termination.ts";

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
	const { allowedTools, deniedTools = [] } = request;
	const isOffered = ({ name }: Tool) =>
		!RESERVED.includes(name) &&
		(agent.toolNames === undefined || fitsSome(name, agent.toolNames)) &&
		(allowedTools === undefined || fitsSome(name, allowedTools)) &&
		!fitsSome(name, deniedTools);
	// The agent's own tool wins over a server's tool of the same name.
	const byName = new Map([...sourced.toReversed(), ...agent.tools.tools].map((tool) => [tool.name, tool]));
	const own = [...byName.values()].filter(isOffered).map((tool) => asConfigured(tool, setup));
	const ends = agent.orchestrator ? orchestratorTools(agent, setup, request) : enforced ? [completeTool] : [];
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

/** The tools with which an orchestrator ends its turn. The schema lists the allowed agents and phases; others are refused. */
export function orchestratorTools({ name }: AgentSpec, setup: LoopSetup, request: EngineRequest): Tool[] {
	const others = [...setup.agents.keys()].filter((other) => other !== name && mayUse(request, other));
	return [routeTool(others, Object.keys(setup.phases)), endTool];
}

const routeTool = (agents: readonly string[], phases: readonly string[]): Tool => ({
	name: TERMINAL.route,
	description: `Decides who works next. They get your reason and work one after another, then you are called again. ${END} alone ends the conversation.`,
	parameters: {
		type: "object",
		properties: {
			agents: { type: "array", minItems: 1, items: { type: "string", enum: [...agents, END] } },
			phase: {
				type: "string",
				enum: phases,
				description: "What the session works on from now on; left out = as before.",
			},
			reason: { type: "string", minLength: 1, description: "What they have to do, and why. People see it, too." },
			parallel: { type: "boolean", description: "All at once instead of one after another." },
		},
		required: ["agents", "reason"],
		additionalProperties: false,
	},
	terminal: true,
	describe: ({ agents, reason }) =>
		`➡️ ${Array.isArray(agents) ? agents.join(", ") : END}${typeof reason === "string" ? `: ${reason}` : ""}`,
	execute: async () => textResult("routed"),
});

const endTool: Tool = {
	name: TERMINAL.end,
	description: "Ends the conversation, with a last answer for the person.",
	parameters: {
		type: "object",
		properties: { response: { type: "string", description: "Shown to the person." } },
		additionalProperties: false,
	},
	terminal: true,
	describe: () => "🏁 Ending the conversation",
	execute: async () => textResult("ended"),
};

/** The tool that ends an agent's work: the loop reads its arguments. */
export const completeTool: Tool = {
	name: TERMINAL.complete,
	description: "Signals that your work is done. Call it once, at the very end.",
	parameters: {
		type: "object",
		properties: {
			response: { type: "string", description: "Shown to the person, if you have said nothing else." },
			summary: { type: "string", description: "What you did, for the next agent." },
		},
		additionalProperties: false,
	},
	terminal: true,
	describe: ({ summary }) => (typeof summary === "string" && summary !== "" ? `✅ Done: ${summary}` : "✅ Done"),
	execute: async () => textResult("done"),
};
