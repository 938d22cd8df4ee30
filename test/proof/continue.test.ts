/** Kill -9 at random points of a run with five tools and an approval, then continue: no tool acts twice, and the answer is whole (A1, A2, A4, A5). */

import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createVerifier, type Frame } from "../../packages/protocol/src/protocol.ts";
import { atEffort } from "../effort.ts";
import { removeFolder } from "../runtime/folder.ts";
import { until } from "../until.ts";
import { APPROVED, agentThatNotes, TEXTS, TOOLS } from "./continued-agent.ts";
import { call, type DaemonProcess, daemonIn, framesOf } from "./daemon.ts";
import { seededRandom } from "./random.ts";
import { follow } from "./reader.ts";

const ROUNDS = atEffort(30, 3);
const KILLS_PER_ROUND_MAX = 3;
/** A kill comes with one of these records of the run. */
const RECORDS = { low: 1, high: 70 };

interface RunView {
	run_id: string;
	status: string;
	continues?: string;
	continued_by?: string;
	can_continue?: boolean;
	messages: { role: string; text: string }[];
	tool_calls: { name: string; status: string; summary?: string }[];
}

const random = seededRandom();
const folder = mkdtempSync(join(tmpdir(), "nexus-continue-"));
const acts = join(folder, "acts.txt");
const agent = pathToFileURL(join(import.meta.dirname, "continued-agent.ts")).href;
let daemon: DaemonProcess;

interface Round {
	/** From the first to the last, each with its frames. */
	runs: { view: RunView; frames: string[] }[];
	acted: string[];
	kills: number;
	/** How the question was answered: while its run waited, or after a kill. */
	decided: ("live" | "late")[];
}
const rounds: Round[] = [];

const viewOf = (run: string) => call<RunView>(`${daemon.url}/v1/runs/${run}`);

const isOver = async (run: string) => !["running", "stopping"].includes((await viewOf(run)).status);

async function questionOf(run: string): Promise<string | undefined> {
	const { approvals } = await call<{ approvals: { id: string; run_id: string }[] }>(
		`${daemon.url}/v1/approvals?state=pending`,
	);
	return approvals.find(({ run_id }) => run_id === run)?.id;
}

const approve = (run: string, id: string) =>
	call(`${daemon.url}/v1/runs/${run}/approvals/${id}`, { decision: "approve" });

type Point = "record" | "asks" | "over";

/** Waits for a certain record of the run, unless the run asks or ends before. */
async function reached(run: string, record: number): Promise<Point> {
	const reader = follow(daemon.url, { run });
	let point: Point = "record";
	await until(`record ${record} of ${run}`, async () => {
		if (reader.records.length >= record) return true;
		if (reader.ended || (await isOver(run))) point = "over";
		else if ((await questionOf(run)) !== undefined) point = "asks";
		return point !== "record";
	});
	reader.close();
	return point;
}

/** The run that continues after the kill: through the answer to its question, or because it is continued. */
async function goneOn(run: string, before: string | undefined, round: Round): Promise<string | undefined> {
	const { status, can_continue: goesOn } = await viewOf(run);
	const id = await questionOf(run);
	// A2: what was asked is asked still.
	if (before !== undefined) expect(id, run).toBe(before);
	if (status === "completed") return undefined;
	// Continue would withdraw an open question, so it is not offered.
	expect(goesOn, run).toBe(id === undefined);
	if (id === undefined) return (await call<{ run_id: string }>(`${daemon.url}/v1/runs/${run}/continue`, {})).run_id;
	round.decided.push("late");
	await approve(run, id);
	await until(`${run} goes on`, async () => (await viewOf(run)).continued_by !== undefined);
	return (await viewOf(run)).continued_by;
}

async function play(n: number): Promise<void> {
	const before = linesOf(acts).length;
	const path = `${daemon.url}/v1/sessions/round-${n}/messages`;
	const chain = [(await call<{ run_id: string }>(path, { text: "go" })).run_id];
	const round: Round = { runs: [], acted: [], kills: 0, decided: [] };
	const killsMax = random.between(1, KILLS_PER_ROUND_MAX);
	const next = () => (round.kills < killsMax ? random.between(RECORDS.low, RECORDS.high) : Infinity);
	// The first round is killed while it asks.
	let record = n === 0 ? Infinity : next();
	for (;;) {
		const run = chain.at(-1)!;
		if ((await reached(run, record)) === "over") break;
		const id = await questionOf(run);
		const isAnswered = (n > 0 || round.kills > 0) && (record === Infinity || random.between(0, 1) === 0);
		if (id !== undefined && isAnswered) {
			round.decided.push("live");
			await approve(run, id);
			continue;
		}
		await daemon.kill();
		await daemon.start();
		round.kills++;
		const on = await goneOn(run, id, round);
		if (on === undefined) break;
		chain.push(on);
		record = next();
	}
	round.runs = await Promise.all(
		chain.map(async (run) => ({ view: await viewOf(run), frames: await framesOf(daemon.url, run) })),
	);
	round.acted = linesOf(acts).slice(before);
	rounds.push(round);
}

const linesOf = (file: string): string[] =>
	existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];

beforeAll(async () => {
	console.log(`continue proof: NEXUS_SEED=${random.seed}`);
	const module = join(folder, "agent.ts");
	writeFileSync(
		module,
		`import { ${agentThatNotes.name} as agent } from ${JSON.stringify(agent)};\nexport default await agent(${JSON.stringify(acts)});\n`,
	);
	daemon = await daemonIn(folder, `engine: { module: ${JSON.stringify(module)} }\nlog: { level: warn }\n`);
	await daemon.start();
});

// A hook each, so that each has its own time limit.
for (let n = 0; n < ROUNDS; n++) beforeAll(() => play(n));

afterAll(async () => {
	await daemon?.stop();
	removeFolder(folder);
});

const wordsOf = ({ messages }: RunView): string =>
	messages.flatMap(({ role, text }) => (role === "assistant" ? [text] : [])).join("");

describe(`proof: ${ROUNDS} rounds of kills, each continued to its end`, () => {
	it("A1: the runs of a round continue each other, and the last one completes", () => {
		for (const { runs } of rounds) {
			expect(runs.map(({ view }) => view.continues)).toEqual([
				undefined,
				...runs.slice(0, -1).map(({ view }) => view.run_id),
			]);
			expect(runs.at(-1)!.view).toMatchObject({ status: "completed" });
		}
		expect(rounds.some(({ runs }) => runs.length > 1)).toBe(true);
	});

	it("A1: the texts of a round's runs are the whole answer, once", () => {
		for (const { runs } of rounds) expect(runs.map(({ view }) => wordsOf(view)).join("")).toBe(TEXTS.join(""));
	});

	it("A4: no tool acts twice; one that did not act to its end is known to be of unknown outcome", () => {
		for (const { runs, acted, decided } of rounds) {
			const calls = runs.flatMap(({ view }) => view.tool_calls);
			for (const name of TOOLS) {
				expect(acted.filter((line) => line === `begin ${name}`).length, name).toBeLessThanOrEqual(1);
				const ends = acted.filter((line) => line === `end ${name}`).length;
				const reported = calls.filter((one) => one.name === name);
				const isUnknown = reported.some(
					({ status, summary }) => status === "failed" && summary === "the process ended",
				);
				// Approved while its run waited, and killed before its start: the model reads that it never ran.
				const neverRan = name === APPROVED && decided.includes("live") && !acted.includes(`begin ${name}`);
				expect(ends === 1 || isUnknown || neverRan, `${name}: ${JSON.stringify(reported)}`).toBe(true);
				expect(reported.filter(({ status }) => status === "completed").length, name).toBeLessThanOrEqual(1);
			}
		}
	});

	it("A2: a late answer resumes the work: the tool acts, once", () => {
		const late = rounds.filter(({ decided }) => decided.includes("late"));
		expect(rounds[0]?.decided[0]).toBe("late");
		for (const { acted, runs } of late) {
			const reported = runs.flatMap(({ view }) => view.tool_calls).filter(({ name }) => name === APPROVED);
			expect(
				acted.filter((line) => line === `begin ${APPROVED}`),
				JSON.stringify(reported),
			).toHaveLength(1);
		}
	});

	it("I2 I3: every log is well framed, and says which run it continues", () => {
		for (const { runs } of rounds) {
			for (const { view, frames } of runs) {
				const verifier = createVerifier();
				const parsed = frames.map((text) => JSON.parse(text) as Frame);
				const faults = [...parsed.map((frame) => verifier.push(frame)), verifier.finish()].filter(Boolean);
				expect(faults, view.run_id).toEqual([]);
				expect((parsed[0] as { continues?: string }).continues).toBe(view.continues);
			}
		}
	});
});
