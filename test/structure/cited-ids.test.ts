/** Every id that is cited can be looked up in this repository. */

import { describe, expect, it } from "vitest";
import { citationsIn, definitionsIn } from "./cited-ids.ts";
import { FOLDERS, filesBelow, isBelow, ROOT } from "./files.ts";
import { READABLE } from "./readable.ts";

const files = [...filesBelow(ROOT, READABLE)].filter(
	([file]) => !isBelow(file, [...FOLDERS.generated, ...FOLDERS.foreign, "test/structure"]),
);

describe("structure: cited ids", () => {
	const citations = files.flatMap(([file, source]) => citationsIn(file, source));

	it("every cited id is defined in exactly one place", () => {
		const pages = new Map<string, string[]>();
		for (const [file, source] of files) {
			if (!file.endsWith(".md")) continue;
			for (const id of definitionsIn(file, source)) pages.set(id, [...(pages.get(id) ?? []), file]);
		}
		const wrong = citations
			.filter(({ id }) => pages.get(id)?.length !== 1)
			.map(({ id, file, line }) => `${file}:${line}: ${id} is defined in ${pages.get(id)?.join(" and ") ?? "no page"}`);
		expect(wrong).toEqual([]);
	});

	it("every id that docs/requirements.md defines is cited", () => {
		const cited = new Set(citations.filter(({ file }) => file !== "docs/requirements.md").map(({ id }) => id));
		const page = new Map(files).get("docs/requirements.md") ?? "";
		expect(definitionsIn("docs/requirements.md", page).filter((id) => !cited.has(id))).toEqual([]);
	});

	it("ids are found in comments and titles, alone, in lists and as ranges", () => {
		const source = '// I1, A10–A12.\nit("R4-27 to R4-28, P1.4: x", () => {});\nsend("C3");';
		const ids = citationsIn("a.ts", source).map(({ id }) => id);
		expect(ids).toEqual(["I1", "A10", "A11", "A12", "R4-27", "R4-28", "P1.4"]);
	});
});
