/** Several agents, whichever engine has them: the `agents:` and `phases:` sections of `nexus.yaml`, and what is wrong with them beyond the types of their values. Pure. */

import type { z } from "zod";
import { fitsGlob } from "../std/globs.ts";
import type { ConfigWords } from "./entry.ts";
import { TOOL_NAMES } from "./tool.ts";

/** The name in a routing decision that ends the run. */
export const END = "END";

/** @public How messages call what stands on the left of a map by tools. */
export const TOOLS_IN_WORDS = "tools, such as read or mcp__docs__*";

export const phasesConfigSchema = ({ byName, count, flag, group }: ConfigWords) =>
	byName(group({ enforce: flag, attemptsMax: count }), "a map from phases to { enforce, attemptsMax }");

export type PhasesConfig = z.infer<ReturnType<typeof phasesConfigSchema>>;

/** Everything may be left out; what names a model falls back to the engine's own section. */
const agentConfigSchema = ({ byTool, count, flag, group, ms, oneOf, text, texts }: ConfigWords) =>
	group({
		orchestrator: flag,
		prompt: text("a text, or a file such as ./writer.md; relative to this file"),
		provider: text("openai, anthropic, google, scripted, or a name that the engine's section has"),
		model: text("a model's id"),
		thinking: oneOf(["off", "minimal", "low", "medium", "high"]),
		attemptsMax: count,
		/** The agent that takes over when this one fails. */
		fallback: text("the name of an agent, or END"),
		/** Its words are shown to people; orchestrators' are not unless this says so. */
		visible: flag,
		/** A `*` at the end stands for any rest; left out = all. */
		tools: texts(`a list of ${TOOLS_IN_WORDS}`),
		approval: byTool(
			oneOf(["never", "non-owner", "always"]),
			`a map from ${TOOLS_IN_WORDS} to never, non-owner or always`,
		),
		timeoutMs: byTool(ms, `a map from ${TOOLS_IN_WORDS} to milliseconds`),
	});

export type AgentConfig = z.infer<ReturnType<typeof agentConfigSchema>>;

export const agentsConfigSchema = (words: ConfigWords) =>
	words.byName(agentConfigSchema(words), "a map from names of agents to their configuration");

/** `key`: the name of an entry in the map at `path`. */
export interface ConfigProblem {
	path: readonly string[];
	key?: string;
	message: string;
}

interface AccountAgent {
	agent?: string;
}

/** As much of the configuration as agents have to do with. */
export interface AgentFacts {
	/** The engine that is configured. */
	engine: EngineFacts | undefined;
	/** Engines that have agents. */
	enginesWithAgents: readonly string[];
	agents?: Agents | undefined;
	phases?: object | undefined;
	channels?: Readonly<Record<string, AccountAgent & { accounts?: Readonly<Record<string, AccountAgent>> }>> | undefined;
	/** The Broker's own limit of one tool. */
	toolMs: number;
	/** Whether a prompt's file can be read. */
	isFile(path: string): boolean;
}

export interface EngineFacts {
	name: string;
	/** Where it is configured. */
	section?: string | undefined;
	/** Time limits of tools in that section. */
	limits?: { timeoutMs?: Readonly<Record<string, number>>; commandMs?: number } | undefined;
}

export function agentProblems(facts: AgentFacts): ConfigProblem[] {
	const { agents } = facts;
	const shared = [...ofEngine(facts), ...limitsOf(facts)];
	if (agents === undefined) return shared;
	const each = Object.entries(agents).flatMap(([name, agent]) => ofOne(name, agent, agents, facts));
	return [...shared, ...ofAll(agents), ...each, ...ofChannels(facts, agents)];
}

/** Settings for an engine that does not read them would have no effect. */
function ofEngine({ engine, enginesWithAgents, agents, phases }: AgentFacts): ConfigProblem[] {
	if (engine !== undefined && enginesWithAgents.includes(engine.name)) return [];
	const names = enginesWithAgents.join(", ");
	const given = Object.entries({ agents, phases }).filter(([, value]) => value !== undefined);
	return given.map(([key]) => ({
		path: [],
		key,
		message: `${key}: only the engine ${names} has ${key}; set \`engine: ${names}\`, or remove this`,
	}));
}

function limitsOf(facts: AgentFacts): ConfigProblem[] {
	const { section, limits } = facts.engine ?? {};
	if (section === undefined || limits === undefined) return [];
	const { timeoutMs = {}, commandMs = 0 } = limits;
	const byTool = Object.entries(timeoutMs).flatMap(([tool, ms]) => tooLong([section, "timeoutMs", tool], ms, facts));
	return [...byTool, ...tooLong([section, "commandMs"], commandMs, facts)];
}

type Agents = Readonly<Record<string, AgentConfig>>;

function ofAll(agents: Agents): ConfigProblem[] {
	const names = Object.keys(agents);
	const [lead, ...more] = names.filter((name) => agents[name]?.orchestrator);
	const at = (message: string): ConfigProblem => ({ path: [], key: "agents", message: `agents: ${message}` });
	if (names.length === 0) return [at("there is none; name one, or remove this")];
	if (names.length > 1 && lead === undefined)
		return [at(`${names.length} agents need one that routes: set \`orchestrator: true\` for one of them`)];
	return more.map((name) => ({
		path: ["agents", name],
		key: "orchestrator",
		message: `agents.${name}.orchestrator: ${lead} is the orchestrator; there can be one`,
	}));
}

function ofOne(name: string, agent: AgentConfig, agents: Agents, facts: AgentFacts): ConfigProblem[] {
	const path = ["agents", name];
	const at = (key: string, message: string): ConfigProblem => ({
		path,
		key,
		message: `${path.join(".")}.${key}: ${message}`,
	});
	const problems: ConfigProblem[] = [];
	if (name === END)
		problems.push({
			path: ["agents"],
			key: name,
			message: `agents.${END}: ${END} is what ends a conversation; choose another name`,
		});
	const { prompt, tools = [], approval = {}, timeoutMs = {}, fallback } = agent;
	if (prompt !== undefined && isPromptFile(prompt) && !facts.isFile(prompt))
		problems.push(at("prompt", `${prompt} cannot be read; a path is relative to this file`));
	const named = { tools, approval: Object.keys(approval), timeoutMs: Object.keys(timeoutMs) };
	for (const [key, names] of Object.entries(named))
		for (const tool of names.filter((one) => !isTool(one)))
			problems.push(at(key, `there is no tool "${tool}"; there are ${TOOL_NAMES.join(", ")}, and mcp__server__tool`));
	for (const [tool, ms] of Object.entries(timeoutMs))
		problems.push(...tooLong([...path, "timeoutMs", tool], ms, facts));
	if (fallback !== undefined) {
		const problem = fallbackProblem(name, fallback, agents);
		if (problem !== undefined) problems.push(at("fallback", problem));
	}
	return problems;
}

function fallbackProblem(name: string, fallback: string, agents: Agents): string | undefined {
	if (fallback === END) return agents[name]?.orchestrator ? undefined : `${END} is for the orchestrator; name an agent`;
	if (!Object.hasOwn(agents, fallback))
		return `there is no agent "${fallback}"; there are ${Object.keys(agents).join(", ")}`;
	const way = [name];
	for (let next: string | undefined = fallback; next !== undefined && next !== END; next = agents[next]?.fallback) {
		if (next === name) return `fallback cycle: ${[...way, name].join(" → ")}`;
		// A circle that does not lead through this one is said of those in it.
		if (way.includes(next)) return undefined;
		way.push(next);
	}
	return undefined;
}

function ofChannels({ channels = {} }: AgentFacts, agents: Agents): ConfigProblem[] {
	const places = Object.entries(channels).flatMap(([name, { agent, accounts = {} }]) => [
		{ path: ["channels", name], agent },
		...Object.entries(accounts).map(([account, one]) => ({
			path: ["channels", name, "accounts", account],
			agent: one.agent,
		})),
	]);
	const known = Object.keys(agents).join(", ");
	return places.flatMap(({ path, agent }) =>
		agent === undefined || Object.hasOwn(agents, agent)
			? []
			: [{ path, key: "agent", message: `${path.join(".")}.agent: there is no agent "${agent}"; there are ${known}` }],
	);
}

/** The Broker would stop the whole run before the tool's own limit could fail the tool. */
function tooLong(path: readonly string[], ms: number, { toolMs }: AgentFacts): ConfigProblem[] {
	if (ms <= toolMs) return [];
	const message = `${path.join(".")}: ${ms} is above broker.toolMs (${toolMs}), which ends the run first; raise that, or lower this`;
	return [{ path, message }];
}

/** A `*` elsewhere than at the end stands for nothing. */
const isTool = (name: string): boolean =>
	/^[\w-]*\*?$/.test(name) &&
	(name === "*" ||
		name.startsWith("mcp__") ||
		TOOL_NAMES.some((tool) => fitsGlob(tool, name)) ||
		"mcp__".startsWith(name.replace(/\*$/, "")));

/** One line without spaces that looks like a path; anything else is the prompt itself. */
export const isPromptFile = (prompt: string): boolean =>
	/^\S+$/.test(prompt) && /^(?:\.{0,2}\/)|\.(?:md|txt)$/.test(prompt);
