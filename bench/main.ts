/** `npm run bench [-- names…] [growth=1000x50] [--json]`: measures the built daemon end to end, compared with a bare node:http server. */

import { existsSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { type Figure, markdown, table, verdict } from "./figure.ts";
import { agents } from "./lines/agents.ts";
import { audit } from "./lines/audit.ts";
import { blocks } from "./lines/blocks.ts";
import { type Cell, growth, growthRows } from "./lines/growth.ts";
import { grpc } from "./lines/grpc.ts";
import { flood, pace, readers1000 } from "./lines/live.ts";
import { message } from "./lines/message.ts";
import { nostr } from "./lines/nostr.ts";
import { pipe } from "./lines/pipe.ts";
import { replay } from "./lines/replay.ts";
import { router } from "./lines/router.ts";
import { idle, startup } from "./lines/startup.ts";
import { append, turns } from "./lines/store.ts";
import { workflow } from "./lines/workflow.ts";
import { BUILT, endAll } from "./processes.ts";

const figures: Figure[] = [];
/** Growth is a separate table. */
const cells: Cell[] = [];
const figuresOf = (line: () => Promise<Figure[]>) => async () => void figures.push(...(await line()));

const LINES: Record<string, (choice?: string) => Promise<void>> = {
	flood: figuresOf(flood),
	pace: figuresOf(pace),
	growth: async (choice) => void cells.push(...(await growth(choice))),
	message: figuresOf(message),
	readers1000: figuresOf(readers1000),
	replay: figuresOf(replay),
	append: figuresOf(append),
	turns: figuresOf(turns),
	startup: figuresOf(startup),
	idle: figuresOf(idle),
	pipe: figuresOf(pipe),
	router: figuresOf(router),
	blocks: figuresOf(blocks),
	agents: figuresOf(agents),
	nostr: figuresOf(nostr),
	grpc: figuresOf(grpc),
	audit: figuresOf(audit),
	workflow: figuresOf(workflow),
};

const words = process.argv.slice(2);
const json = words.includes("--json");
/** By name: the part of the line that is asked for, if not all of it. */
const chosen = new Map(
	words.filter((word) => word !== "--json").map((word) => word.split("=", 2) as [string, string | undefined]),
);
const unknown = [...chosen.keys()].filter((name) => !Object.hasOwn(LINES, name));
if (unknown.length > 0 || !existsSync(BUILT)) {
	console.error(
		unknown.length > 0
			? `unknown: ${unknown.join(", ")}. There are: ${Object.keys(LINES).join(", ")}`
			: "the built daemon is measured: run `npm run build` first",
	);
	process.exit(2);
}

process.on("exit", endAll);
process.on("SIGINT", () => process.exit(130));
process.on("SIGTERM", () => process.exit(143));

for (const [name, line] of Object.entries(LINES)) {
	if (chosen.size > 0 && !chosen.has(name)) continue;
	console.error(`measuring ${name} …`);
	try {
		await line(chosen.get(name));
	} catch (cause) {
		console.error(`${name} could not be measured: ${cause instanceof Error ? cause.message : String(cause)}`);
		process.exitCode = 1;
	}
}

const machine = `${cpus().length} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB`;
const setting = { date: new Date().toISOString().slice(0, 10), node: process.version, machine };
if (json) {
	const judged = figures.map((figure) => ({ ...figure, verdict: verdict(figure) }));
	console.log(JSON.stringify({ ...setting, figures: judged, growth: cells }, null, "\t"));
} else {
	console.log(`\n${setting.date}, Node ${setting.node}, ${setting.machine}`);
	if (figures.length > 0) console.log(`\n${table(figures)}`);
	if (cells.length > 0) console.log(`\n${markdown(growthRows(cells))}`);
}
