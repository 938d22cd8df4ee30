/** Loads the plugins of the config. The error for an invalid module contains an example to copy. */

import { basename, extname, resolve } from "node:path";
import { NexusError } from "@nexus-stream/protocol";
import { importWithin } from "../../std/import-within.ts";
import { HOOK_NAMES, type NamedPlugin, type Plugin } from "./port.ts";

/** Paths are relative to `base`, the config's folder. Rejects with a `config` error that says what to change. */
export function loadPlugins(modules: readonly string[], base: string): Promise<NamedPlugin[]> {
	return Promise.all(modules.map((module) => loadPlugin(module, base)));
}

async function loadPlugin(module: string, base: string): Promise<NamedPlugin> {
	const path = resolve(base, module);
	const exports = await importWithin(path).catch((cause: unknown) => {
		const reason = cause instanceof Error ? cause.message : String(cause);
		const found = `cannot be loaded: ${reason}\nPaths are relative to the folder of the config, ${base}`;
		throw new NexusError("config", `plugin ${module}: ${found}`, { cause });
	});
	return pluginFrom(exports.default, module);
}

/** Checks a plugin wherever it came from; `from` names it in the refusal. */
export function pluginFrom(found: unknown, from: string): NamedPlugin {
	if (found === undefined) throw refusal(from, "has no default export");
	if (typeof found !== "object" || found === null || Array.isArray(found))
		throw refusal(
			from,
			`its default export is ${found === null ? "null" : Array.isArray(found) ? "a list" : `a ${typeof found}`}`,
		);
	const members = found as Record<string, unknown>;
	const name = members.name ?? basename(from, extname(from));
	if (typeof name !== "string" || name === "") throw refusal(from, "its `name` is not a text");
	const wrong = HOOK_NAMES.find((hook) => members[hook] !== undefined && typeof members[hook] !== "function");
	if (wrong) throw refusal(from, `its \`${wrong}\` is a ${typeof members[wrong]}, not a function`);
	// A misspelt hook would silently never be called.
	const unknown = Object.keys(members).find((key) => /^on[A-Z]/.test(key) && !HOOK_NAMES.some((hook) => hook === key));
	if (unknown) throw refusal(from, `it has \`${unknown}\`, which is never called`);
	if (!HOOK_NAMES.some((hook) => members[hook])) throw refusal(from, `it has none of ${HOOK_NAMES.join(", ")}`);
	const plugin = found as Plugin;
	return {
		name,
		onReceive: plugin.onReceive?.bind(plugin),
		onPrepare: plugin.onPrepare?.bind(plugin),
		onComplete: plugin.onComplete?.bind(plugin),
	};
}

const refusal = (module: string, found: string) => new NexusError("config", `plugin ${module}: ${found}${SHAPE}`);

const SHAPE = `

A plugin is a module like this; each function may be left out:

  export default {
    name: "my-plugin",
    onReceive(request) {
      if (request.event.text.includes("spam")) return { reject: "no spam" };
      return { text: request.event.text.trim() };
    },
    onPrepare(request) {
      return { attach: "Today is " + new Date().toDateString(), context: { disable_streaming: true } };
    },
    onComplete(request) {
      console.log(request.response.status);
    },
  };
`;
