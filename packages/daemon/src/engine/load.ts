/** From the config's `engine:` to a running engine; a module that is not an agent is refused with one to copy. */

import { stat } from "node:fs/promises";
import { basename, extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { NexusError, wordsOf } from "@nexus-stream/protocol";
import type { Engine } from "@nexus-stream/protocol/engine";
import { importWithin } from "../std/import-within.ts";
import { ENGINES, type EngineChoice, type Engines, engineNamed } from "./engines.ts";
import type { EngineSetup } from "./entry.ts";

export interface LoadOptions extends Omit<EngineSetup, "env">, Partial<Pick<EngineSetup, "env">> {
	/** Holds the engines' sections. */
	config?: object;
	/** A module whose top level takes longer is refused, so that a start never hangs without a word. */
	moduleLoadMs?: number;
	engines?: Engines;
}

const MODULE_EXTENSIONS = [".ts", ".mts", ".js", ".mjs"];

/** Rejects with a `config` error that says what to change. An engine is imported only when it is chosen. */
export async function loadEngine(choice: EngineChoice, options: LoadOptions): Promise<Engine> {
	refuseUnused(choice, options);
	if (typeof choice === "object") return await loadModule(choice, options);
	const { config = {}, base, env = process.env, engines = ENGINES, services } = options;
	const found = engineNamed(choice, config, engines);
	if (found) return await found.entry.load(found.section, { base, env, services });
	const names = engines.map(({ name }) => name).join(", ");
	throw new NexusError("config", `there is no engine "${choice}"; there are ${names}, and { module: ./my-agent.ts }`);
}

/** A sandbox that is configured and does not hold is worse than none. */
function refuseUnused(choice: EngineChoice, { config = {}, engines = ENGINES }: LoadOptions): void {
	if (usedBy(choice, engines) === undefined) return;
	const unused = unusedSettings(choice, config, engines);
	if (unused.length === 0) return;
	const name = typeof choice === "object" ? choice.module : choice;
	const said = unused.map(
		(path) => `${path}: the engine ${name} does not use it; remove it, or set \`engine: reason-act\``,
	);
	throw new NexusError("config", said.join("\n"));
}

async function loadModule({ module }: { module: string }, options: LoadOptions): Promise<Engine> {
	const path = resolve(options.base, module);
	const refuse = (found: string) => new NexusError("config", explainEngineShape(module, found));
	/** The shape of the module is right, so an example agent would not help. */
	const fail = (found: string, cause: unknown) =>
		new NexusError("config", `engine module ${module}: ${found}`, { cause });
	const file = await stat(path).catch((cause) => {
		throw fail(
			`cannot be read: ${reasonOf(cause, path)}\nPaths are relative to the folder of the config, ${options.base}`,
			cause,
		);
	});
	if (!file.isFile()) throw refuse("is not a file");
	if (!MODULE_EXTENSIONS.includes(extname(path))) throw refuse(`does not end in ${MODULE_EXTENSIONS.join(", ")}`);
	const exports = await importWithin(path, options.moduleLoadMs).catch((cause) => {
		throw fail(`cannot be loaded: ${reasonOf(cause, path)}`, cause);
	});
	const engine = engineFrom(exports, basename(path, extname(path)));
	if (typeof engine === "string") throw refuse(engine);
	return engine;
}

/** The engine a module exports, or what is wrong with what it exports. */
function engineFrom(exports: Record<string, unknown>, fileName: string): Engine | string {
	const [label, found] =
		"default" in exports ? ["its default export", exports.default] : ["its `engine`", exports.engine];
	if (found === undefined) {
		const names = Object.keys(exports).filter((name) => exports[name] !== undefined);
		if (names.length === 0) return "exports nothing";
		return `has no default export; it exports ${names.map((name) => `\`${name}\``).join(", ")}`;
	}
	if (kindOf(found) === "[object AsyncGeneratorFunction]") return { name: fileName, run: found as Engine["run"] };
	if (typeof found === "function") return `${label} is a function, but not an async generator (\`async function*\`)`;
	if (typeof found !== "object" || found === null)
		return `${label} is ${found === null ? "null" : `a ${typeof found}`}`;
	return describeObject(found, label) ?? (found as Engine);
}

/** Why an object is not an engine, if so. */
function describeObject(found: { name?: unknown; run?: unknown; close?: unknown }, label: string): string | undefined {
	const typeOf = (value: unknown) => (value === undefined ? "missing" : value === null ? "null" : `a ${typeof value}`);
	const problems: string[] = [];
	if (found.name === "") problems.push("`name` is empty");
	else if (typeof found.name !== "string") problems.push(`\`name\` is ${typeOf(found.name)}`);
	if (typeof found.run !== "function") problems.push(`\`run\` is ${typeOf(found.run)}`);
	else if (NO_ITERABLE.has(kindOf(found.run))) problems.push("`run` is not an async generator (`async *run`)");
	if (found.close !== undefined && typeof found.close !== "function")
		problems.push(`\`close\` is ${typeOf(found.close)}`);
	return problems.length === 0 ? undefined : `in ${label}, ${problems.join(" and ")}`;
}

const kindOf = (value: unknown): string => Object.prototype.toString.call(value);

/** Functions that cannot return an async iterable, whatever they do. */
const NO_ITERABLE: ReadonlySet<string> = new Set(["[object AsyncFunction]", "[object GeneratorFunction]"]);

/** An error in one line, with the line of the user's file it came from where the error tells. */
function reasonOf(cause: unknown, path: string): string {
	if (!(cause instanceof Error)) return wordsOf(cause);
	const line = [pathToFileURL(path).href, path]
		.map((name) => cause.stack?.split(`${name}:`)[1]?.match(/^\d+/)?.[0])
		.find((found) => found !== undefined);
	if (line !== undefined) return `${cause.message} (line ${line})`;
	// Node knows where plain JavaScript breaks, but tells it only to a terminal.
	return cause instanceof SyntaxError ? `${cause.message}; \`node --check ${path}\` shows where` : cause.message;
}

/** A refusal that shows what was found, and an example agent to copy. */
function explainEngineShape(module: string, found: string): string {
	return `engine module ${module}: ${found}

An agent is a module like this:

  export default {
    name: "my-agent",
    async *run({ messages }, { signal }) {
      yield { type: "text", delta: "You said: " + messages.at(-1).text };
    },
  };
`;
}

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
	const { tools, memory, mcp } = config as Shared;
	const given = [
		...leaves("tools", tools),
		// Its limits hold for notes that people make by the API, too.
		...(memory?.enabled ? ["memory.enabled"] : []),
		...(Object.keys(mcp?.servers ?? {}).length > 0 ? ["mcp"] : []),
	];
	return given.filter((path) => !isUsed(path));
}

/** Undefined: the engine plays a script and has no tools. A module brings all that its agent has. */
const usedBy = (choice: EngineChoice, engines: Engines = ENGINES): readonly string[] | undefined =>
	typeof choice === "object" ? [] : engineNamed(choice, {}, engines)?.entry.uses;

/** `bash` is a separate group; the other keys are judged together. */
const leaves = (path: string, group: object | undefined): string[] =>
	Object.entries(group ?? {}).flatMap(([key, value]) => {
		if (value === undefined) return [];
		return key === "bash" ? leaves(`${path}.${key}`, value as object) : [`${path}.${key}`];
	});
