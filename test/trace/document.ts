/** The lists of files in ARCHITECTURE.md, "The way of …". */

import { readFileSync } from "node:fs";

const text = readFileSync(new URL("../../ARCHITECTURE.md", import.meta.url), "utf8");

/** The files that the part of this name lists, as `daemon/bus/bus.ts`. */
export function filesListed(part: string): string[] {
	const [, body] = text.split(new RegExp(`\n##+ ${part}\n`));
	if (body === undefined) throw new Error(`ARCHITECTURE.md has no part "${part}"`);
	const [own = ""] = body.split(/\n##/);
	return [...own.matchAll(/`([\w/-]+\.ts)`/g)].map(([, file]) => file!);
}
