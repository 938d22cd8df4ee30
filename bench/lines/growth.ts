/** Latency, processor time and memory as streams are added, compared with the bare server and the one with a synced log. */

import { join } from "node:path";
import { type Figure, number } from "../figure.ts";
import type { Memory } from "../memory.ts";
import { residentMb, type Server, startBare, startNexus, withFolder } from "../processes.ts";
import { type Round, round, type Side, warm } from "../round.ts";

const SECONDS = 10;
const SAMPLE_MS = 200;
/** Above it, latencies tell about the load client rather than about the server. */
const CLIENT_BUSY_MAX = 90;

interface Goals {
	p50Ms: number;
	p99Ms: number;
	cpuRatio?: number;
	residentMb: number;
}

interface Row {
	streams: number;
	rate: number;
	goals?: Goals;
}

const ROWS: readonly Row[] = [
	{ streams: 100, rate: 50 },
	{ streams: 500, rate: 50 },
	{ streams: 1000, rate: 50, goals: { p50Ms: 5, p99Ms: 60, cpuRatio: 1.4, residentMb: 200 } },
	{ streams: 2000, rate: 50, goals: { p50Ms: 15, p99Ms: 120, cpuRatio: 1.2, residentMb: 300 } },
	{ streams: 5000, rate: 10, goals: { p50Ms: 10, p99Ms: 150, residentMb: 350 } },
	{ streams: 3000, rate: 50, goals: { p50Ms: 40, p99Ms: 200, cpuRatio: 1.4, residentMb: 400 } },
];

export interface Cell extends Pick<Round, "p50Ms" | "p99Ms" | "cpuUs" | "delivered" | "clientBusy"> {
	streams: number;
	rate: number;
	server: string;
	/** To the bare server's, per token. */
	cpuRatio: number;
	tokensPerSecond: number;
	/** The most that was resident before the last token had arrived. */
	residentMb: number;
	/** After a garbage collection, all streams still open. */
	memory: Memory;
	goals?: Goals;
	/** The missed goals; left out where there are none. */
	short?: string[];
}

/** The most memory that a process has, from now on. */
function watchResident(pid: number): () => number {
	let most = 0;
	const sample = () => {
		most = Math.max(most, residentMb(pid));
	};
	const timer = setInterval(sample, SAMPLE_MS);
	return () => {
		clearInterval(timer);
		sample();
		return most;
	};
}

type Measured = Omit<Cell, "cpuRatio" | "server">;

async function measure(side: Side, folder: string, { streams, rate }: Row): Promise<Measured> {
	const resident = watchResident(side.server.pid);
	try {
		let held: Pick<Cell, "residentMb" | "memory"> | undefined;
		const result = await round(side, folder, { streams, readers: 1, tokens: SECONDS * rate, rate }, async () => {
			held = { residentMb: resident(), memory: await side.server.memory() };
		});
		if (!held) throw new Error("the streams ended before all tokens had arrived");
		const { events, seconds, p50Ms, p99Ms, cpuUs, delivered, clientBusy } = result;
		return { streams, rate, p50Ms, p99Ms, cpuUs, delivered, clientBusy, tokensPerSecond: events / seconds, ...held };
	} finally {
		resident();
	}
}

/** The goals that a cell misses. Every token has to arrive, whatever the goals. */
export function shortOf(cell: Pick<Cell, keyof Goals | "delivered"> & { cpuRatio: number }, goals: Goals): string[] {
	const within = (value: number, atMost = Infinity) => value <= atMost;
	return [
		...(cell.delivered === 100 ? [] : ["delivered"]),
		...(within(cell.p50Ms, goals.p50Ms) ? [] : ["p50"]),
		...(within(cell.p99Ms, goals.p99Ms) ? [] : ["p99"]),
		...(goals.cpuRatio === undefined || within(cell.cpuRatio, goals.cpuRatio) ? [] : ["CPU"]),
		...(within(cell.residentMb, goals.residentMb) ? [] : ["RSS"]),
	];
}

/** Adds a row's cells. Fresh servers for each row, so that no row has the memory of another. */
function measureRow(row: Row, cells: Cell[]): Promise<void> {
	return withFolder(async (folder) => {
		const starts: Record<string, () => Promise<Server>> = {
			"bare http": () => startBare({ memory: join(folder, "bare.json") }),
			"bare + log": () => startBare({ log: join(folder, "bare.log"), memory: join(folder, "logged.json") }),
			Nexus: () => startNexus(folder, { memory: join(folder, "nexus.json") }),
		};
		const sides: (Side & { name: string })[] = [];
		try {
			for (const [name, start] of Object.entries(starts)) {
				sides.push({ name, server: await start(), path: name === "Nexus" ? undefined : "/stream" });
			}
			await warm(sides, folder, { ...row, readers: 1, tokens: SECONDS * row.rate });
			let bareUs: number | undefined;
			for (const { name: server, ...side } of sides) {
				console.error(`  ${row.streams} × ${row.rate}/s, ${server} …`);
				const measured = await measure(side, folder, row);
				bareUs ??= measured.cpuUs;
				const cpuRatio = measured.cpuUs / bareUs;
				const { goals } = row;
				const judged = server === "Nexus" && goals && { goals, short: shortOf({ ...measured, cpuRatio }, goals) };
				cells.push({ server, cpuRatio, ...measured, ...judged });
			}
		} finally {
			await Promise.all(sides.map(({ server }) => server.stop()));
		}
	});
}

const nameOf = ({ streams, rate }: Row) => `${streams}x${rate}`;

export async function growth(choice?: string): Promise<Cell[]> {
	const rows = ROWS.filter((row) => choice === undefined || nameOf(row) === choice);
	if (rows.length === 0) throw new Error(`no row ${choice}. There are: ${ROWS.map(nameOf).join(", ")}`);
	const cells: Cell[] = [];
	for (const row of rows) {
		// A server that is too slow must not cost the other rows.
		await measureRow(row, cells).catch((cause: Error) => {
			console.error(`growth=${nameOf(row)} could not be measured: ${cause.message}`);
			process.exitCode = 1;
		});
	}
	return cells;
}

/** The daemon's cells as figures, to compare two builds. */
export function growthFigures(cells: readonly Cell[]): Figure[] {
	const ofDaemon = cells.filter(({ server }) => server === "Nexus");
	return ofDaemon.flatMap((cell) => {
		const name = (what: string) => `${number(cell.streams)} × ${cell.rate}/s, ${what}`;
		return [
			{ name: name("latency p50"), unit: "ms", value: cell.p50Ms },
			{ name: name("latency p99"), unit: "ms", value: cell.p99Ms },
			{ name: name("CPU per token"), unit: "µs", value: cell.cpuUs },
			{ name: name("memory"), unit: "MB", value: cell.residentMb },
			{ name: name("heap after GC"), unit: "MB", value: cell.memory.heapUsedMb },
		];
	});
}

const HEAD = [
	"streams × rate",
	"server",
	"p50 ms",
	"p99 ms",
	"CPU",
	"tokens/s",
	"RSS MB",
	"heap after GC",
	"heap total",
	"buffers",
	"client busy",
	"goal",
	"",
];

const goalText = ({ p50Ms, p99Ms, cpuRatio, residentMb: mb }: Goals) =>
	`≤ ${p50Ms} / ≤ ${p99Ms} ms;${cpuRatio === undefined ? "" : ` ≤ ${cpuRatio}×;`} ≤ ${mb} MB`;

/** The first row is the head. */
export function growthRows(cells: readonly Cell[]): string[][] {
	const rows = cells.map((cell) => [
		`${number(cell.streams)} × ${cell.rate}/s`,
		cell.server,
		number(cell.p50Ms),
		number(cell.p99Ms),
		`${number(cell.cpuRatio)}×`,
		`${number(cell.tokensPerSecond)}${cell.delivered === 100 ? "" : ` (${number(cell.delivered)} %)`}`,
		number(cell.residentMb),
		number(cell.memory.heapUsedMb),
		number(cell.memory.heapTotalMb),
		number(cell.memory.arrayBuffersMb),
		`${number(cell.clientBusy)} %${cell.clientBusy > CLIENT_BUSY_MAX ? " (full)" : ""}`,
		cell.goals ? goalText(cell.goals) : "",
		cell.short ? (cell.short.length === 0 ? "pass" : `short: ${cell.short.join(", ")}`) : "",
	]);
	return [HEAD, ...rows];
}
