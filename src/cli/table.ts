/** Lists for a person or a pipe. */

import { oneLine, type Terminal } from "./terminal.ts";

export function since(at: number): string {
	const seconds = Math.max(0, Math.round((Date.now() - at) / 1000));
	if (seconds < 60) return `${seconds} s ago`;
	if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
	if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
	return new Date(at).toISOString().slice(0, 10);
}

/** Columns for a person; tab-separated without a head when piped, so that `cut -f1` works. */
export function table(terminal: Terminal, head: string[], cells: string[][]): void {
	const rows = cells.map((row) => row.map((cell) => oneLine(cell, Number.POSITIVE_INFINITY)));
	if (!terminal.interactive) {
		for (const row of rows) terminal.out(`${row.join("\t")}\n`);
		return;
	}
	if (rows.length === 0) return;
	const widths = head.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]!.length)));
	const line = (row: string[]) =>
		row
			.map((cell, column) => cell.padEnd(widths[column]!))
			.join("  ")
			.trimEnd();
	terminal.out(`${terminal.dim(line(head))}\n`);
	for (const row of rows) terminal.out(`${line(row).slice(0, terminal.columns)}\n`);
}
