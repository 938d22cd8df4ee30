/** Kill -9, again and again, while several sessions stream to clients that stay: nothing is lost, repeated or badly framed. */

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createVerifier, type Frame } from "../../packages/protocol/src/protocol.ts";
import { atEffort } from "../effort.ts";
import { removeFolder } from "../runtime/folder.ts";
import { until } from "../until.ts";
import { call, type DaemonProcess, daemonIn, framesOf } from "./daemon.ts";
import { seededRandom } from "./random.ts";
import { follow, type Reader } from "./reader.ts";

const KILLS = atEffort(50, 5);
const SESSIONS = ["one", "two", "three", "four"];
const READERS_PER_SESSION = 2;
/** A kill comes with one of these records of the first session's stream. */
const RECORDS = { low: 1, high: 120 };
/** Some runs end before the kill, most do not; that of the first session never does, however slow the machine is. */
const TOKENS = { low: 10, high: 250, endless: 5_000_000 };
const TOKENS_PER_SECOND = 300;

interface RunView {
	run_id: string;
	status: string;
	reason?: string;
	error?: { code: string };
	messages: { role: string; text: string; event_id?: string }[];
}

const random = seededRandom();
const folder = mkdtempSync(join(tmpdir(), "nexus-kill9-"));
const sessionReaders = new Map<string, Reader[]>();
const runReaders = new Map<string, Reader>();
/** Event id → session and text, of every message that was accepted. */
const accepted = new Map<string, { session: string; text: string }>();
let daemon: DaemonProcess;

const tokensFor = (session: string): number =>
	session === SESSIONS[0] ? TOKENS.endless : random.between(TOKENS.low, TOKENS.high);

async function send(session: string, key: string, tokens: number): Promise<void> {
	const text = `/demo tokens=${tokens} rate=${TOKENS_PER_SECOND} reasoning=1 tools=1 tool_ms=40 cards=1 messages=2 seed=${random.between(1, 2 ** 31)}`;
	const path = `${daemon.url}/v1/sessions/${session}/messages`;
	const answer = await call<{ event_id: string }>(path, { text, idempotency_key: key });
	accepted.set(answer.event_id, { session, text });
}

const everyReader = () => [...sessionReaders.values()].flat();

/** One life: every session gets a message, every client is back and reading, then the process is killed with a certain record. */
async function live(life: number): Promise<void> {
	const connectionsBefore = everyReader().map((reader) => reader.connections);
	const recordsBefore = everyReader().map((reader) => reader.records.length);
	await daemon.start();
	await Promise.all(SESSIONS.map((session) => send(session, `life-${life}`, tokensFor(session))));
	await until(`every client resumes in life ${life}`, () =>
		everyReader().every(
			(reader, index) =>
				reader.connections > (connectionsBefore[index] ?? 0) && reader.records.length > (recordsBefore[index] ?? 0),
		),
	);
	await followNewRuns();
	const [endless] = everyReader();
	const last = endless!.records.length + random.between(RECORDS.low, RECORDS.high);
	await until(`record ${last} in life ${life}`, () => endless!.records.length >= last);
	await daemon.kill();
}

const runsOf = async (session: string): Promise<RunView[]> =>
	(await call<{ runs: RunView[] }>(`${daemon.url}/v1/runs?session=${session}&limit=200`)).runs;
const allRuns = async (): Promise<RunView[]> => (await Promise.all(SESSIONS.map(runsOf))).flat();

async function followNewRuns(): Promise<void> {
	const { runs } = await call<{ runs: RunView[] }>(`${daemon.url}/v1/runs?limit=50`);
	for (const { run_id: run } of runs) {
		if (!runReaders.has(run)) runReaders.set(run, follow(daemon.url, { run }));
	}
}

async function isQuiet(): Promise<boolean> {
	const { events } = await call<{ events: unknown[] }>(`${daemon.url}/v1/events?state=queued&limit=1`);
	const runs = await allRuns();
	return events.length === 0 && runs.every(({ status }) => status !== "running" && status !== "stopping");
}

beforeAll(async () => {
	console.log(`kill -9 proof: NEXUS_SEED=${random.seed}`);
	daemon = await daemonIn(folder, "engine: demo\nlog: { level: warn }\n");
	await daemon.start();
	// The chain of a session begins with its first run.
	await Promise.all(SESSIONS.map((session) => send(session, "first", tokensFor(session))));
	for (const session of SESSIONS) {
		sessionReaders.set(
			session,
			Array.from({ length: READERS_PER_SESSION }, () => follow(daemon.url, { session })),
		);
	}
	await daemon.kill();
});

// A hook each, so that each has its own time limit.
for (let life = 1; life < KILLS; life++) beforeAll(() => live(life));

beforeAll(async () => {
	await daemon.start();
	await Promise.all(SESSIONS.map((session) => send(session, "last", TOKENS.low)));
	await until("everything settles", isQuiet);
	await followNewRuns();
	await until("every run's reader reaches the end", () => [...runReaders.values()].every((reader) => reader.ended));
});

afterAll(async () => {
	for (const reader of [...everyReader(), ...runReaders.values()]) reader.close();
	await daemon?.stop();
	removeFolder(folder);
});

function violations(frames: readonly string[]): string[] {
	const verifier = createVerifier();
	const found = frames.map((text) => verifier.push(JSON.parse(text) as Frame));
	return [...found, verifier.finish()]
		.filter((fault) => fault !== undefined)
		.map((fault) => `${fault.rule} ${fault.message}`);
}

describe(`proof: ${KILLS} kills`, () => {
	it("I3: every kill hit a running answer, and the answers after the last one are complete", async () => {
		const [last, ...killed] = await runsOf(SESSIONS[0]!);
		expect(killed.map(({ status }) => status)).toEqual(killed.map(() => "failed"));
		expect(killed).toHaveLength(KILLS);
		expect(last).toMatchObject({ status: "completed" });
		for (const session of SESSIONS) expect((await runsOf(session))[0], session).toMatchObject({ status: "completed" });
	});

	it("I2 I3: every run log is well framed and has exactly one final end", async () => {
		for (const run of runReaders.keys()) {
			const frames = await framesOf(daemon.url, run);
			expect(violations(frames), run).toEqual([]);
			expect(JSON.parse(frames.at(-1) ?? "{}"), run).toMatchObject({ type: "stream.end", final: true });
		}
	});

	it("I1 I4: each reader of a run got exactly the records of its log", async () => {
		for (const [run, reader] of runReaders) {
			expect(reader.faults, run).toEqual([]);
			expect(
				reader.records.map((record) => record.data),
				run,
			).toEqual(await framesOf(daemon.url, run));
			expect(
				reader.records.map((record) => record.id),
				run,
			).toEqual(reader.records.map((_, index) => index + 1));
		}
	});

	it("I1 I4: each reader of a session got exactly the records of its runs, in order, through every kill", async () => {
		for (const [session, readers] of sessionReaders) {
			const runs = await runsOf(session);
			const logs = await Promise.all(runs.toReversed().map((run) => framesOf(daemon.url, run.run_id)));
			const expected = logs.flat();
			for (const reader of readers) {
				const isBack = () => reader.connections >= KILLS;
				await until(`${session} is read to its end`, () => isBack() && reader.records.length >= expected.length);
				expect(reader.faults).toEqual([]);
				expect(reader.records.map((record) => record.data)).toEqual(expected);
				expect(reader.records.map((record) => record.id)).toEqual(expected.map((_, index) => index + 1));
			}
		}
	});

	it("I5: every run is settled in the ledger with the text that its log carried", async () => {
		for (const run of runReaders.keys()) {
			const turn = await call<RunView>(`${daemon.url}/v1/runs/${run}`);
			expect(["completed", "failed"], run).toContain(turn.status);
			if (turn.status === "failed") expect(turn, run).toMatchObject({ reason: "crashed", error: { code: "crashed" } });
			const said = turn.messages.filter((message) => message.role === "assistant").map((message) => message.text);
			expect(said.join(""), run).toBe(textOf(await framesOf(daemon.url, run)));
		}
	});

	it("I10: every accepted message became exactly one run", async () => {
		const answered = (await allRuns()).flatMap(({ messages }) => messages.filter(({ role }) => role === "user"));
		expect(answered).toHaveLength(accepted.size);
		expect(new Set(answered.map((message) => message.event_id))).toEqual(new Set(accepted.keys()));
		for (const message of answered) expect(message.text).toBe(accepted.get(message.event_id ?? "")?.text);
	});
});

/** The text streams of a log, put together. */
function textOf(frames: readonly string[]): string {
	const text = new Set<string>();
	let whole = "";
	for (const frame of frames.map((record) => JSON.parse(record) as Frame)) {
		if (frame.type === "stream.begin" && frame.modality === "text") text.add(frame.message_id);
		if (frame.type === "stream.chunk" && text.has(frame.message_id)) whole += frame.payload;
	}
	return whole;
}
