import { existsSync, readFileSync } from "node:fs";

/** The finished lines of a file that another process is writing: it may be missing, be empty because its writer was killed right after opening it, or end in half a line. */
export function linesOf(path: string): string[] {
	if (!existsSync(path)) return [];
	return readFileSync(path, "utf8")
		.split("\n")
		.slice(0, -1)
		.filter((line) => line !== "");
}
