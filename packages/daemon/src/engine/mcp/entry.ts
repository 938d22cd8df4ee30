/** Checks the `mcp:` section of `nexus.yaml`. Every start reads this file: it loads no library. */

import { accessSync, constants, statSync } from "node:fs";
import { delimiter, resolve } from "node:path";
import { urlProblem } from "@nexus-stream/adapter/net/address-guard";
import type { EnvironmentVariables } from "../entry.ts";
import { isStdio, type McpConfig, type McpServerConfig, SERVER_NAME, type StdioServer } from "./port.ts";

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
export function filledIn(values: StdioServer["env"], env: EnvironmentVariables): Record<string, string> {
	const entries = Object.entries(values ?? {}).map(([name, value]) => [
		name,
		typeof value === "string" ? value : `${value.prefix ?? ""}${env[value.env] ?? ""}`,
	]);
	return Object.fromEntries(entries) as Record<string, string>;
}
