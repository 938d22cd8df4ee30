/** Which tools the agents of one run are offered: their own and those of the house, within what the run may use. */

import { wordsOf } from "@nexus-stream/protocol";
import type { EngineRequest, ExecutionEntry } from "@nexus-stream/protocol/engine";
import { fitsSome } from "../../std/globs.ts";
import { type Tool, type ToolRegistry, toolRegistry } from "../tools/tools.ts";
import { completeTool } from "./built-in.ts";
import { forTool } from "./by-tool.ts";
import { orchestratorTools } from "./routing.ts";
import type { AgentSpec, LoopSetup } from "./setup.ts";
import { TERMINAL } from "./termination.ts";

export type Offer = (agent: AgentSpec, enforced: boolean) => ToolRegistry;

/** The loop's own: nobody else brings a tool of such a name. */
const RESERVED: readonly string[] = Object.values(TERMINAL);

/** Asks every source once: what changes in it later counts from the next run. */
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
	// Of two tools with one name the agent's own stays: a server cannot take its place.
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
