/** `npm run bench [-- names…] [--json]`: measures the built daemon end to end beside a bare node:http server. */

import { existsSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { type Figure, table, verdict } from "./figure.ts";
import { blocks } from "./lines/blocks.ts";
import { flood, pace, readers1000, streams1000 } from "./lines/live.ts";
import { pipe } from "./lines/pipe.ts";
import { replay } from "./lines/replay.ts";
import { router } from "./lines/router.ts";
import { idle, startup } from "./lines/startup.ts";
import { append, turns } from "./lines/store.ts";
import { BUILT } from "./processes.ts";

const LINES: Record<string, () => Promise<Figure[]>> = {
	flood,
	pace,
	streams1000,
	readers1000,
	replay,
	append,
	turns,
	startup,
	idle,
	pipe,
	router,
	blocks,
};

const words = process.argv.slice(2);
const json = words.includes("--json");
const names = words.filter((word) => word !== "--json");
const unknown = names.filter((name) => !Object.hasOwn(LINES, name));
if (unknown.length > 0 || !existsSync(BUILT)) {
	console.error(
		unknown.length > 0
			? `unknown: ${unknown.join(", ")}. There are: ${Object.keys(LINES).join(", ")}`
			: "the built daemon is measured: run `npm run build` first",
	);
	process.exit(2);
}

const figures: Figure[] = [];
for (const [name, line] of Object.entries(LINES)) {
	if (names.length > 0 && !names.includes(name)) continue;
	console.error(`measuring ${name} …`);
	try {
		figures.push(...(await line()));
	} catch (cause) {
		console.error(`${name} could not be measured: ${cause instanceof Error ? cause.message : String(cause)}`);
		process.exitCode = 1;
	}
}

const machine = `${cpus().length} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB`;
const setting = { date: new Date().toISOString().slice(0, 10), node: process.version, machine };
if (json)
	console.log(
		JSON.stringify(
			{ ...setting, figures: figures.map((figure) => ({ ...figure, verdict: verdict(figure) })) },
			null,
			"\t",
		),
	);
else console.log(`\n${setting.date}, Node ${setting.node}, ${setting.machine}\n\n${table(figures)}`);
