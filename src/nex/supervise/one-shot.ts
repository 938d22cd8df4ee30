/** Verbs that answer with one JSON object and end: `info` and `health`. */

import { execFile } from "node:child_process";
import { type AdapterInfo, type HealthReport, readInfo } from "../../adapter/adapter.ts";
import { NexusError } from "../../protocol/protocol.ts";

export interface OneShotLimits {
	answerMs: number;
	answerBytesMax: number;
}

export const ONE_SHOT_LIMITS: OneShotLimits = { answerMs: 20_000, answerBytesMax: 1024 * 1024 };

interface Answer {
	value: unknown;
	code: number;
	detail: string;
}

function ask(command: readonly string[], env: Record<string, string>, limits: OneShotLimits): Promise<Answer> {
	const [file = "", ...args] = command;
	const options = { env, timeout: limits.answerMs, maxBuffer: limits.answerBytesMax, killSignal: "SIGKILL" as const };
	return new Promise((resolve) => {
		const child = execFile(file, args, options, (cause, stdout, stderr) => {
			const code = cause ? (typeof cause.code === "number" ? cause.code : -1) : 0;
			const said = lastWords(stderr);
			const late = cause?.killed ? `no answer within ${limits.answerMs} ms` : (cause?.message.split("\n")[0] ?? "");
			resolve({ value: parsed(stdout), code, detail: said === "" ? late : `${late} (${said})` });
		});
		child.stdin?.on("error", () => {}); // It need not read.
		child.stdin?.end();
	});
}

/** Where in its code a program failed is nothing to a person; what it says of it is. */
const lastWords = (stderr: string): string =>
	stderr
		.split("\n")
		.filter((line) => line.trim() !== "" && !/^\s+at |^Node\.js v\d/.test(line))
		.slice(-3)
		.join("; ")
		.slice(0, 500);

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
	limits: OneShotLimits,
): Promise<AdapterInfo> {
	const { value, detail } = await ask([...command, "info"], env, limits);
	const read = readInfo(value);
	if ("info" in read) return read.info;
	const fault = value === undefined ? `is no JSON object. ${detail}` : `is not understood: ${read.faults.join("; ")}`;
	throw new NexusError("unavailable", `The info of ${channel}'s adapter ${fault} (${command.join(" ")} info)`);
}

export async function askHealth(
	command: readonly string[],
	account: string,
	env: Record<string, string>,
	limits: OneShotLimits,
): Promise<HealthReport> {
	const { value, code, detail } = await ask([...command, "health", "--account", account], env, limits);
	const report = value as Partial<HealthReport> | undefined;
	if (typeof report?.ok === "boolean") {
		return { ok: report.ok && code === 0, detail: String(report.detail ?? "") };
	}
	return { ok: false, detail: `The adapter's health verb gave no report. ${detail}` };
}
