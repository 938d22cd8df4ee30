/** The shape of the sources: order of the folders, doors, no cycles, and what every file looks like. */

import { describe, expect, it } from "vitest";
import { ENGINES } from "../../packages/daemon/src/engine/engine.ts";
import { TABLES } from "../../packages/daemon/src/ledger/ledger.ts";
import { type ImportGraph, importsOf, manifests, packageSources, withoutComments } from "./imports.ts";
import {
	brokenConnect,
	brokenDependencies,
	brokenDoors,
	brokenEngineDoors,
	brokenOrder,
	brokenSlices,
	cycles,
	folderOf,
	privateDependencies,
	unresolved,
} from "./rules.ts";

const all = packageSources();
/** Code generated from `proto/` keeps the generator's style. */
const sources = new Map([...all].filter(([file]) => !file.startsWith("client/gen/")));
const graph: ImportGraph = new Map([...all].map(([file, source]) => [file, importsOf(source)]));

/** Words that say nothing (ARCHITECTURE §2). Names only: another library may be called what it likes. */
const EMPTY_WORDS = /conversation|manager|helper|util/i;

/** Which packages of this repository each one depends on, for its build or when it runs. */
const PACKAGES_USED: Readonly<Record<string, readonly string[]>> = {
	protocol: [],
	client: ["protocol"],
	adapter: ["protocol"],
	platforms: ["adapter", "protocol"],
	lab: ["platforms", "protocol"],
	web: ["client", "protocol"],
	daemon: ["adapter", "client", "lab", "platforms", "protocol"],
};

describe("structure: the sources", () => {
	it("a package depends on those that the table names", () => {
		const used = [...manifests].map(([name, { dependencies, devDependencies, peerDependencies }]) => {
			const all = Object.keys({ ...dependencies, ...devDependencies, ...peerDependencies }).sort();
			return [name, all.flatMap((each) => /^@nexus-stream\/(.+)/.exec(each)?.[1] ?? [])];
		});
		expect(Object.fromEntries(used)).toEqual(PACKAGES_USED);
	});
	it("§5: a file imports only from a lower level or its own folder", () => expect(brokenOrder(graph)).toEqual([]));
	it("§5: another folder is entered through its door", () => expect(brokenDoors(graph)).toEqual([]));
	it("§5: a slice is imported by the composition root, and by slices that name it", () =>
		expect(brokenSlices(graph)).toEqual([]));
	it("an engine's folder is entered through its door or its entry", () => expect(brokenEngineDoors(graph)).toEqual([]));
	it("§5: there are no import cycles", () => expect(cycles(graph)).toEqual([]));
	it("§5: a package imports what its package.json names, and nothing of Node's where a browser loads it", () =>
		expect(brokenDependencies(graph)).toEqual([]));
	it("§5: a published package depends on no private one", () => expect(privateDependencies()).toEqual([]));
	it("what the daemon's build contains of other packages finds its libraries among the daemon's dependencies", () => {
		const { dependencies: own = {} } = manifests.get("daemon")!;
		const needed = ["adapter", "platforms"].flatMap((name) => Object.entries(manifests.get(name)!.dependencies ?? {}));
		const bundled = ["eventsource-parser"];
		expect(needed.filter(([name, version]) => own[name] !== version && !bundled.includes(name))).toEqual([]);
	});
	it("only the runtime client loads Connect", () => expect(brokenConnect(graph)).toEqual([]));
	it("every relative import leads to a file", () => expect(unresolved(graph)).toEqual([]));

	it("§5: every folder of the daemon but std, services and cli has a door", () => {
		const folders = new Set([...graph.keys()].map(folderOf));
		for (const folder of folders) {
			if (folder !== undefined && folder !== "." && folder !== "std" && folder !== "services" && folder !== "cli")
				expect(graph.has(`daemon/${folder}/${folder}.ts`), folder).toBe(true);
		}
	});

	it("only the first file of the command touches the process; the others are given what they need of it", () => {
		const touched = /\bprocess\.(?:env|cwd|stdin|stdout|stderr|on|once|exit|exitCode)\b/;
		const files = [...sources].filter(([file, source]) => file.startsWith("daemon/cli/") && touched.test(source));
		expect(files.map(([file]) => file)).toEqual(["daemon/cli/main.ts"]);
	});

	it("ST7: every kind of the Ledger has a port and its SQL, and its name in the list", () => {
		const kinds = new Set([...graph.keys()].flatMap((file) => /^daemon\/ledger\/(\w+)\//.exec(file)?.[1] ?? []));
		for (const kind of kinds) {
			expect(graph.has(`daemon/ledger/${kind}/port.ts`), kind).toBe(true);
			expect(graph.has(`daemon/ledger/${kind}/sql.ts`), kind).toBe(true);
		}
		expect(Object.keys(TABLES).toSorted()).toEqual([...kinds].toSorted());
	});

	it("ST7: the rows of a slice have a port and their SQL, and the composition root opens their tables", () => {
		const slices = [...graph.keys()].flatMap((file) => /^(daemon\/services\/\w+)\/rows/.exec(file)?.[1] ?? []);
		const opened = graph.get("daemon/runtime/data/tables.ts") ?? [];
		for (const slice of new Set(slices)) {
			expect(graph.has(`${slice}/rows.ts`), slice).toBe(true);
			const sql = [`${slice}/rows-sql.ts`, `${slice}/rows-sqlite.ts`].filter((file) => graph.has(file));
			expect(sql, slice).toHaveLength(1);
			expect(opened, slice).toContain(`../../${sql[0]!.slice("daemon/".length)}`);
		}
	});

	it("ST7: SQL is in the rows that it is about, and nowhere else", () => {
		const statement = /\b(?:SELECT|INSERT INTO|DELETE FROM|CREATE (?:TABLE|INDEX)|UPDATE \S+ SET)\b/;
		const home =
			/^daemon\/(?:(?:bus|ledger\/\w+|std\/sql|std\/sqlite|std\/postgres)\/|ledger\/table\.ts$|services\/\w+\/(?:rows-sql|rows-sqlite|rows-postgres|search-sqlite|search-postgres)\.ts$)/;
		const files = [...sources].filter(([file, source]) => statement.test(source) && !home.test(file));
		expect(files.map(([file]) => file)).toEqual([]);
	});

	it("ST7: only the stores of the Bus, std/sqlite and the data directory know the library of SQLite", () => {
		const home = /^daemon\/(?:std\/sqlite\/|bus\/sqlite\/|runtime\/data\/)/;
		const files = [...sources].filter(([, source]) => /node:sqlite|DatabaseSync/.test(source));
		expect(files.map(([file]) => file).filter((file) => !home.test(file))).toEqual([]);
	});

	it("every file opens with a sentence that says what it is", () => {
		const silent = [...sources].filter(([, source]) => !/^(#![^\n]*\n)?\s*\/\*\*/.test(source)).map(([file]) => file);
		expect(silent).toEqual([]);
	});

	it("an engine's name stands in its folder and in one line of the registry only", () => {
		const names = ENGINES.map(({ name }) => name);
		const elsewhere = [...sources].flatMap(([file, source]) => {
			const shared = /^daemon\/(?:runtime\/|engine\/[^/]+$)/.test(file) && file !== "daemon/engine/registry.ts";
			const words = new Set(shared ? withoutComments(source).match(/[\w-]+/g) : []);
			return names.filter((name) => words.has(name)).map((name) => `${file} knows ${name}`);
		});
		expect(elsewhere).toEqual([]);
		const registered = (sources.get("daemon/engine/registry.ts") ?? "").match(/^export .*$/gm);
		expect(registered).toHaveLength(names.length);
	});

	it("§2: no name of a file or an export is an empty word", () => {
		const exported = /^export (?:default )?(?:async )?(?:const|let|function\*?|class|interface|type) ([\w$]+)/gm;
		const names = [...sources].flatMap(([file, source]) => [
			file,
			...[...source.matchAll(exported)].map((match) => `${file}: ${match[1]}`),
		]);
		expect(names.filter((name) => EMPTY_WORDS.test(name))).toEqual([]);
	});
});

const graphOf = (files: Record<string, string>): ImportGraph =>
	new Map(Object.entries(files).map(([file, source]) => [file, importsOf(source)]));

describe("structure: the rules notice", () => {
	it("an import from a higher or the same level", () => {
		expect(brokenOrder(graphOf({ "daemon/bus/a.ts": 'import { b } from "../broker/broker.ts";' }))).toHaveLength(1);
		expect(brokenOrder(graphOf({ "daemon/bus/a.ts": 'import type { T } from "../ledger/ledger.ts";' }))).toHaveLength(
			1,
		);
		expect(brokenOrder(graphOf({ "daemon/broker/a.ts": 'import { b } from "../bus/bus.ts";' }))).toEqual([]);
		expect(brokenOrder(graphOf({ "daemon/misc/a.ts": "" }))).toHaveLength(1);
	});

	it("a folder entered past its door", () => {
		expect(brokenDoors(graphOf({ "daemon/broker/a.ts": 'export { b } from "../bus/sqlite.ts";' }))).toHaveLength(1);
		expect(brokenDoors(graphOf({ "daemon/engine/pi/a.ts": 'import { b } from "../../std/clock.ts";' }))).toEqual([]);
	});

	it("a slice that another one or the edge reaches into", () => {
		const uses = { jobs: ["audit/port.ts"] };
		const broken = (file: string, specifier: string) =>
			brokenSlices(graphOf({ [file]: `import { b } from "${specifier}";` }), uses);
		expect(broken("daemon/services/jobs/a.ts", "../audit/port.ts")).toEqual([]);
		expect(broken("daemon/services/jobs/a.ts", "../kit/once.ts")).toEqual([]);
		expect(broken("daemon/runtime/a.ts", "../services/jobs/jobs.ts")).toEqual([]);
		expect(broken("daemon/services/jobs/a.ts", "../audit/audit.ts")).toHaveLength(1);
		expect(broken("daemon/cli/a.ts", "../services/jobs/jobs.ts")).toHaveLength(1);
	});

	it("an engine that reaches into another", () => {
		expect(
			brokenEngineDoors(graphOf({ "daemon/engine/pi/a.ts": 'import { b } from "../kit/queue.ts";' })),
		).toHaveLength(1);
		expect(brokenEngineDoors(graphOf({ "daemon/engine/registry.ts": 'export { b } from "./demo/entry.ts";' }))).toEqual(
			[],
		);
		expect(brokenEngineDoors(graphOf({ "daemon/engine/pi/a.ts": 'import { b } from "../kit/kit.ts";' }))).toEqual([]);
	});

	it("a cycle, also through types and through import()", () => {
		const files = {
			"daemon/bus/a.ts": 'import type { B } from "./b.ts";',
			"daemon/bus/b.ts": 'const c = await import("./c.ts");',
			"daemon/bus/c.ts": 'export * from "./a.ts";',
		};
		expect(cycles(graphOf(files))).toEqual(["daemon/bus/a.ts → daemon/bus/b.ts → daemon/bus/c.ts → daemon/bus/a.ts"]);
	});

	it("an import that package.json does not name, or that no browser has", () => {
		const packages = new Map([["web", { name: "@nexus-stream/web", dependencies: { preact: "1.0.0" } }]]);
		const broken = (specifier: string) =>
			brokenDependencies(graphOf({ "web/a.tsx": `import "${specifier}";` }), packages);
		expect(broken("preact")).toEqual([]);
		expect(broken("preact/hooks")).toEqual([]);
		expect(broken("hono")).toHaveLength(1);
		expect(broken("node:fs")).toHaveLength(1);
	});

	it("a published package that depends on a private one", () => {
		const inside = { name: "inside", private: true };
		const shown = { name: "shown", dependencies: { inside: "1.0.0" } };
		expect(privateDependencies(new Map(Object.entries({ inside, shown })))).toHaveLength(1);
	});

	it("Connect outside the runtime client", () => {
		expect(brokenConnect(graphOf({ "client/a.ts": 'import "@connectrpc/connect";' }))).toHaveLength(1);
		expect(brokenConnect(graphOf({ "client/runtime/a.ts": 'import "@connectrpc/connect";' }))).toEqual([]);
	});

	it("imports, and only imports", () => {
		const source = [
			'import a, { type B,\n  c } from "one";',
			'import { type D } from "two";',
			'import * as e from "three";',
			'export type { F } from "four";',
			'// import g from "comment";',
			'/* import h from "comment"; */',
			'const text = `\nimport i from "template";\n`;',
			'const url = "https://example.org/"; import "five";',
			'import "six";',
			'const j = () => import("seven");',
		].join("\n");
		expect(importsOf(source)).toEqual(["one", "two", "three", "four", "six", "seven"]);
	});
});
