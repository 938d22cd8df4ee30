/** The `mcp:` section of `nexus.yaml`, and what is wrong with it. Every start reads this file: it loads no library. */

import { accessSync, constants, statSync } from "node:fs";
import { delimiter, resolve } from "node:path";
import { urlProblem } from "@nexus-stream/adapter/net/address-guard";
import type { ConfigWords, EnvironmentVariables } from "../entry.ts";
import {
	type FromEnvironment,
	isStdio,
	type McpConfig,
	type McpLimits,
	type McpServerConfig,
	SERVER_NAME,
} from "./port.ts";

export const mcpConfigSchema = (words: ConfigWords) => {
	const { bytes, count, flag, group, ms, mapOf, needed, oneOf, text, texts, either } = words;
	const secret = group({ env: needed(text("the name of a variable")), prefix: text("a text, such as `Bearer `") });
	const value = either([needed(text("a text")), needed(secret)], "a text, or { env: VARIABLE } for a secret");
	const shared = { timeoutMs: ms, approval: oneOf(["non-owner", "always"]) };
	const stdio = group({
		command: needed(text("a program")),
		args: texts("a list of texts"),
		env: mapOf(needed(value), "a map from variables to texts or { env: VARIABLE }"),
		cwd: text("a folder; relative to this file"),
		...shared,
	});
	const http = group({
		url: needed(text("an https address")),
		headers: mapOf(needed(value), "a map from headers to texts or { env: VARIABLE }"),
		allowLoopback: flag,
		...shared,
	});
	const limits = {
		startMs: ms,
		pingMs: ms,
		listMs: ms,
		messageBytesMax: bytes,
		messagesPerSecondMax: count,
		garbageLinesMax: count,
		toolsMax: count,
		descriptionCharsMax: count,
		schemaBytesMax: bytes,
		resultBytesMax: bytes,
		resultPartsMax: count,
		questionsMax: count,
		stopMs: ms,
	} satisfies Record<keyof McpLimits, unknown>;
	const server = either(
		[needed(stdio), needed(http)],
		"a map with either `command` (and args, env, cwd) or `url` (and headers)",
	);
	return group({ servers: needed(mapOf(needed(server), "a map from names to servers")), ...limits });
};

export interface McpProblem {
	server: string;
	/** Advice. */
	problem: string;
	/** The configuration itself is wrong, not the machine. */
	isFatal: boolean;
}

/** Problems that can be found without starting a server. */
export function mcpProblems(config: McpConfig, env: EnvironmentVariables, base: string): McpProblem[] {
	return Object.entries(config.servers).flatMap(([server, spec]) => [
		...[...mistakes(server, spec)].map((problem) => ({ server, problem, isFatal: true })),
		...[...missingVariables(spec, env), ...missingFiles(spec, env, base)].map((problem) => ({
			server,
			problem,
			isFatal: false,
		})),
	]);
}

const SECRET_HEADER = /authorization|cookie|token|secret|key/i;

function* mistakes(name: string, spec: McpServerConfig): Generator<string> {
	if (!SERVER_NAME.test(name))
		yield "a server's name has up to 32 letters, digits, - and single _ between them, because tools are called mcp__server__tool";
	if (isStdio(spec)) return;
	for (const [header, value] of Object.entries(spec.headers ?? {}))
		if (typeof value === "string" && SECRET_HEADER.test(header))
			yield `${header} stands in the file: put it into a variable and write { env: VARIABLE }`;
	const url = URL.parse(spec.url);
	const problem = url === null ? "it is not a valid address" : urlProblem(url, spec);
	if (problem !== undefined) yield `url: ${problem}`;
}

export function* missingVariables(spec: McpServerConfig, env: EnvironmentVariables): Generator<string> {
	for (const [name, value] of Object.entries((isStdio(spec) ? spec.env : spec.headers) ?? {}))
		if (typeof value !== "string" && !env[value.env])
			yield `the variable ${value.env} is not set; it is needed for ${name}`;
}

function* missingFiles(spec: McpServerConfig, env: EnvironmentVariables, base: string): Generator<string> {
	if (!isStdio(spec)) return;
	const cwd = resolve(base, spec.cwd ?? ".");
	if (!isFolder(cwd)) yield `cwd: ${cwd} is not a folder`;
	else if (!isProgram(spec.command, env, cwd)) yield `command: ${spec.command} cannot be found and run`;
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

function isProgram(command: string, env: EnvironmentVariables, cwd: string): boolean {
	const places = /[/\\]/.test(command) ? [""] : (env.PATH ?? "").split(delimiter);
	return places.some((place) => {
		const path = resolve(cwd, place, command);
		try {
			accessSync(path, constants.X_OK);
			return statSync(path).isFile();
		} catch {
			return false;
		}
	});
}

/** The values with the variables filled in. */
export function filledIn(
	values: Readonly<Record<string, string | FromEnvironment>> | undefined,
	env: EnvironmentVariables,
): Record<string, string> {
	const entries = Object.entries(values ?? {}).map(([name, value]) => [
		name,
		typeof value === "string" ? value : `${value.prefix ?? ""}${env[value.env] ?? ""}`,
	]);
	return Object.fromEntries(entries) as Record<string, string>;
}
