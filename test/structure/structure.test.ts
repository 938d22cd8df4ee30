/** The shape of the sources: order of the folders, doors, no cycles, and what every file looks like. */

import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { ENGINES } from "../../src/engine/engine.ts";
import { TABLES } from "../../src/ledger/sqlite.ts";
import { type ImportGraph, importsOf, sourcesBelow, withoutComments } from "./imports.ts";
import {
	brokenBrowserRules,
	brokenDoors,
	brokenEngineDoors,
	brokenOrder,
	cycles,
	folderOf,
	unresolved,
} from "./rules.ts";

const all = sourcesBelow(fileURLToPath(new URL("../../src", import.meta.url)));
/** Code generated from `proto/` keeps the generator's style. */
const sources = new Map([...all].filter(([file]) => folderOf(file) !== "gen"));
const graph: ImportGraph = new Map([...all].map(([file, source]) => [file, importsOf(source)]));

/** Words that say nothing (ARCHITECTURE §2). Names only: another library may be called what it likes. */
const EMPTY_WORDS = /conversation|manager|helper|util/i;

describe("structure: the sources", () => {
	it("§5: a file imports only from a lower level or its own folder", () => expect(brokenOrder(graph)).toEqual([]));
	it("§5: another folder is entered through its door", () => expect(brokenDoors(graph)).toEqual([]));
	it("an engine's folder is entered through its door or its entry", () => expect(brokenEngineDoors(graph)).toEqual([]));
	it("§5: there are no import cycles", () => expect(cycles(graph)).toEqual([]));
	it("§5: protocol and markdown import nothing, the clients import these, web imports all but the runtime's client", () =>
		expect(brokenBrowserRules(graph)).toEqual([]));
	it("every relative import leads to a file", () => expect(unresolved(graph)).toEqual([]));

	it("§5: every folder but std, gen and web has a door", () => {
		const folders = new Set([...graph.keys()].map(folderOf));
		for (const folder of folders) {
			if (folder !== "." && folder !== "std" && folder !== "gen" && folder !== "web" && folder !== "cli")
				expect(graph.has(`${folder}/${folder}.ts`), folder).toBe(true);
		}
	});

	it("only the first file of the command touches the process; the others are given what they need of it", () => {
		const touched = /\bprocess\.(?:env|cwd|stdin|stdout|stderr|on|once|exit|exitCode)\b/;
		const files = [...sources].filter(([file, source]) => file.startsWith("cli/") && touched.test(source));
		expect(files.map(([file]) => file)).toEqual(["cli/main.ts"]);
	});

	it("ST7: every kind of stored thing has a port and a SQLite part, and its name in the list", () => {
		const kinds = new Set([...graph.keys()].flatMap((file) => /^ledger\/(\w+)\//.exec(file)?.[1] ?? []));
		for (const kind of kinds) {
			expect(graph.has(`ledger/${kind}/port.ts`), kind).toBe(true);
			expect(graph.has(`ledger/${kind}/sqlite.ts`), kind).toBe(true);
		}
		expect(Object.keys(TABLES).toSorted()).toEqual([...kinds].toSorted());
	});

	it("ST7: SQL stands with the thing that it is about, and nowhere else", () => {
		const statement = /\b(?:SELECT|INSERT INTO|DELETE FROM|CREATE (?:TABLE|INDEX)|UPDATE \S+ SET)\b/;
		const home = /^(?:bus|ledger\/\w+)\/|^ledger\/table\.ts$|^std\/sqlite\.ts$/;
		const files = [...sources].filter(([file, source]) => statement.test(source) && !home.test(file));
		expect(files.map(([file]) => file)).toEqual([]);
	});

	it("every file opens with a sentence that says what it is", () => {
		const silent = [...sources].filter(([, source]) => !/^(#![^\n]*\n)?\s*\/\*\*/.test(source)).map(([file]) => file);
		expect(silent).toEqual([]);
	});

	it("an engine's name stands in its folder and in one line of the registry only", () => {
		const names = ENGINES.map(({ name }) => name);
		const elsewhere = [...sources].flatMap(([file, source]) => {
			const shared = /^(?:runtime|engine)\/[^/]+$/.test(file) && file !== "engine/registry.ts";
			const words = new Set(shared ? withoutComments(source).match(/[\w-]+/g) : []);
			return names.filter((name) => words.has(name)).map((name) => `${file} knows ${name}`);
		});
		expect(elsewhere).toEqual([]);
		const registered = (sources.get("engine/registry.ts") ?? "").match(/^export .*$/gm);
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
		expect(brokenOrder(graphOf({ "bus/a.ts": 'import { b } from "../broker/broker.ts";' }))).toHaveLength(1);
		expect(brokenOrder(graphOf({ "bus/a.ts": 'import type { T } from "../ledger/ledger.ts";' }))).toHaveLength(1);
		expect(brokenOrder(graphOf({ "broker/a.ts": 'import { b } from "../bus/bus.ts";' }))).toEqual([]);
		expect(brokenOrder(graphOf({ "misc/a.ts": "" }))).toHaveLength(1);
	});

	it("a folder entered past its door", () => {
		expect(brokenDoors(graphOf({ "broker/a.ts": 'export { b } from "../bus/sqlite.ts";' }))).toHaveLength(1);
		expect(brokenDoors(graphOf({ "engine/pi/a.ts": 'import { b } from "../../std/clock.ts";' }))).toEqual([]);
	});

	it("an engine that reaches into another", () => {
		expect(brokenEngineDoors(graphOf({ "engine/pi/a.ts": 'import { b } from "../kit/queue.ts";' }))).toHaveLength(1);
		expect(brokenEngineDoors(graphOf({ "engine/registry.ts": 'export { b } from "./demo/entry.ts";' }))).toEqual([]);
		expect(brokenEngineDoors(graphOf({ "engine/pi/a.ts": 'import { b } from "../kit/kit.ts";' }))).toEqual([]);
	});

	it("a cycle, also through types and through import()", () => {
		const files = {
			"bus/a.ts": 'import type { B } from "./b.ts";',
			"bus/b.ts": 'const c = await import("./c.ts");',
			"bus/c.ts": 'export * from "./a.ts";',
		};
		expect(cycles(graphOf(files))).toEqual(["bus/a.ts → bus/b.ts → bus/c.ts → bus/a.ts"]);
	});

	it("protocol, the client or the page reaching out", () => {
		expect(brokenBrowserRules(graphOf({ "protocol/a.ts": 'import { crc32 } from "node:zlib";' }))).toHaveLength(1);
		expect(brokenBrowserRules(graphOf({ "web/a.tsx": 'import "node:fs";' }))).toHaveLength(1);
		expect(brokenBrowserRules(graphOf({ "web/a.tsx": 'import { render } from "preact";' }))).toEqual([]);
		expect(brokenBrowserRules(graphOf({ "web/a.tsx": 'import { c } from "../client/client.ts";' }))).toEqual([]);
		expect(brokenBrowserRules(graphOf({ "web/a.tsx": 'import { b } from "../bus/bus.ts";' }))).toHaveLength(1);
	});

	it("the client leaning on what only Node has", () => {
		expect(brokenBrowserRules(graphOf({ "client/a.ts": 'import { s } from "../std/sqlite.ts";' }))).toHaveLength(1);
		expect(brokenBrowserRules(graphOf({ "std/clock.ts": 'import "node:timers";' }))).toHaveLength(1);
		expect(brokenBrowserRules(graphOf({ "client/a.ts": 'import "@connectrpc/connect";' }))).toHaveLength(1);
		expect(brokenBrowserRules(graphOf({ "runtime-client/a.ts": 'import "@connectrpc/connect";' }))).toEqual([]);
		expect(brokenBrowserRules(graphOf({ "runtime-client/a.ts": 'import "../gen/a_pb.ts";' }))).toEqual([]);
		expect(brokenBrowserRules(graphOf({ "runtime-client/a.ts": 'import "node:http2";' }))).toHaveLength(1);
		expect(brokenBrowserRules(graphOf({ "client/a.ts": 'import { systemClock } from "../std/clock.ts";' }))).toEqual(
			[],
		);
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
