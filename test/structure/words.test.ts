/** Comments, texts, titles and documents are in plain English: none of the words that make a reader stop. */

import { describe, expect, it } from "vitest";
import { ROOT } from "./files.ts";
import { describeFinding, wordsBelow, wordsIn } from "./words.ts";

describe("structure: the words", () => {
	it("there are none", () => expect(wordsBelow(ROOT).map(describeFinding)).toEqual([]));
});

const foundIn = (file: string, source: string): string[] =>
	wordsIn(file, source).map(({ line, word }) => `${line} ${word}`);

describe("structure: the words are found", () => {
	it("in comments of every form, with their lines, also across a line break", () => {
		const source =
			"/**\n * The rest\n * is no\n * answer. */\nconst a = 1; // for ever\n// One line,\n// and somebody\n";
		expect(foundIn("a.ts", source)).toEqual(["3 is no", "5 for ever", "7 somebody"]);
		expect(foundIn("a.css", "a { }\n/* beside it */")).toEqual(["2 beside"]);
		expect(foundIn("a.proto", "// anew\nstring a = 1; // told\n")).toEqual(["1 anew", "2 told"]);
		expect(foundIn("a.py", 'a = 1\n# nobody\n"""Text\nis told"""\n')).toEqual(["2 nobody", "4 told"]);
	});

	it("in sentences and test titles, not in short strings, names or code", () => {
		expect(foundIn("a.ts", 'fail("the caller was told so");')).toEqual(["1 told"]);
		expect(foundIn("a.ts", `fail(\`the run \${id} goes on\`, "told");`)).toEqual(["1 goes on"]);
		expect(foundIn("a.test.ts", 'it.each([1])("is heard", () => {});')).toEqual(["1 heard"]);
		expect(foundIn("a.ts", 'const told = { aside: "told" }; // `told`')).toEqual([]);
		expect(foundIn("a.tsx", "const a = <p>You are let in</p>;")).toEqual(["1 let in"]);
	});

	it("in prose, not in addresses", () => {
		expect(foundIn("a.md", "# A\n\nIt has [a port](told.md) of its\nown.\n")).toEqual(["3 of its own"]);
	});

	it("at the beginning of a comment", () => {
		expect(foundIn("a.ts", "/** What it is. */\n// Of these.\n\n// It is what it is.")).toEqual([
			"1 a comment begins with What",
			"2 a comment begins with Of",
		]);
		expect(foundIn("a.md", "What it is.")).toEqual([]);
	});

	it("unless the turn is plain English", () => {
		expect(foundIn("a.md", "There is no run. It is no longer open. The answer is no. Two are told apart.")).toEqual([]);
	});
});
