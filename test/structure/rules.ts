/** The order of the folders as functions from an import graph to the list of what breaks it (ARCHITECTURE §5). */

import { type ImportGraph, targetOf } from "./imports.ts";

/** A file imports from a lower level or from its own folder. */
export const LEVELS: readonly (readonly string[])[] = [
	["std", "gen"],
	["protocol", "markdown"],
	["bus", "ledger", "engine", "adapter", "client"],
	["broker", "runtime-client"],
	["nex", "services"],
	["edge", "web"],
	["runtime"],
	["cli"],
	// Files directly below `src`: what the package exports.
	["."],
];

export const folderOf = (file: string): string => (file.includes("/") ? file.slice(0, file.indexOf("/")) : ".");
const levelOf = (folder: string): number => LEVELS.findIndex((folders) => folders.includes(folder));

function* edges(graph: ImportGraph): Generator<{ file: string; target: string; from: string; to: string }> {
	for (const [file, imports] of graph) {
		for (const specifier of imports) {
			const target = targetOf(file, specifier);
			if (target !== undefined) yield { file, target, from: folderOf(file), to: folderOf(target) };
		}
	}
}

export function brokenOrder(graph: ImportGraph): string[] {
	const broken = [...graph.keys()]
		.filter((file) => levelOf(folderOf(file)) < 0)
		.map((file) => `${file} is in no level`);
	for (const { file, target, from, to } of edges(graph)) {
		if (from !== to && levelOf(to) >= levelOf(from)) broken.push(`${file} imports ${target}, which is not below it`);
	}
	return broken;
}

/** Another folder is entered through its door; `std` has none, its files stand alone, nor has `gen`, which is made from `proto/`. */
export function brokenDoors(graph: ImportGraph): string[] {
	const broken: string[] = [];
	for (const { file, target, from, to } of edges(graph)) {
		if (from === to || to === "std" || to === "gen" || to === ".") continue;
		if (target !== `${to}/${to}.ts`) broken.push(`${file} imports ${target} instead of ${to}/${to}.ts`);
	}
	return broken;
}

/** An engine's folder is entered through its door; the registry and engines that share its configuration may import its `entry.ts`. */
export function brokenEngineDoors(graph: ImportGraph): string[] {
	const room = (file: string) => file.match(/^engine\/([^/]+)\//)?.[1];
	return [...edges(graph)]
		.filter(({ file, target }) => {
			const to = room(target);
			return (
				to !== undefined && to !== room(file) && ![`engine/${to}/${to}.ts`, `engine/${to}/entry.ts`].includes(target)
			);
		})
		.map(({ file, target }) => `${file} imports ${target} past its door`);
}

/** Types count too: a cycle of types is still read in circles. */
export function cycles(graph: ImportGraph): string[] {
	const state = new Map<string, "open" | "done">();
	const found: string[] = [];
	const visit = (file: string, path: readonly string[]) => {
		if (state.get(file) === "done") return;
		if (state.get(file) === "open") {
			found.push([...path.slice(path.indexOf(file)), file].join(" → "));
			return;
		}
		state.set(file, "open");
		for (const specifier of graph.get(file) ?? []) {
			const target = targetOf(file, specifier);
			if (target !== undefined) visit(target, [...path, file]);
		}
		state.set(file, "done");
	};
	for (const file of graph.keys()) visit(file, []);
	return found;
}

/** Imports that folders for the browser may have from others: `std` file by file, because most of it is for Node. */
const BROWSER_SAFE: Readonly<Record<string, readonly string[]>> = {
	protocol: [],
	markdown: [],
	client: ["protocol/protocol.ts", "std/clock.ts"],
	"runtime-client": ["protocol/protocol.ts", "std/clock.ts", "client/client.ts", "gen/"],
	gen: ["gen/"],
	web: ["protocol/protocol.ts", "markdown/markdown.ts", "client/client.ts", "runtime-client/runtime-client.ts", "gen/"],
};
const BROWSER_FILES: readonly string[] = ["std/clock.ts"];

/** A name with a slash at its end stands for all that is below it. */
const isAllowed = (target: string, allowed: readonly string[]): boolean =>
	allowed.some((name) => (name.endsWith("/") ? target.startsWith(name) : target === name));

export function brokenBrowserRules(graph: ImportGraph): string[] {
	const broken: string[] = [];
	for (const [file, imports] of graph) {
		const folder = folderOf(file);
		const allowed = BROWSER_SAFE[folder] ?? (BROWSER_FILES.includes(file) ? [] : undefined);
		if (allowed === undefined) continue;
		for (const specifier of imports) {
			const target = targetOf(file, specifier);
			if (specifier.startsWith("node:")) broken.push(`${file} imports ${specifier}, which no browser has`);
			else if (specifier.startsWith("@connectrpc/") && folder !== "runtime-client")
				broken.push(`${file} imports ${specifier}, which only readers of the runtime contract have to load`);
			else if (target === undefined && allowed.length === 0)
				broken.push(`${file} imports ${specifier}; ${folder} imports no package`);
			else if (target !== undefined && folderOf(target) !== folder && !isAllowed(target, allowed))
				broken.push(`${file} imports ${target}; ${folder} may import ${allowed.join(", ") || "nothing"}`);
		}
	}
	return broken;
}

/** An import that leads nowhere would hide an edge from the rules above. */
export function unresolved(graph: ImportGraph): string[] {
	return [...edges(graph)]
		.filter(({ target }) => (/\.tsx?$/.test(target) ? !graph.has(target) : !/\.(css|json|svg|html)$/.test(target)))
		.map(({ file, target }) => `${file} imports ${target}, which is not there`);
}
