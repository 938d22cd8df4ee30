/** Asks a person for an account's settings: only those that are needed, each checked as it is given; secrets are not echoed. */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { appliesTo } from "@nexus-stream/adapter/info";
import type { AdapterSetting } from "@nexus-stream/adapter/port";
import { NexusError } from "@nexus-stream/protocol";
import type { Host } from "./host.ts";
import { oneLine } from "./terminal.ts";

export type AccountSettings = Record<string, string>;

/** The problem with a value as text; undefined when the value is valid. */
export const faultOf = ({ pattern, prompt }: AdapterSetting, value: string): string | undefined =>
	pattern === undefined || new RegExp(pattern, "u").test(value) ? undefined : `that does not fit; expected: ${prompt}`;

/** The text of a file that a flag names. */
export function readText(host: Host, path: string, flag: string): string {
	try {
		return readFileSync(resolve(host.cwd(), path), "utf8").trim();
	} catch (cause) {
		throw new NexusError("invalid", `${flag}: ${(cause as Error).message}`, { cause });
	}
}

/** `known` are settings that need no question; `isAgain`: something in them is wrong, and each can be kept or changed. */
export async function ask(
	host: Host,
	wanted: readonly AdapterSetting[],
	known: AccountSettings,
	isAgain: boolean,
): Promise<AccountSettings> {
	const answers = { ...known };
	const lines = reader(host);
	try {
		for (const setting of wanted) {
			if (!appliesTo(setting, wanted, answers)) continue;
			const before = answers[setting.name];
			if (before === undefined ? isLeftAlone(setting, wanted) : !isAgain) continue;
			const answer = await answerTo(host, lines.question, setting, before);
			if (answer !== "") answers[setting.name] = answer;
		}
	} catch (cause) {
		if ((cause as Error).name !== "AbortError") throw cause;
		// Ctrl-C or Ctrl-D, in the middle of a line.
		host.stderr.write("\n");
		throw new NexusError("aborted", "stopped: nothing was stored", { cause });
	} finally {
		lines.close();
	}
	return answers;
}

/** Has a default, and no other question depends on it: `--set` is there for those who want another. */
const isLeftAlone = ({ name, default: usual }: AdapterSetting, wanted: readonly AdapterSetting[]) =>
	usual !== undefined && !wanted.some(({ when }) => when?.name === name);

/** Asks until the answer fits; empty when the person leaves it as it is. */
async function answerTo(
	{ stderr }: Host,
	question: (prompt: string, secret: boolean) => Promise<string>,
	setting: AdapterSetting,
	before: string | undefined,
): Promise<string> {
	const usual = before ?? setting.default;
	const shown = before !== undefined && setting.secret ? "as before" : usual;
	const prompt = `${oneLine(`${setting.prompt}${shown ? ` [${shown}]` : ""}`, 300)}: `;
	for (;;) {
		const answer = await question(prompt, setting.secret);
		if (answer === "" && (usual || !setting.required)) return "";
		const fault = answer === "" ? "this one is needed" : faultOf(setting, answer);
		if (fault === undefined) return answer;
		stderr.write(`  ${fault}\n`);
	}
}

function reader({ stdin, stderr }: Host) {
	let hidden = false;
	const output = new Writable({
		write(chunk: Buffer, _encoding, done) {
			if (!hidden) stderr.write(chunk);
			done();
		},
	});
	const lines = createInterface({ input: stdin, output, terminal: true });
	const left = new AbortController();
	lines.once("close", () => left.abort());
	return {
		async question(prompt: string, secret: boolean): Promise<string> {
			if (secret) stderr.write(prompt);
			hidden = secret;
			const answer = await lines.question(secret ? "" : prompt, { signal: left.signal });
			if (hidden) stderr.write("\n");
			hidden = false;
			return answer.trim();
		},
		close: () => lines.close(),
	};
}
