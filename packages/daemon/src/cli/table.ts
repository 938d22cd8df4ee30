/** Lists for a person or a pipe. */

import { oneLine, type Terminal } from "./terminal.ts";

export function since(at: number): string {
	const seconds = Math.max(0, Math.round((Date.now() - at) / 1000));
	if (seconds < 60) return `${seconds} s ago`;
	if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
	if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
	return new Date(at).toISOString().slice(0, 10);
}

export interface TableColumns<Item> {
	/** Printed instead of an empty list. */
	none?: string;
	/** Cells by the heads of their columns. The last column has the important text. */
	columns: Readonly<Record<string, (item: Item) => string>>;
	/** Columns that a narrow terminal goes without, in this order. */
	optional?: readonly string[];
	/** Cuts long cells: people on chat platforms write their text. */
	clipped?: boolean;
	/** An item as `--json` prints it. */
	json?: (item: Item) => object;
}

const CELL_CHARS_MAX = 80;
const LAST_CHARS_MAX = 500;

/** A table, or with `json` one JSON object a line. */
export function list<Item extends object>(
	terminal: Terminal,
	json: boolean | undefined,
	items: readonly Item[],
	{ none, columns, optional, clipped, json: jsonOf = (item) => item }: TableColumns<Item>,
): void {
	if (items.length === 0 && none !== undefined) terminal.note(none);
	if (json) for (const item of items) terminal.json(jsonOf(item));
	else {
		const cells = Object.values(columns);
		const charsMax = (column: number) => (column === cells.length - 1 ? LAST_CHARS_MAX : CELL_CHARS_MAX);
		const clip = clipped ? (text: string, column: number) => oneLine(text, charsMax(column)) : (text: string) => text;
		const rows = items.map((item) => cells.map((cell, column) => clip(cell(item), column)));
		table(terminal, Object.keys(columns), rows, optional);
	}
}

/** Fewer columns are not worth reading: the last cell of a row then gets a separate line. */
const LAST_COLUMNS_MIN = 24;
const GAP = "  ";

/**
 * Columns for a person; tab-separated without a head when piped, so that `cut -f1` works. What matters stands in the last
 * column, which gets all the width that is left. `optional` names columns that a narrow terminal goes without, in this order.
 */
export function table(terminal: Terminal, head: string[], cells: string[][], optional: readonly string[] = []): void {
	const rows = cells.map((row) => row.map((cell) => oneLine(cell, Number.POSITIVE_INFINITY)));
	if (!terminal.interactive) {
		for (const row of rows) terminal.out(`${row.join("\t")}\n`);
		return;
	}
	if (rows.length === 0) return;
	const widths = head.map((name, column) => Math.max(...[name, ...rows.map((row) => row[column]!)].map(widthOf)));
	const { shown, left } = fit(head, widths, terminal.columns, optional);
	const last = head.length - 1;
	const line = (row: string[]) => {
		const start = shown.map((column) => row[column]! + " ".repeat(widths[column]! - widthOf(row[column]!))).join(GAP);
		if (left >= Math.min(widths[last]!, LAST_COLUMNS_MIN)) return `${start}${GAP}${cut(row[last]!, left)}`.trimEnd();
		const below = row[last] === "" ? "" : `\n${GAP}${cut(row[last]!, terminal.columns - GAP.length)}`;
		return cut(start.trimEnd(), terminal.columns) + below;
	};
	for (const [index, text] of line(head).split("\n").entries())
		terminal.out(`${index === 0 ? "" : GAP}${terminal.dim(text.trimStart())}\n`);
	for (const row of rows) terminal.out(`${line(row)}\n`);
}

/** Which columns stand before the last one, and how much room that leaves it. */
function fit(head: string[], widths: number[], columns: number, optional: readonly string[]) {
	const room = (shown: number[]) => columns - shown.reduce((sum, column) => sum + widths[column]! + GAP.length, 0);
	let shown = head.slice(0, -1).map((_, column) => column);
	for (const name of optional) {
		if (room(shown) >= Math.min(widths.at(-1)!, LAST_COLUMNS_MIN)) break;
		shown = shown.filter((column) => head[column] !== name);
	}
	return { shown, left: room(shown) };
}

/** Emoji, and the letters of East Asia, take two columns each. */
const WIDE =
	/^[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]/u;

const widthOf = (text: string): number =>
	Array.from(text).reduce((sum, letter) => sum + (WIDE.test(letter) ? 2 : 1), 0);

function cut(text: string, columns: number): string {
	if (widthOf(text) <= columns) return text;
	let kept = "";
	let used = 1;
	for (const letter of text) {
		used += widthOf(letter);
		if (used > columns) break;
		kept += letter;
	}
	return `${kept.trimEnd()}…`;
}
