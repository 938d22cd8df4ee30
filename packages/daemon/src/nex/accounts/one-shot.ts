/** Verbs that answer with one JSON object and end: `info` and `health`. */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { type AdapterInfo, type HealthReport, readInfo } from "@nexus-stream/adapter/host";
import { NexusError, wordsOf } from "@nexus-stream/protocol";
import { OWN_GROUP, watchGroup } from "../../std/process-group.ts";

export interface OneShotLimits {
	answerMs: number;
	answerBytesMax: number;
}

export const ONE_SHOT_LIMITS: OneShotLimits = { answerMs: 20_000, answerBytesMax: 1024 * 1024 };

export interface OneShotOptions {
	limits: OneShotLimits;
	/** Nobody waits any longer. */
	signal?: AbortSignal;
	/** Told of the process, so that it can be found should it outlive the daemon. */
	onSpawn?(pid: number): void;
}

interface OneShotResult {
	value: unknown;
	code: number;
	detail: string;
	/** The reason that the program itself gave for ending. */
	fault?: string | undefined;
}

/** Ends by its answer, by its time limit or by the signal; what it has started ends with it. Never rejects. */
function ask(
	command: readonly string[],
	env: Record<string, string>,
	{ limits, signal, onSpawn }: OneShotOptions,
): Promise<OneShotResult> {
	const [file = "", ...args] = command;
	const { promise, resolve } = Promise.withResolvers<OneShotResult>();
	const said = { out: "", err: "" };
	let why: string | undefined;
	let child: ChildProcessByStdio<Writable, Readable, Readable>;
	try {
		child = spawn(file, args, { env, stdio: ["pipe", "pipe", "pipe"], ...OWN_GROUP });
	} catch (cause) {
		return Promise.resolve({ value: undefined, code: -1, detail: wordsOf(cause) });
	}
	const group = watchGroup(child);
	const unnoted = child.pid === undefined ? undefined : note(child.pid, onSpawn);
	const over = (code: number | null, detail: string) => {
		clearTimeout(timer);
		signal?.removeEventListener("abort", stop);
		group.end();
		for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.destroy();
		const words = [why ?? detail, lastWords(said.err), unnoted ?? ""].filter((each) => each !== "");
		const [first = "", ...rest] = words;
		const told = rest.length === 0 ? first : `${first} (${rest.join("; ")})`;
		resolve({ value: parsed(said.out), code: code ?? -1, detail: told, fault: faultIn(said.err) });
	};
	const give = (reason: string) => {
		why ??= reason;
		over(child.exitCode, reason);
	};
	const stop = () => give("the daemon stops");
	const timer = setTimeout(() => give(`no answer within ${limits.answerMs} ms`), limits.answerMs);
	signal?.addEventListener("abort", stop, { once: true });
	const collect = (name: "out" | "err") => (text: string) => {
		said[name] += text;
		if (said[name].length > limits.answerBytesMax) give(`said more than ${limits.answerBytesMax} bytes`);
	};
	child.stdout.setEncoding("utf8").on("data", collect("out"));
	child.stderr.setEncoding("utf8").on("data", collect("err"));
	child.on("error", (cause) => over(null, cause.message));
	// Processes that it left behind may have its pipes.
	child.on("exit", () => group.signal("SIGKILL"));
	child.on("close", (code, killed) => over(code, code === 0 ? "" : `ended by ${killed ?? `code ${code}`}`));
	child.stdin.on("error", () => {}); // It need not read.
	child.stdin.end();
	return promise;
}

/** A full disk must not keep the process from being watched and ended. */
function note(pid: number, onSpawn: OneShotOptions["onSpawn"]): string | undefined {
	try {
		onSpawn?.(pid);
		return undefined;
	} catch (cause) {
		return `its process could not be noted: ${wordsOf(cause)}`;
	}
}

/** Where in its code a program failed is nothing to a person; what it says of it is. */
const lastWords = (stderr: string): string =>
	stderr
		.split("\n")
		.filter((line) => line.trim() !== "" && !/^\s+at |^Node\.js v\d/.test(line))
		.slice(-3)
		.join("; ")
		.slice(0, 500);

/** What a program of the kit says when it ends for a reason of its own, such as a setting that does not fit. */
function faultIn(stderr: string): string | undefined {
	const last = parsed(stderr.trimEnd().split("\n").at(-1) ?? "") as { level?: unknown; msg?: unknown } | undefined;
	return last?.level === "error" && typeof last.msg === "string" ? last.msg : undefined;
}

/** The last line that is a JSON object: a library may have printed something before it. */
function parsed(stdout: string): unknown {
	for (const candidate of [stdout, ...stdout.trim().split("\n").toReversed()]) {
		try {
			const value: unknown = JSON.parse(candidate);
			if (typeof value === "object" && value !== null) return value;
		} catch {
			// Not this one.
		}
	}
	return undefined;
}

export async function askInfo(
	channel: string,
	command: readonly string[],
	env: Record<string, string>,
	options: OneShotOptions,
): Promise<AdapterInfo> {
	const { value, detail } = await ask([...command, "info"], env, options);
	const read = readInfo(value);
	if ("info" in read) return read.info;
	const fault = value === undefined ? `is no JSON object. ${detail}` : `is not understood: ${read.faults.join("; ")}`;
	throw new NexusError("unavailable", `The info of ${channel}'s adapter ${fault} (${command.join(" ")} info)`);
}

export async function askHealth(
	command: readonly string[],
	account: string,
	env: Record<string, string>,
	options: OneShotOptions,
): Promise<HealthReport> {
	const { value, code, detail, fault } = await ask([...command, "health", "--account", account], env, options);
	const report = value as Partial<HealthReport> | undefined;
	if (typeof report?.ok === "boolean") {
		return { ok: report.ok && code === 0, detail: String(report.detail ?? "") };
	}
	return { ok: false, detail: fault ?? `The adapter's health verb gave no report. ${detail}` };
}
