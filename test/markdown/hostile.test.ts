/** Text that would take the parser too long is distinguished from prose, code and tables of any length. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isHostile } from "../../packages/protocol/src/markdown.ts";
import { atEffort } from "../effort.ts";
import { HOSTILE_TEXTS } from "./texts.ts";

const rows = (count: number, row: string) => `| a | b |\n|---|---|\n${row.repeat(count)}`;

describe("hostile markdown", () => {
	it.each(HOSTILE_TEXTS.filter(({ slow }) => slow))("$name is detected", ({ text }) => {
		expect(isHostile(text(50_000))).toBe(true);
		expect(isHostile(`A word before it.\n\n${text(50_000)}\n\nAnd one after it.`)).toBe(true);
	});

	it.each([
		["prose", "The *quick* brown fox reads [a page](https://example.com/a_b) and `code`.\n\n".repeat(2000)],
		["code", `\`\`\`c\n${"static int *a_b[] = { x_y[0], **z };\n".repeat(2000)}\`\`\`\n`],
		["code in tildes", `~~~\n${"| *_ | [x] |\n".repeat(3000)}~~~\n`],
		["a long list", "- **Item** with `code` and a_name\n".repeat(3000)],
		["a nested list", "- a\n  - b\n    - c\n      - d\n".repeat(500)],
		["a table", rows(600, "| **bold** | _x_ |\n")],
		["quotes", "> said *so*\n>\n> and more\n\nAnswer.\n\n".repeat(500)],
		["rules", "Part.\n\n---\n\n".repeat(1000)],
		["headings", "Title\n=====\n\nText.\n\n".repeat(250)],
		["one long word", "a".repeat(1_000_000)],
	])("%s is not", (_name, text) => {
		expect(isHostile(text)).toBe(false);
	});

	it("after HTML, what looks like code is not trusted to be code", () => {
		expect(isHostile(`<div>\n\`\`\`\n\n${"*a_".repeat(2000)}`)).toBe(true);
	});

	it("takes any text", () => {
		const unit = fc.constantFrom(
			"#",
			"-",
			">",
			"`",
			"|",
			"*",
			" ",
			"a",
			"\t",
			"[",
			"]",
			"~",
			"=",
			"<",
			"\r",
			"\n",
			"👩‍",
			"\u0301",
		);
		fc.assert(
			fc.property(fc.string({ unit, maxLength: 400 }), (text) => {
				expect(typeof isHostile(text)).toBe("boolean");
			}),
			{ numRuns: atEffort(2000, 200) },
		);
	});
});
