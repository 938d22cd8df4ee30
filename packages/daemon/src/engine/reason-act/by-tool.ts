/** Settings by tool: its own name first, then the first name with a `*` at the end that fits. */

import { fitsGlob } from "../../std/globs.ts";

export function forTool<T>(settings: Readonly<Record<string, T>> | undefined, tool: string): T | undefined {
	if (settings === undefined) return undefined;
	if (Object.hasOwn(settings, tool)) return settings[tool];
	const glob = Object.keys(settings).find((name) => name.endsWith("*") && fitsGlob(tool, name));
	return glob === undefined ? undefined : settings[glob];
}
