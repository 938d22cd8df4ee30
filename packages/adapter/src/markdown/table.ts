/** Draws a table as text in aligned columns, for platforms without tables. */

import { lengthOf } from "./length.ts";

/** The first row is the head. */
export function tableText(rows: readonly (readonly string[])[]): string {
	const columns = Math.max(0, ...rows.map((row) => row.length));
	const cells = rows.map((row) =>
		Array.from({ length: columns }, (_, at) => (row[at] ?? "").replace(/\s+/g, " ").trim()),
	);
	const widths = Array.from({ length: columns }, (_, at) => Math.max(1, ...cells.map((row) => widthOf(row[at] ?? ""))));
	const line = (row: readonly string[]) =>
		row
			.map((cell, at) => padded(cell, widths[at] ?? 0))
			.join(" | ")
			.trimEnd();
	const [head = [], ...body] = cells;
	const rule = widths.map((width) => "-".repeat(width)).join("-+-");
	return [line(head), rule, ...body.map(line)].join("\n");
}

const widthOf = (text: string): number => lengthOf(text, "grapheme");

const padded = (text: string, width: number): string => text + " ".repeat(Math.max(0, width - widthOf(text)));
