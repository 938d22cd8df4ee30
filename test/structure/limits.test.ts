/** The limits of functions, files, folders, doors and interfaces. */

import { describe, expect, it } from "vitest";
import * as budget from "./budget.ts";
import { placeOf } from "./files.ts";
import * as measure from "./measures.ts";
import { shapeOf } from "./shape.ts";

const sources = measure.readSources();

describe("structure: the limits", () => {
	it(`a function has at most ${budget.FUNCTION_LINES_MAX} lines`, () =>
		expect(measure.longFunctions(sources)).toEqual({}));

	it(`a file has at most ${budget.FILE_LINES_MAX} lines`, () => expect(measure.longFiles(sources)).toEqual({}));

	it(`a file with one importer, in the same folder, has at least ${budget.FILE_LINES_MIN} lines`, () =>
		expect(measure.splinters(sources)).toEqual({}));

	it(`a folder has at most ${budget.FOLDER_ENTRIES_MAX} entries`, () => expect(measure.crowdedFolders()).toEqual({}));

	it(`a door has at most ${budget.DOOR_NAMES_MAX} names`, () => expect(measure.wideDoors(sources)).toEqual({}));

	it("a door names what it exports: no `export *`", () => expect(measure.starExports(sources)).toEqual({}));

	it(`an interface has at most ${budget.INTERFACE_METHODS_MAX} methods`, () =>
		expect(measure.wideInterfaces(sources)).toEqual({}));

	it("timers, back-off and sleeps are those of std", () => expect(measure.waits(sources)).toEqual({}));

	it("no published source has a path into the tests", () => expect(measure.testPaths(sources)).toEqual({}));

	it("no folder has more lines than its budget", () => {
		const over = Object.entries(measure.folderLines(sources))
			.filter(([folder, lines]) => lines > (budget.FOLDER_LINES_MAX[folder] ?? 0))
			.map(([folder, lines]) => `${folder}: ${lines} lines, at most ${budget.FOLDER_LINES_MAX[folder] ?? 0}`);
		expect(over).toEqual([]);
	});
});

describe("structure: the measures", () => {
	it("name a place alike before and after it moves into a package", () => {
		expect(["src/nex/a.ts", "packages/daemon/src/nex/a.ts"].map(placeOf)).toEqual(["nex/a.ts", "nex/a.ts"]);
		expect(["src/web/a.ts", "packages/web/src/a.ts"].map(placeOf)).toEqual(["web/a.ts", "web/a.ts"]);
	});

	it("count the lines of functions by name", () => {
		const source = "const a = () => {\n};\nclass B { #c() {\n\n} }\nconst d = { e() {} };";
		expect(shapeOf("a.ts", source).functions).toEqual([
			{ name: "a", lines: 2 },
			{ name: "#c", lines: 3 },
			{ name: "e", lines: 1 },
		]);
	});

	it("count methods, not values", () => {
		const source = "interface A { b(): void; c?: () => void; readonly d: number }";
		expect(shapeOf("a.ts", source).interfaces).toEqual([{ name: "A", methods: 2 }]);
	});

	it("find timers, back-off and sleeps", () => {
		const waits = ["setTimeout(a, 1)", "x = 2 ** n", "new Promise((done) => clock.after(1, done))"];
		for (const source of waits) expect(shapeOf("a.ts", source).waits, source).toBe(1);
		for (const source of ["x = 2 ** 16", "clock.after(1, a)", "socket.setTimeout(1)"])
			expect(shapeOf("a.ts", source).waits, source).toBe(0);
	});

	it("find paths into the tests, and what doors export", () => {
		expect(shapeOf("a.ts", 'new URL("../../test/fakes/a.ts", b)').testPaths).toBe(1);
		expect(shapeOf("a.ts", 'export * from "./b.ts";\nexport { c, d } from "./e.ts";')).toMatchObject({
			starExports: 1,
			reExports: 2,
		});
	});
});
