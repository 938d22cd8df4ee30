/** `npm run bench [-- names…] [growth=1000x50] [--against <checkout>] [--json]`: measures the built daemon end to end, compared with a bare node:http server, or with the built daemon of another checkout in turns. */

import { existsSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { type Comparison, compare, comparisonTable, type Figure, markdown, table, verdict } from "./figure.ts";
import { agents } from "./lines/agents.ts";
import { audit } from "./lines/audit.ts";
import { blocks } from "./lines/blocks.ts";
import { type Cell, growth, growthFigures, growthRows } from "./lines/growth.ts";
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
import { type Checkout, checkoutIn, endAll, HERE, measure } from "./processes.ts";

const LINES: Record<string, (choice?: string) => Promise<Figure[]>> = {
	flood,
	pace,
	growth: async (choice) => {
		const measured = await growth(choice);
		cells.push(...measured);
		return growthFigures(measured);
	},
	message,
	readers1000,
	replay,
	append,
	turns,
	startup,
	idle,
	pipe,
	router,
	blocks,
	agents,
	nostr,
	grpc,
	audit,
	workflow,
};
/** Growth is a separate table. */
const cells: Cell[] = [];

/** With another build: so many turns of both, every second one in the other order. */
const TURNS = 2;

const { values: options, positionals } = parseArgs({
	options: { json: { type: "boolean" }, against: { type: "string" } },
	allowPositionals: true,
});
/** By name: the part of the line that is asked for, if not all of it. */
const chosen = new Map(positionals.map((word) => word.split("=", 2) as [string, string | undefined]));
const other = options.against === undefined ? undefined : checkoutIn(resolve(options.against));
const unknown = [...chosen.keys()].filter((name) => !Object.hasOwn(LINES, name));
const unbuilt = [HERE, ...(other ? [other] : [])].filter(({ built }) => !existsSync(built));
if (unknown.length > 0 || unbuilt.length > 0) {
	console.error(
		unknown.length > 0
			? `unknown: ${unknown.join(", ")}. There are: ${Object.keys(LINES).join(", ")}`
			: `the built daemon is measured: run \`npm run build\` in ${unbuilt.map(({ folder }) => folder).join(" and ")} first`,
	);
	process.exit(2);
}

process.on("exit", endAll);
process.on("SIGINT", () => process.exit(130));
process.on("SIGTERM", () => process.exit(143));

async function figuresOf(name: string, checkout: Checkout): Promise<Figure[]> {
	console.error(`measuring ${name}${other ? ` in ${checkout.folder}` : ""} …`);
	measure(checkout);
	try {
		return await LINES[name]!(chosen.get(name));
	} catch (cause) {
		console.error(`${name} could not be measured: ${cause instanceof Error ? cause.message : String(cause)}`);
		process.exitCode = 1;
		return [];
	}
}

const figures: Figure[] = [];
const comparisons = new Map<string, Comparison>();
for (const name of Object.keys(LINES)) {
	if (chosen.size > 0 && !chosen.has(name)) continue;
	if (!other) {
		const measured = await figuresOf(name, HERE);
		if (name !== "growth") figures.push(...measured);
		continue;
	}
	for (let turn = 0; turn < TURNS; turn++) {
		const first = turn % 2 === 0 ? HERE : other;
		const one = await figuresOf(name, first);
		const two = await figuresOf(name, first === HERE ? other : HERE);
		compare(comparisons, ...((first === HERE ? [one, two] : [two, one]) as [Figure[], Figure[]]));
	}
}

const machine = `${cpus().length} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB`;
const setting = { date: new Date().toISOString().slice(0, 10), node: process.version, machine };
const judged = figures.map((figure) => ({ ...figure, verdict: verdict(figure) }));
if (options.json) {
	console.log(
		JSON.stringify(
			other ? { ...setting, comparisons: [...comparisons.values()] } : { ...setting, figures: judged, growth: cells },
			null,
			"\t",
		),
	);
} else {
	console.log(`\n${setting.date}, Node ${setting.node}, ${setting.machine}`);
	if (comparisons.size > 0) console.log(`\n${comparisonTable(comparisons)}`);
	if (figures.length > 0) console.log(`\n${table(figures)}`);
	if (!other && cells.length > 0) console.log(`\n${markdown(growthRows(cells))}`);
}
