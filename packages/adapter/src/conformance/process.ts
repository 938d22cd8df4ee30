/** An adapter as a process under test: lines in, lines out, and waiting for what it says. */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { systemClock } from "@nexus-stream/protocol/clock";
import { sleep } from "@nexus-stream/protocol/retry";
import { createLineReader } from "../serve/lines.ts";

export interface AdapterLine {
	type: string;
	[field: string]: unknown;
}

/** Limits in a row: one that only chatters is not waited for any longer. */
const WAITS_MAX = 10;

export class AdapterProcess {
	readonly lines: AdapterLine[] = [];
	readonly garbage: string[] = [];
	stderr = "";
	/** Deliveries that it was given: none of them may end twice. */
	begun = 0;
	/** Called with every line it says, before anybody waits for it. */
	onLine: (line: AdapterLine) => void = () => {};
	readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
	readonly #watchers = new Set<() => void>();
	readonly #exit: Promise<number | null>;
	#ended = false;

	constructor(
		command: readonly string[],
		args: readonly string[],
		{ env, cwd }: { env?: Record<string, string>; cwd?: string },
	) {
		const [program = "", ...fixed] = command;
		this.child = spawn(program, [...fixed, ...args], { cwd, env: { ...process.env, ...env }, stdio: "pipe" });
		const reader = createLineReader({ onFault: ({ excerpt }) => this.garbage.push(excerpt) });
		const take = (lines: object[]) => {
			for (const line of lines as AdapterLine[]) {
				this.lines.push(line);
				this.onLine(line);
			}
			for (const look of [...this.#watchers]) look();
		};
		this.child.stdout.on("data", (chunk: Buffer) => take(reader.push(chunk)));
		this.child.stdout.on("end", () => take(reader.end()));
		this.child.stderr.on("data", (chunk: Buffer) => {
			this.stderr = (this.stderr + chunk.toString("utf8")).slice(-20_000);
		});
		// A process that is gone cannot be written to; its exit is what a case looks at.
		this.child.stdin.on("error", () => {});
		this.#exit = new Promise((resolve) => {
			this.child.on("error", (cause) => {
				this.stderr += cause.message;
				resolve(127);
			});
			this.child.on("close", (code) => resolve(code));
		}).then((code) => {
			this.#ended = true;
			for (const look of [...this.#watchers]) look();
			return code as number | null;
		});
	}

	say(line: AdapterLine): void {
		if (line.type === "stream_start") this.begun++;
		this.raw(`${JSON.stringify(line)}\n`);
	}

	raw(text: string): void {
		this.child.stdin.write(text);
	}

	/** Pauses and resumes reading its output. */
	listen(on: boolean): void {
		if (on) this.child.stdout.resume();
		else this.child.stdout.pause();
	}

	closeInput(): void {
		this.child.stdin.end();
	}

	/** The first line after `since` others that fits, or an error that says what came instead. While it says anything at all it may be waiting for its platform: the limit begins again. */
	async hear(what: string, fits: (line: AdapterLine) => boolean, limitMs: number, since = 0): Promise<AdapterLine> {
		const find = () => this.lines.slice(since).find(fits);
		const isOver = () => find() !== undefined || this.#ended;
		for (let known = -1, waits = 0; !isOver() && known < this.lines.length && waits < WAITS_MAX; waits++) {
			known = this.lines.length;
			await this.until(isOver, limitMs);
		}
		const found = find();
		if (found) return found;
		const last = this.lines.slice(-4).map((line) => JSON.stringify(line).slice(0, 200));
		const why = this.#ended ? "the process ended" : `nothing within ${limitMs} ms`;
		throw new Error(
			`expected ${what}: ${why}. Last lines: ${last.join(" ") || "none"}. stderr: ${this.stderr.slice(-500) || "empty"}`,
		);
	}

	/** Resolves when it holds or the time is over. */
	async until(holds: () => boolean, limitMs: number): Promise<boolean> {
		if (holds()) return true;
		const seen = new AbortController();
		const look = () => holds() && seen.abort();
		this.#watchers.add(look);
		await sleep(systemClock, limitMs, seen.signal, "due");
		this.#watchers.delete(look);
		return holds();
	}

	/** Its exit code; undefined when it has not ended in time. */
	async exited(limitMs: number): Promise<number | null | undefined> {
		return (await this.until(() => this.#ended, limitMs)) ? this.#exit : undefined;
	}

	async kill(): Promise<void> {
		this.child.kill("SIGKILL");
		await this.#exit;
	}
}
