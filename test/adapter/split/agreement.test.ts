/** The line reader and the parser must read a markdown alike, or a cut would tear what the platform shows as one piece. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fenceOf, START } from "../../../packages/adapter/src/markdown/markdown-state.ts";
import { Outline, stateAfter, stateAt } from "../../../packages/adapter/src/markdown/outline.ts";
import { atEffort } from "../../effort.ts";
import { markdown } from "./arbitrary.ts";
import { type TreeLine, treeLines } from "./tree.ts";

/** Nothing but white space and quote marks: blank or text, by what is around it. */
const MARKS_ONLY = /^[\s>]*$/;

const KINDS: Partial<Record<string, TreeLine["kind"]>> = {
	open: "code",
	close: "code",
	delimiter: "row",
	underline: "heading",
};

function outlineLines(source: string): TreeLine[] {
	const outline = new Outline(source, 0, START);
	outline.reach(source.length);
	return outline.lines.map(({ kind, after }) => {
		const leaf = after.leaf === "indented" ? "indented" : after.leaf === "none" ? "blank" : "text";
		const known = kind === "item" || kind === "text" ? leaf : (kind as TreeLine["kind"]);
		return { kind: KINDS[kind] ?? known, depth: after.containers.length };
	});
}

/** The first line that the two read differently. */
function disagreement(source: string): string | undefined {
	const texts = source.split(/\r\n|\r|\n/);
	const expected = treeLines(source);
	for (const [n, line] of outlineLines(source).entries()) {
		const tree = expected[n];
		const text = texts[n] ?? "";
		const isCode = line.kind === "code" || tree?.kind === "code";
		if (MARKS_ONLY.test(text) && !isCode) continue;
		const [read, wanted] = [line, tree].map((each) => `${each?.kind} in ${each?.depth}`);
		if (read !== wanted) return `line ${n + 1}, ${JSON.stringify(text)}: read as ${read}, parsed as ${wanted}`;
	}
	return undefined;
}

describe("I7: the line reader", () => {
	it("reads every line as the parser does: its block, and the quotes and items around it", () => {
		fc.assert(
			fc.property(markdown, (source) => {
				expect(disagreement(source)).toBeUndefined();
			}),
			{ numRuns: atEffort(10_000, 100) },
		);
	}, 300_000);

	it("knows the state after a text, wherever the text begins", () => {
		fc.assert(
			fc.property(markdown, fc.double({ min: 0, max: 1, noNaN: true }), (source, share) => {
				const starts = [0, ...[...source.matchAll(/\r\n|\r|\n/g)].map((end) => end.index + end[0].length)];
				const at = starts[Math.floor(share * (starts.length - 1))] ?? 0;
				const after = stateAfter(stateAt(source, at), source.slice(at));
				expect(after).toEqual(stateAt(source, source.length));
			}),
			{ numRuns: atEffort(2_000, 100) },
		);
	}, 300_000);

	it("knows that a fence is open behind a heading that was torn", () => {
		const source = "## A heading that is torn\n2. ```\n   code\n";
		const state = stateAfter(stateAt(source, 12), source.slice(12));
		expect(fenceOf(state)).toEqual(fenceOf(stateAt(source, source.length)));
		expect(fenceOf(state)?.mark).toBe("`");
	});
});
