/** Tools that are known only once a run begins: a memory bank of its sender, an MCP server's. They join the agents' own. */

import type { EngineRequest, EngineYield } from "../port.ts";
import { type Tool, type ToolSource, toolRegistry } from "../tools/tools.ts";
import type { AgentSpec, LoopSetup } from "./setup.ts";

export interface Sources {
	sources: readonly ToolSource[];
	warn(facts: Readonly<Record<string, unknown>>, message: string): void;
}

/** The same setup with the tools of this run. A name that is taken is not offered twice: the first one counts. */
export async function withSources(setup: LoopSetup, request: EngineRequest, { sources, warn }: Sources) {
	const found = await Promise.all(
		sources.map(async (source) => (await source.tools(request)).map((tool) => ({ tool, source }))),
	);
	const more: Tool[] = [];
	const taken = new Set([...setup.agents.values()].flatMap(({ tools }) => tools.tools.map(({ name }) => name)));
	for (const { tool, source } of found.flat()) {
		if (taken.has(tool.name)) warn({ tool: tool.name, source: source.name }, "a tool has a name that is taken");
		else more.push(tool);
		taken.add(tool.name);
	}
	const agents = [...setup.agents].map(([name, agent]): [string, AgentSpec] => {
		const own = toolRegistry(more).only(agent.toolNames).tools;
		return [name, { ...agent, tools: toolRegistry([...agent.tools.tools, ...own]) }];
	});
	return { ...setup, agents: new Map(agents) };
}

/** Waits for the setup of a run at its first step only: later ones go straight to the loop. */
export function onceReady(
	prepare: () => Promise<AsyncIterable<EngineYield>>,
): AsyncIterable<EngineYield> & AsyncIterator<EngineYield> {
	let inner: AsyncIterator<EngineYield> | undefined;
	return {
		[Symbol.asyncIterator]() {
			return this;
		},
		next() {
			if (inner) return inner.next();
			return prepare().then((iterable) => {
				inner = iterable[Symbol.asyncIterator]();
				return inner.next();
			});
		},
		async return() {
			return (await inner?.return?.()) ?? { done: true, value: undefined };
		},
	};
}
