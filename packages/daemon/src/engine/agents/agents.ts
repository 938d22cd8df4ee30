/** How several agents are configured, whichever engine has them. The door of this folder. */
export {
	type AgentConfig,
	agentsConfigSchema,
	END,
	type PhasesConfig,
	phasesConfigSchema,
	TOOLS_IN_WORDS,
} from "./config.ts";
export { agentProblems, isPromptFile } from "./problems.ts";
