/** Checks of the engine, its keys, its tools and the plugins. */

import { accessSync, constants } from "node:fs";
import { chooseEngine, ENGINES, engineNamed, loadEngine, mcpProblems, unusedSettings } from "../../engine/engine.ts";
import { engineServicesModule, type NexusConfig } from "../../runtime/runtime.ts";
import type { Host } from "../host.ts";
import { fail, ok, type Seen, warn } from "./finding.ts";

export async function engine(config: NexusConfig, env: Host["env"]): Promise<Seen> {
	const chosen = chooseEngine(config.engine, config, env);
	const services = (await engineServicesModule()).createEngineServices(config, { warn: () => {} });
	const loaded = await loadEngine(chosen, { base: config.base, env, config, services });
	await loaded.close?.();
	const because = typeof chosen === "object" ? undefined : engineNamed(chosen, config)?.entry.because;
	return ok(config.engine === undefined && because !== undefined ? `${loaded.name} (${because})` : loaded.name);
}

export function keys(config: NexusConfig, env: Host["env"]): Seen {
	const chosen = chooseEngine(config.engine, config, env);
	if (typeof chosen === "object") return ok("managed by your module");
	const { entry, section } = engineNamed(chosen, config)!;
	if (entry.checkKeys === undefined) {
		const hints = new Set(ENGINES.flatMap(({ hint }) => hint ?? []));
		return ok([`none: the ${chosen} engine needs none`, ...hints].join("; "));
	}
	const { ok: set, detail, todo = "" } = entry.checkKeys(section, env);
	return set ? ok(detail) : fail(detail, todo);
}

/** Whether commands of agents are confined. Whether the folder may be used, the engine says. */
export function tools(config: NexusConfig, env: Host["env"]): Seen {
	const unused = unusedOf(config, env, "tools.");
	if (unused) return unused;
	const { tools: { root, bash } = {}, pi } = config;
	if (chooseEngine(config.engine, config, env) === "pi-coding-agent") {
		const place = `files below ${pi?.filesRoot ?? "the daemon's folder"}, and all that this user may for the owner`;
		return bash?.enabled === false ? ok(`${place}; no commands`) : commands(place, bash?.wrapper, env);
	}
	if (root === undefined) return ok("no folder: agents reach no files");
	return bash?.enabled ? commands(`files below ${root}`, bash.wrapper, env) : ok(`files below ${root}, no commands`);
}

function commands(place: string, [wrapper]: readonly string[] = [], env: Host["env"]): Seen {
	if (wrapper === undefined)
		return warn(
			"commands run without a wrapper: an approved one may do whatever this user may",
			"confine them with tools.bash.wrapper, such as bwrap; see docs/tools.md",
		);
	const places = wrapper.includes("/") ? [wrapper] : (env.PATH ?? "").split(":").map((dir) => `${dir}/${wrapper}`);
	if (places.some(isExecutable)) return ok(`${place}, commands in ${wrapper}`);
	return fail(`${wrapper} of tools.bash.wrapper was not found`, "install it, or correct tools.bash.wrapper");
}

/** A setting without an effect must not look as if it had one. */
function unusedOf(config: NexusConfig, env: Host["env"], below: string): Seen | undefined {
	const chosen = chooseEngine(config.engine, config, env);
	const unused = unusedSettings(chosen, config).filter((path) => path.startsWith(below));
	if (unused.length === 0) return undefined;
	const name = typeof chosen === "object" ? chosen.module : chosen;
	return warn(`the engine ${name} does not use ${unused.join(", ")}`, "set `engine: reason-act`, or remove it");
}

export function agents(config: NexusConfig): Seen {
	const without = agentsWithout(config);
	if (without.length === 0) return ok(Object.keys(config.agents ?? {}).join(", "));
	return warn(without.join("\n"), "switch it on, or take it off the agent's `tools`");
}

function isExecutable(path: string): boolean {
	try {
		accessSync(path, constants.X_OK);
		return true;
	} catch {
		return false;
	}
}

export async function plugins({ plugins: modules = [], base }: NexusConfig): Promise<Seen> {
	if (modules.length === 0) return ok("none");
	const { loadPlugins } = await import("../../nex/nex.ts");
	const loaded = await loadPlugins(modules, base);
	return ok(loaded.map(({ name }) => name).join(", "));
}

/** Without starting a server: it may act as soon as it runs. */
export function mcp(config: NexusConfig, env: Host["env"]): Seen {
	const { mcp: section, base } = config;
	const names = Object.keys(section?.servers ?? {});
	if (section === undefined || names.length === 0) return ok("no servers");
	const problems = mcpProblems(section, env, base).map(({ server, problem }) => `${server}: ${problem}`);
	if (problems.length > 0) return fail(problems.join("\n"), "correct it in `mcp.servers`, or set what is missing");
	const found = ok(`${names.join(", ")}; \`nexus mcp --start\` tries them`);
	// The demo is what runs until there is a model: then it is another engine's turn.
	if (chooseEngine(config.engine, config, env) === "demo") return found;
	return unusedOf(config, env, "mcp") ?? found;
}

const FILES = ["read", "write", "edit"];
const NOTES = ["remember", "recall", "forget", "learn"];
const MCP = /^mcp__(.+?)__/;

/** Tools that an agent names and the configuration does not switch on: it would silently do without them. One line for each, such as `writer names bash, which needs tools.bash.enabled`. */
const agentsWithout = (config: NexusConfig): string[] =>
	Object.entries(config.agents ?? {}).flatMap(([name, { tools = [] }]) =>
		tools.flatMap((tool) => {
			const needed = neededFor(tool, config);
			return needed === undefined ? [] : [`${name} names ${tool}, which needs ${needed}`];
		}),
	);

function neededFor(tool: string, { tools, memory, mcp }: NexusConfig): string | undefined {
	const needsRoot = tool === "bash" || FILES.includes(tool);
	if (needsRoot && tools?.root === undefined) return "`tools.root`";
	if (tool === "bash" && !tools?.bash?.enabled) return "`tools.bash.enabled`";
	if (NOTES.includes(tool) && !memory?.enabled) return "`memory.enabled`";
	const server = MCP.exec(tool)?.[1];
	if (server === undefined || server.includes("*") || Object.hasOwn(mcp?.servers ?? {}, server)) return undefined;
	return `\`mcp.servers.${server}\``;
}
