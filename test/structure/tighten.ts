/** `node test/structure/tighten.ts`: writes left.json as it is now. A table that has grown needs `--grow`, and a commit that says why. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { measureAll } from "./left.ts";
import type { Table } from "./measures.ts";

const path = join(import.meta.dirname, "left.json");
const before = JSON.parse(readFileSync(path, "utf8")) as Record<string, Table>;
const sum = (table: Table = {}): number => Object.values(table).reduce((total, value) => total + value, 0);

const now = measureAll();
const grown = Object.entries(now).filter(([name, table]) => sum(table) > sum(before[name]));
for (const [name, table] of grown) {
	const added = Object.entries(table).filter(([key, value]) => value > (before[name]?.[key] ?? 0));
	console.log(`${name} has grown from ${sum(before[name])} to ${sum(table)}:`);
	for (const [key, value] of added) console.log(`  ${key}: ${before[name]?.[key] ?? 0} → ${value}`);
}
if (grown.length > 0 && !process.argv.includes("--grow")) process.exit(1);
writeFileSync(path, `${JSON.stringify(now, undefined, "\t")}\n`);
