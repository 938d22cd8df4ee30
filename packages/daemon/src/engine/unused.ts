/** What the configuration says to agents' tools, memory and MCP servers, and the engine that runs does not use. */

import { ENGINES, type EngineChoice, type Engines, engineNamed } from "./engines.ts";

/** As much of the configuration as engines share. */
interface Shared {
	tools?: object | undefined;
	memory?: { enabled?: boolean } | undefined;
	mcp?: { servers?: object } | undefined;
}

/** Paths such as `tools.bash.wrapper`. The demo plays a script and uses nothing of it. */
export function unusedSettings(choice: EngineChoice, config: object, engines: Engines = ENGINES): string[] {
	const uses = usedBy(choice, engines) ?? [];
	const isUsed = (path: string) => uses.some((used) => path === used || path.startsWith(`${used}.`));
	return given(config as Shared).filter((path) => !isUsed(path));
}

/** Undefined: the engine plays a script and has no tools. A module brings all that its agent has. */
export const usedBy = (choice: EngineChoice, engines: Engines = ENGINES): readonly string[] | undefined =>
	typeof choice === "object" ? [] : engineNamed(choice, engines)?.uses;

function given({ tools, memory, mcp }: Shared): string[] {
	return [
		...leaves("tools", tools),
		// Its limits hold for notes that people make by the API, too.
		...(memory?.enabled ? ["memory.enabled"] : []),
		...(Object.keys(mcp?.servers ?? {}).length > 0 ? ["mcp"] : []),
	];
}

/** `bash` is a group of its own; the other keys are settled as a whole. */
const leaves = (path: string, group: object | undefined): string[] =>
	Object.entries(group ?? {}).flatMap(([key, value]) => {
		if (value === undefined) return [];
		return key === "bash" ? leaves(`${path}.${key}`, value as object) : [`${path}.${key}`];
	});
