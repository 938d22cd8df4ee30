/** How an orchestrator hands the work on: the tools `route` and `end_conversation`, and who may be named. */

import type { EngineRequest } from "@nexus-stream/protocol/engine";
import { type Tool, textResult } from "../tools/tools.ts";
import type { AgentSpec, LoopSetup } from "./setup.ts";
import { END, TERMINAL } from "./termination.ts";

/** Whether everybody whose words the run answers may use an agent. */
export const mayUse = ({ allowedAgents }: EngineRequest, agent: string): boolean =>
	allowedAgents === undefined || allowedAgents.includes(agent);

/** What an orchestrator ends its activations with. An agent or a phase that is not in the schema is refused, and the model reads who is. */
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
