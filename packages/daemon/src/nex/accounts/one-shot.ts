/** The verbs that answer with one JSON object and end: `info`, whose answer is cached by channel, and `health`. */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { readInfo } from "@nexus-stream/adapter/info";
import type { AdapterInfo, HealthReport } from "@nexus-stream/adapter/port";
import { bundledCommand } from "@nexus-stream/platforms";
import { NexusError, wordsOf } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { own } from "@nexus-stream/protocol/own";
import { OWN_GROUP, watchGroup } from "../../std/line-process.ts";
import type { OneShotLimits } from "../limits.ts";
import type { AdapterConfig, ChannelConfig } from "../port.ts";
import { inherited, noteChannelProcess } from "./account-files.ts";

export interface OneShotOptions {
	limits: OneShotLimits;
	clock: Clock;
	/** Aborts when the daemon stops. */
	signal: AbortSignal;
	/** Records the pid, so that the next daemon can end a process that outlived this one. */
	onSpawn(pid: number): void;
}

interface OneShotResult {
	value: unknown;
	code: number;
	detail: string;
	/** The reason that the program itself gave for ending. */
	fault?: string;
}

/** Ends with the answer, the time limit or the signal, and ends the processes that the program started. Never rejects. */
function ask(
	command: readonly string[],
	env: Record<string, string>,
	{ limits, clock, signal, onSpawn }: OneShotOptions,
): Promise<OneShotResult> {
	const [file = "", ...args] = command;
	const { promise, resolve } = Promise.withResolvers<OneShotResult>();
	const output = { out: "", err: "" };
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
		cancelTimer();
		signal.removeEventListener("abort", stop);
		group.end();
		for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.destroy();
		const details = [why ?? detail, lastLines(output.err), unnoted ?? ""].filter((each) => each !== "");
		const [first = "", ...rest] = details;
		const described = rest.length === 0 ? first : `${first} (${rest.join("; ")})`;
		resolve({ value: parsed(output.out), code: code ?? -1, detail: described, fault: faultIn(output.err) });
	};
	const giveUp = (reason: string) => {
		why ??= reason;
		over(child.exitCode, reason);
	};
	const stop = () => giveUp("the daemon stops");
	const cancelTimer = clock.after(limits.answerMs, () => giveUp(`no answer within ${limits.answerMs} ms`), "due");
	signal.addEventListener("abort", stop, { once: true });
	const collect = (name: "out" | "err") => (text: string) => {
		output[name] += text;
		if (output[name].length > limits.answerBytesMax) giveUp(`wrote more than ${limits.answerBytesMax} bytes`);
	};
	child.stdout.setEncoding("utf8").on("data", collect("out"));
	child.stderr.setEncoding("utf8").on("data", collect("err"));
	child.on("error", (cause) => over(null, cause.message));
	// Processes that it left behind may keep its pipes open.
	child.on("exit", () => group.signal("SIGKILL"));
	child.on("close", (code, killed) => over(code, code === 0 ? "" : `ended by ${killed ?? `code ${code}`}`));
	child.stdin.on("error", () => {}); // The program need not read its input.
	child.stdin.end();
	return promise;
}

/** A full disk must not prevent the process from being watched and ended. */
function note(pid: number, onSpawn: OneShotOptions["onSpawn"]): string | undefined {
	try {
		onSpawn(pid);
		return undefined;
	} catch (cause) {
		return `its pid could not be recorded: ${wordsOf(cause)}`;
	}
}

/** The last lines of stderr without the stack trace, which does not help the operator. */
const lastLines = (stderr: string): string =>
	stderr
		.split("\n")
		.filter((line) => line.trim() !== "" && !/^\s+at |^Node\.js v\d/.test(line))
		.slice(-3)
		.join("; ")
		.slice(0, 500);

/** The message that an adapter built with the kit logs before it ends by itself, for example because of an invalid setting. */
function faultIn(stderr: string): string | undefined {
	const last = parsed(stderr.trimEnd().split("\n").at(-1) ?? "") as { level?: unknown; msg?: unknown } | undefined;
	return last?.level === "error" && typeof last.msg === "string" ? last.msg : undefined;
}

/** The last line that is a JSON object: a library may have printed other text before it. */
function parsed(stdout: string): unknown {
	for (const candidate of [stdout, ...stdout.trim().split("\n").toReversed()]) {
		try {
			const value: unknown = JSON.parse(candidate);
			if (typeof value === "object" && value !== null) return value;
		} catch {
			// Not JSON: try the line before it.
		}
	}
	return undefined;
}

async function askInfo(
	channel: string,
	command: readonly string[],
	env: Record<string, string>,
	options: OneShotOptions,
): Promise<AdapterInfo> {
	const { value, detail } = await ask([...command, "info"], env, options);
	const read = readInfo(value);
	if ("info" in read) return read.info;
	const fault = value === undefined ? `is not a JSON object. ${detail}` : `is invalid: ${read.faults.join("; ")}`;
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

export const commandOf = (channel: string, config: ChannelConfig): readonly string[] =>
	config.command ?? bundledCommand(channel);

export interface InfoCacheOptions extends Omit<OneShotOptions, "onSpawn"> {
	dataDir: string;
	/** Called when an answer, or a failure, has arrived. */
	onInfo(): void;
}

export type InfoCache = ReturnType<typeof createInfoCache>;

/** The `info` of each channel's adapter. Asked once; after a failure the next caller asks again. */
export function createInfoCache(adapters: () => AdapterConfig, options: InfoCacheOptions) {
	const { dataDir, onInfo } = options;
	const pending = new Map<string, Promise<AdapterInfo>>();
	const cache = new Map<string, { info?: AdapterInfo; error?: string }>();
	const start = (channel: string): Promise<AdapterInfo> => {
		const config = own(adapters(), channel) ?? { accounts: {} };
		const env = { ...inherited(process.env), ...config.env };
		const onSpawn = noteChannelProcess(dataDir, channel, "info");
		return askInfo(channel, commandOf(channel, config), env, { ...options, onSpawn });
	};
	return {
		/** The last answer, or why there was none. */
		cached: (channel: string) => cache.get(channel) ?? {},
		ask(channel: string): Promise<AdapterInfo> {
			const before = pending.get(channel);
			if (before) return before;
			const answer = start(channel);
			pending.set(channel, answer);
			answer.then(
				(info) => {
					cache.set(channel, { info });
					onInfo();
				},
				(cause: Error) => {
					pending.delete(channel);
					cache.set(channel, { error: cause.message });
					onInfo();
				},
			);
			return answer;
		},
	};
}
