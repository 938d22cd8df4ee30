/** The order of packages and folders, as functions from an import graph to the list of what breaks it (ARCHITECTURE §5). */

import { type ImportGraph, type Manifest, manifests, targetOf } from "./imports.ts";

/** The folders of the daemon: a file imports from a lower level or from its own folder. */
export const LEVELS: readonly (readonly string[])[] = [
	["std"],
	["bus", "ledger", "engine"],
	["broker"],
	["nex"],
	["edge"],
	["services"],
	["runtime"],
	["cli"],
	// Files directly below `src`: what the package exports.
	["."],
];

export const packageOf = (file: string): string => file.slice(0, file.indexOf("/"));
/** The first folder below `src` of a file of the daemon; undefined for a file of another package. */
export function folderOf(file: string): string | undefined {
	const [name, folder, ...rest] = file.split("/");
	if (name !== "daemon") return undefined;
	return rest.length === 0 ? "." : folder;
}
const levelOf = (folder: string): number => LEVELS.findIndex((folders) => folders.includes(folder));

interface Edge {
	file: string;
	target: string;
	from: string | undefined;
	to: string | undefined;
}

function* edges(graph: ImportGraph): Generator<Edge> {
	for (const [file, imports] of graph) {
		for (const specifier of imports) {
			const target = targetOf(file, specifier);
			if (target !== undefined) yield { file, target, from: folderOf(file), to: folderOf(target) };
		}
	}
}

export function brokenOrder(graph: ImportGraph): string[] {
	const broken = [...graph.keys()]
		.filter((file) => levelOf(folderOf(file) ?? ".") < 0)
		.map((file) => `${file} is in no level`);
	for (const { file, target, from, to } of edges(graph)) {
		if (from === undefined || to === undefined || from === to) continue;
		if (levelOf(to) >= levelOf(from)) broken.push(`${file} imports ${target}, which is not below it`);
	}
	return broken;
}

/** Further doors, each for the files of one kind only. */
const SIDE_DOORS: readonly { target: string; importers: RegExp }[] = [
	// It loads Connect, which the daemon's start does not need.
	{ target: "daemon/edge/rpc/rpc.ts", importers: /^daemon\/services\/\w+\/(?:rpc|codec)\.ts$/ },
];

/** Each kind of thing in the Ledger has its own door. */
const LEDGER_DOOR = /^daemon\/ledger\/\w+\/port\.ts$/;

/** Another folder is entered through its door. `std` has none, its files stand alone; `services` has slices, which have their own rule. */
export function brokenDoors(graph: ImportGraph): string[] {
	const broken: string[] = [];
	for (const { file, target, from, to } of edges(graph)) {
		if (from === undefined || to === undefined || from === to || to === "std" || to === "." || to === "services")
			continue;
		if (LEDGER_DOOR.test(target)) continue;
		if (SIDE_DOORS.some((door) => door.target === target && door.importers.test(file))) continue;
		if (target !== `daemon/${to}/${to}.ts`) broken.push(`${file} imports ${target} instead of ${to}/${to}.ts`);
	}
	return broken;
}

const sliceOf = (file: string): string | undefined => file.match(/^daemon\/services\/(\w+)\//)?.[1];

/** Files of other slices that a slice uses: ports, rows, and a few functions. Only the composition root imports anything else of a slice. */
export const SLICE_USES: Readonly<Record<string, readonly string[]>> = {
	accounts: ["signins/port.ts"],
	agents: [
		"audit/audit.ts",
		"audit/events.ts",
		"audit/notices.ts",
		"audit/topics.ts",
		"scenarios/port.ts",
		"workflows/port.ts",
	],
	apps: [
		"artifacts/port.ts",
		"audit/notices.ts",
		"audit/port.ts",
		"audit/rows.ts",
		"audit/topics.ts",
		"jobs/rows.ts",
		"workflows/rows.ts",
	],
	audit: ["memory/rows.ts"],
	connectors: ["audit/port.ts"],
	jobs: [
		"artifacts/codec.ts",
		"artifacts/port.ts",
		"audit/port.ts",
		"connectors/port.ts",
		"scenarios/codec.ts",
		"scenarios/port.ts",
	],
	kit: ["audit/port.ts"],
	memory: ["audit/events.ts", "audit/notices.ts", "audit/topics.ts"],
	realtime: ["connectors/port.ts", "connectors/provider-types.ts"],
	scenarios: [
		"artifacts/port.ts",
		"audit/port.ts",
		"connectors/observed.ts",
		"connectors/port.ts",
		"connectors/provider-types.ts",
	],
	signins: ["audit/port.ts"],
	workflows: [
		"audit/port.ts",
		"connectors/port.ts",
		"jobs/port.ts",
		"jobs/snapshot.ts",
		"scenarios/metadata.ts",
		"scenarios/port.ts",
	],
};

/** A slice is imported by the composition root; another slice names the slices that it uses, and every slice uses `kit`. */
export function brokenSlices(
	graph: ImportGraph,
	uses: Readonly<Record<string, readonly string[]>> = SLICE_USES,
): string[] {
	const broken: string[] = [];
	for (const { file, target, from, to } of edges(graph)) {
		if (to !== "services") continue;
		const [own, other] = [sliceOf(file), sliceOf(target)];
		if (from === "runtime" || own === other || (own !== undefined && other === "kit")) continue;
		if (own === undefined || !uses[own]?.includes(target.slice("daemon/services/".length)))
			broken.push(`${file} imports ${target}, which is another slice`);
	}
	return broken;
}

/** An engine's folder is entered through its door; the registry and engines that share its configuration may import its `entry.ts`. */
export function brokenEngineDoors(graph: ImportGraph): string[] {
	const room = (file: string) => file.match(/^daemon\/engine\/([^/]+)\//)?.[1];
	return [...edges(graph)]
		.filter(({ file, target }) => {
			const to = room(target);
			const doors = [`daemon/engine/${to}/${to}.ts`, `daemon/engine/${to}/entry.ts`];
			return to !== undefined && to !== room(file) && !doors.includes(target);
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

/** Packages that a browser loads too. */
const IN_BROWSERS = ["protocol", "client", "web"];

const packageName = (specifier: string): string => specifier.match(/^(?:@[^/]+\/)?[^/]+/)?.[0] ?? specifier;

/** A package imports what its package.json names, and a package that a browser loads imports nothing of Node's. */
export function brokenDependencies(graph: ImportGraph, packages: ReadonlyMap<string, Manifest> = manifests): string[] {
	const broken: string[] = [];
	for (const [file, imports] of graph) {
		const own = packageOf(file);
		const manifest = packages.get(own);
		const declared = {
			...manifest?.dependencies,
			...manifest?.peerDependencies,
			...manifest?.devDependencies,
		};
		for (const specifier of imports.filter((each) => !each.startsWith("."))) {
			if (specifier.startsWith("node:")) {
				if (IN_BROWSERS.includes(own)) broken.push(`${file} imports ${specifier}, which no browser has`);
			} else if (!(packageName(specifier) in declared) && !TYPES_ONLY.includes(specifier))
				broken.push(`${file} imports ${specifier}, which the package.json of ${own} does not name`);
		}
	}
	return broken;
}

/** Their types come with `@types/…`. */
const TYPES_ONLY = ["mdast"];

/** A published package depends on published packages only: the private ones are built into the daemon. */
export function privateDependencies(packages: ReadonlyMap<string, Manifest> = manifests): string[] {
	const hidden = new Set([...packages.values()].filter((each) => each.private).map(({ name }) => name));
	return [...packages.values()]
		.filter((each) => !each.private)
		.flatMap(({ name, dependencies = {} }) =>
			Object.keys(dependencies)
				.filter((each) => hidden.has(each))
				.map((each) => `${name} depends on ${each}, which is not published`),
		);
}

/** Only readers of the runtime contract load Connect. */
export function brokenConnect(graph: ImportGraph): string[] {
	return [...graph].flatMap(([file, imports]) =>
		imports
			.filter((each) => each.startsWith("@connectrpc/") && packageOf(file) === "client")
			.filter(() => !file.startsWith("client/runtime/"))
			.map((each) => `${file} imports ${each}, which only readers of the runtime contract have to load`),
	);
}

/** An import that leads nowhere would hide an edge from the rules above. */
export function unresolved(graph: ImportGraph): string[] {
	return [...edges(graph)]
		.filter(({ target }) => (/\.tsx?$/.test(target) ? !graph.has(target) : !/\.(css|json|svg|html)$/.test(target)))
		.map(({ file, target }) => `${file} imports ${target}, which is not there`);
}
