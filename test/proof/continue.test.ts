/** Kill -9 at random points of a run with five tools, then continue: no tool acts twice, and the answer is whole (A1, A4, A5). */

import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createVerifier, type Frame } from "../../src/protocol/protocol.ts";
import { atEffort } from "../effort.ts";
import { removeFolder } from "../runtime/folder.ts";
import { until } from "../until.ts";
import { agentThatNotes, TEXTS, TOOLS } from "./continued-agent.ts";
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
}
const rounds: Round[] = [];

const viewOf = (run: string) => call<RunView>(`${daemon.url}/v1/runs/${run}`);

const isOver = async (run: string) => !["running", "stopping"].includes((await viewOf(run)).status);

/** Kills the daemon with a certain record of the run, unless the run ends before. */
async function killAt(run: string, record: number): Promise<void> {
	const reader = follow(daemon.url, { run });
	await until(`record ${record} of ${run}`, () => reader.records.length >= record || reader.ended);
	reader.close();
	await daemon.kill();
	await daemon.start();
}

async function play(n: number): Promise<void> {
	const before = linesOf(acts).length;
	const path = `${daemon.url}/v1/sessions/round-${n}/messages`;
	const chain = [(await call<{ run_id: string }>(path, { text: "go" })).run_id];
	let kills = 0;
	for (const last = random.between(1, KILLS_PER_ROUND_MAX); kills < last; kills++) {
		const run = chain.at(-1)!;
		await killAt(run, random.between(RECORDS.low, RECORDS.high));
		const { status, can_continue: goesOn } = await viewOf(run);
		if (status === "completed") break;
		expect(goesOn, run).toBe(true);
		chain.push((await call<{ run_id: string }>(`${daemon.url}/v1/runs/${run}/continue`, {})).run_id);
	}
	await until(`${chain.at(-1)} ends`, () => isOver(chain.at(-1)!));
	const runs = await Promise.all(
		chain.map(async (run) => ({ view: await viewOf(run), frames: await framesOf(daemon.url, run) })),
	);
	rounds.push({ runs, acted: linesOf(acts).slice(before), kills });
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

// A hook each, so that each has a time limit of its own.
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
		for (const { runs, acted } of rounds) {
			const calls = runs.flatMap(({ view }) => view.tool_calls);
			for (const name of TOOLS) {
				expect(acted.filter((line) => line === `begin ${name}`).length, name).toBeLessThanOrEqual(1);
				const ends = acted.filter((line) => line === `end ${name}`).length;
				const reported = calls.filter((one) => one.name === name);
				const isUnknown = reported.some(
					({ status, summary }) => status === "failed" && summary === "the process ended",
				);
				expect(ends === 1 || isUnknown, `${name}: ${JSON.stringify(reported)}`).toBe(true);
				expect(reported.filter(({ status }) => status === "completed").length, name).toBeLessThanOrEqual(1);
			}
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
