/** Bundled adapters as real processes, and a daemon around them that remembers only what would be on its disk. */

import type { ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { AdapterProcess as Process } from "../../packages/adapter/src/conformance/process.ts";
import type { StreamStatus, Target } from "../../packages/adapter/src/port.ts";
import type { Fake } from "../../packages/lab/src/fake.ts";
import { timedAdapter } from "../children.ts";
import { fastTime, type TestTime } from "../time/time.ts";
import { until } from "../until.ts";
import { Daemon } from "./kit/world.ts";

export type Settings = Readonly<Record<string, string>>;

export interface AdapterProcess {
	readonly child: ChildProcess;
	/** Everything it said so far, but for how well it listens. */
	readonly lines: Record<string, unknown>[];
	stderr(): string;
	write(line: object): void;
	/** Resolves when it reads its input: text then comes while it works, not while it starts. */
	reads(): Promise<void>;
	/** Closes its input; resolves with its exit code. */
	end(): Promise<number | null>;
}

/** The time of the adapters here and of the fakes that they call: a second of a platform's pace is 100 ms, which is long compared with a call. */
export const TIME = fastTime(10);

export function startAdapter(
	channel: string,
	verb: string,
	settings: Settings,
	onLine: (line: Record<string, unknown>) => void = () => {},
	/** The folder of its account and its memory; without one the process gets a new folder, which is removed at its end. */
	kept?: string,
	time: TestTime = TIME,
): AdapterProcess {
	const folder = kept ?? mkdtempSync(join(tmpdir(), `nexus-${channel}-`));
	writeFileSync(join(folder, "account.json"), JSON.stringify({ id: "a", settings }));
	const files = { NEXUS_ACCOUNT_FILE: join(folder, "account.json"), NEXUS_STATE_FILE: join(folder, "state.json") };
	const env = { ...files, ...time.env };
	const adapter = new Process(timedAdapter(channel), [verb, "--account", "a", "--format", "jsonl"], { env });
	const { child } = adapter;
	const lines: Record<string, unknown>[] = [];
	adapter.onLine = (line) => {
		// Said whenever it changes; the session's own tests read it.
		if (line.type === "listening") return;
		lines.push(line);
		onLine(line);
	};
	const saidOnStderr = Promise.withResolvers<void>();
	child.stderr.once("data", () => saidOnStderr.resolve());
	const closed = new Promise<number | null>((resolve) =>
		child.once("close", (code) => {
			if (kept === undefined) rmSync(folder, { recursive: true, force: true });
			saidOnStderr.resolve();
			resolve(code);
		}),
	);
	return {
		child,
		lines,
		stderr: () => adapter.stderr,
		write: (line) => adapter.raw(`${JSON.stringify(line)}\n`),
		reads() {
			// The adapter reports a line that is not an object, and otherwise ignores it.
			adapter.raw("?\n");
			return saidOnStderr.promise;
		},
		end() {
			adapter.closeInput();
			return closed;
		},
	};
}

export interface DeliverOptions {
	channel: string;
	settings: Settings;
	target: Target;
	/** The source, in the pieces in which it comes. */
	tokens: readonly string[];
	/** By `TIME`. */
	tokenEveryMs?: number;
	/** Looked at before a token: false holds it back, so that what is to happen before it does, on however slow a machine. */
	comes?: (index: number) => boolean;
	/** Looked at after every status: true kills the process, and another one resumes. */
	dies?: (status: StreamStatus, deaths: number) => boolean;
}

export interface Delivered {
	daemon: Daemon;
	statuses: StreamStatus[];
	deaths: number;
	/** When the first process got the delivery, by `TIME`. */
	begun: number;
}

/** Each of these tokens waits for one more write: there is something to write again, and it is seen to be. */
export const afterWrites = (writes: () => number, tokens: readonly number[]) => (index: number) =>
	writes() >= tokens.filter((each) => index >= each).length;

/**
 * Calls at a pace, by the adapter's own clock: one was allowed at least an interval after the one before it, and then made, sooner or later. The last
 * is the final, which waits for nothing.
 */
export function expectPaced(fake: Fake, name: string, { begun }: Delivered, intervalMs: number): void {
	const times = fake.calls.filter((call) => call.name === name).map(({ at }) => fake.begun + at - begun);
	const paced = times.slice(0, -1);
	expect(paced.length).toBeGreaterThanOrEqual(2);
	for (const [index, ms] of paced.entries()) expect(ms).toBeGreaterThanOrEqual((index + 1) * intervalMs);
}

/** Numbered, so that any loss, repetition or change of order shows. */
export const sentences = (count: number, words = "is here, complete"): string[] =>
	Array.from({ length: count }, (_, index) => `Sentence ${index} ${words}. `);

/** Platforms lay white space out as they like. */
export const letters = (text: string): string => text.replace(/\s+/g, "");

/** Dies once at each of these statuses; the last tokens wait until a message has grown. */
export function diesAt(...types: StreamStatus["type"][]): Pick<DeliverOptions, "comes" | "dies"> {
	const left = new Set<string>(types);
	return {
		comes: (index) => index < 30 || !left.has("message_updated"),
		dies: ({ type }) => left.delete(type),
	};
}

/** Processes that one delivery may take; more make no progress. */
const LIVES_MAX = 30;

/** One answer, delivered to its end, by as many processes as it takes. */
export async function deliver(options: DeliverOptions): Promise<Delivered> {
	const result: Delivered = { daemon: new Daemon(), statuses: [], deaths: 0, begun: 0 };
	// An account's files outlive its processes.
	const folder = mkdtempSync(join(tmpdir(), `nexus-${options.channel}-`));
	let errors = "";
	try {
		for (let lives = 0; result.daemon.over === undefined; lives++) {
			if (lives === LIVES_MAX) throw new Error(`never delivered: ${JSON.stringify(result.daemon)} ${errors}`);
			errors = await life(options, result, folder);
		}
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
	return result;
}

const pause = (ms: number) => new Promise<void>((resolve) => TIME.clock.after(ms, resolve, "due"));

/** One process, until it is done or dead; resolves with what it said on stderr. */
async function life(options: DeliverOptions, result: Delivered, folder: string): Promise<string> {
	const { channel, settings, target, tokens, tokenEveryMs = 15, comes = () => true } = options;
	const { daemon } = result;
	const resumed = daemon.rows.length > 0;
	let doomed = false;
	const hear = (line: Record<string, unknown>) => {
		if (doomed) return;
		const status = line as unknown as StreamStatus;
		result.statuses.push(status);
		const nonce = daemon.hear(status);
		doomed = options.dies?.(status, result.deaths) === true;
		if (doomed) adapter.child.kill("SIGKILL");
		else if (nonce !== undefined) adapter.write({ type: "ack", nonce, delivery: "d1", runId: "run_1" });
	};
	const adapter = startAdapter(channel, "stream", settings, hear, folder);
	const { child } = adapter;
	const isOver = () => doomed || daemon.over !== undefined || child.exitCode !== null || child.signalCode !== null;
	try {
		await adapter.reads();
		result.begun ||= TIME.clock.now();
		const name = { delivery: "d1", runId: "run_1" };
		const resume = daemon.resume();
		const start = { type: "stream_start", sessionLabel: "main", target, ...name };
		adapter.write({ ...start, resume: resumed ? resume : undefined });
		let position = 0;
		for (const [index, token] of tokens.entries()) {
			const owed = token.slice(Math.max(0, resume.position - position));
			position += token.length;
			if (owed === "") continue;
			await until(`token ${index} may come`, () => isOver() || comes(index));
			if (isOver()) break;
			adapter.write({ type: "token", text: owed, ...name });
			await pause(tokenEveryMs);
		}
		adapter.write({ type: "stream_end", final: true, ...name });
		await until("the delivery is over, or its adapter gone", isOver);
	} catch (cause) {
		throw new Error(`${String(cause)} ${JSON.stringify(daemon)} ${adapter.stderr()}`, { cause });
	} finally {
		if (doomed) result.deaths++;
		await adapter.end();
	}
	return adapter.stderr();
}
