/** Every command that a document shows exists as it stands there: the CLI parses it, the daemon answers it, or the list says why it cannot be tried here. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type DescMethod, fromJson } from "@bufbuild/protobuf";
import { Command, CommanderError } from "commander";
import { describe, expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { Health } from "../../packages/client/src/gen/grpc/health/v1/health_pb.ts";
import { RuntimeAiService } from "../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import type { Local } from "../../packages/daemon/src/cli/command.ts";
import { addCommands } from "../../packages/daemon/src/cli/commands.ts";
import { parseConfig } from "../../packages/daemon/src/runtime/config/config-file.ts";
import { configSchema } from "../../packages/daemon/src/runtime/config/config-schema.ts";
import { daemonHere, run } from "../cli/in-process.ts";
import { freshFolder } from "../runtime/folder.ts";
import { commandsOf } from "./shell.ts";

const root = join(import.meta.dirname, "../..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const markdownIn = (folder: string): string[] =>
	readdirSync(join(root, folder)).flatMap((file) => (file.endsWith(".md") ? [join(folder, file)] : []));
/** The set-up page of each platform. */
const platformPages = (folder: string): string[] =>
	readdirSync(join(root, folder))
		.map((platform) => `${folder}/${platform}/README.md`)
		.filter((page) => existsSync(join(root, page)));
const pages = [...["README.md", "CONTRIBUTING.md"], ...markdownIn("docs"), ...platformPages("packages/platforms/src")];
const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };

/** Programs that are not part of the project, and why a test does not start them. */
const OTHERS: Record<string, string> = {
	createdb: "needs a PostgreSQL server with passwords",
	createuser: "needs a PostgreSQL server with passwords",
	pg_dump: "is not installed with every PostgreSQL server",
	pg_restore: "is not installed with every PostgreSQL server",
	export: "sets variables for the commands after it",
	git: "makes the input of an example",
	jq: "test/cli/readme.test.ts runs these filters",
	node: "test/cli/readme.test.ts runs the client's example",
	pass: "stands for the reader's password manager",
	pip: "needs the network",
	python3: "the example's path is checked here, test/runtime-client runs it",
};

interface Shown {
	page: string;
	words: string[];
	/** In a block, so it is complete; a command inside a sentence may leave arguments out. */
	whole: boolean;
}

/** Fenced blocks by their language. */
const blocksOf = (text: string): { language: string; body: string }[] =>
	[...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, language, body]) => ({
		language: language!,
		body: body!,
	}));

function shownIn(page: string): Shown[] {
	const text = read(page);
	const isShell = ({ language, body }: { language: string; body: string }) =>
		language === "sh" || (language === "" && /^(nexus|npm) /.test(body));
	const inBlocks = blocksOf(text).filter(isShell);
	const prose = text.replace(/^```[\s\S]*?^```$/gm, "");
	const inline = [...prose.matchAll(/`((?:nexus|npm|npx|curl|(?:[A-Z_]+=\S+ )+npm) [^`]+)`/g)].map(([, code]) => code!);
	return [
		...inBlocks.flatMap(({ body }) => commandsOf(body).map((words) => ({ page, words, whole: true }))),
		...inline.flatMap((code) => commandsOf(code).map((words) => ({ page, words, whole: false }))),
	];
}

const shown = pages.flatMap(shownIn);
const linesOf = (program: string): Shown[] => shown.filter(({ words }) => words[0] === program);
const say = ({ page, words }: Shown, wrong: string): string => `${page}: ${words.join(" ")}: ${wrong}`;

/** The problem with the arguments of `nexus`, according to its definition of commands. */
async function problemOf(args: readonly string[], whole: boolean): Promise<string | undefined> {
	const nexus = new Command("nexus").exitOverride().configureOutput({ writeOut: () => {}, writeErr: () => {} });
	await addCommands(nexus, {} as Local, args);
	withoutActions(nexus);
	try {
		await nexus.parseAsync(args, { from: "user" });
	} catch (cause) {
		if (!(cause instanceof CommanderError)) throw cause;
		const mentioned = ["commander.missingArgument", "commander.missingMandatoryOptionValue"];
		const unfinished = [...mentioned, "commander.optionMissingArgument", "commander.help", "commander.helpDisplayed"];
		if (cause.code === "commander.helpDisplayed" || (!whole && unfinished.includes(cause.code))) return;
		return cause.message;
	}
}

function withoutActions(command: Command): void {
	if (command.commands.length === 0) command.action(() => {});
	command.exitOverride();
	for (const each of command.commands) withoutActions(each);
}

/** The arguments of `nexus` in a command that starts it by npm or npx. */
function argumentsOf([program, ...rest]: readonly string[]): readonly string[] | undefined {
	const behindDashes = rest.includes("--") ? rest.slice(rest.indexOf("--") + 1) : [];
	if (program === "nexus") return rest;
	if (program === "npm" && rest[0] === "start") return ["up", ...behindDashes];
	if (program === "npm" && rest[0] === "run" && rest.includes("nexus")) return behindDashes;
	if (program === "npx" && rest.includes("nexus")) return rest.slice(rest.indexOf("nexus") + 1);
	return undefined;
}

const isPlaceholder = (word: string | undefined): boolean => word === undefined || /^<.*>$/.test(word);

describe("structure: commands in documents", () => {
	it("every nexus command parses with the arguments and options it is shown with", async () => {
		const lines = shown.flatMap((line) => {
			const args = argumentsOf(line.words);
			return args && !isPlaceholder(args[0]) ? [{ line, args }] : [];
		});
		expect(lines.length).toBeGreaterThan(80);
		const problems = await Promise.all(
			lines.map(async ({ line, args }) => {
				const problem = await problemOf(args, line.whole);
				return problem === undefined ? [] : [say(line, problem)];
			}),
		);
		expect(problems.flat()).toEqual([]);
		expect(await problemOf(["send", "hello", "--no-such-option"], false)).toContain("unknown option");
		expect(await problemOf(["no-such-command"], false)).toContain("unknown command");
	});

	it("every npm script and every file that a command names exists", () => {
		const wrong = [...linesOf("npm"), ...linesOf("npx")].filter(({ words: [program, ...rest] }) => {
			const [verb, name] = rest.filter((word) => !word.startsWith("-"));
			if (program === "npx") return !["nexus", "buf"].some((known) => rest.includes(known));
			return verb === "run" ? !(name! in scripts) : !["ci", "start", "test", "install", "init"].includes(verb!);
		});
		expect(wrong.map((line) => say(line, "unknown"))).toEqual([]);
		const files = shown.flatMap((line) =>
			line.words
				.filter((word) => /^(?:examples|test|docs|src|scripts)\//.test(word) && !existsSync(join(root, word)))
				.map((word) => say(line, `${word} does not exist`)),
		);
		expect(files).toEqual([]);
	});

	it("every other program is tried here, or the list says why not", () => {
		const tried = ["nexus", "npm", "npx", "curl", "grpcurl"];
		const programs = new Set(shown.map(({ words: [program] }) => program!));
		expect([...programs].filter((program) => !tried.includes(program) && !(program in OTHERS))).toEqual([]);
		expect(Object.keys(OTHERS).filter((program) => !programs.has(program))).toEqual([]);
	});

	it("every grpcurl call names a method that exists, with a message that it takes", () => {
		const methods = new Map<string, DescMethod>(
			[RuntimeAiService, Health].flatMap((service) =>
				service.methods.map((method) => [`${service.typeName}/${method.name}`, method] as const),
			),
		);
		for (const line of linesOf("grpcurl")) {
			const called = line.words.at(-1)!;
			if (called === "list") continue;
			const method = methods.get(called);
			expect(method, say(line, "unknown")).toBeDefined();
			const data = line.words.indexOf("-d");
			if (data > 0) fromJson(method!.input, JSON.parse(line.words[data + 1]!));
		}
	});

	it("every configuration that a document shows is one", () => {
		const keys = Object.keys(configSchema.shape);
		const wrong = pages.flatMap((page) =>
			blocksOf(read(page)).flatMap(({ language, body }) => {
				if (language !== "yaml") return [];
				const value: unknown = parse(body);
				// Scripts of the scripted model are lists; access rules and workflows have keys of another kind.
				if (Array.isArray(value) || !Object.keys(value as object).every((key) => keys.includes(key))) return [];
				try {
					parseConfig(body, page);
					return [];
				} catch (cause) {
					// Files that an example names are the reader's.
					return (cause as Error).message.split("\n").filter((line) => !line.includes("cannot be read; a path"));
				}
			}),
		);
		expect(wrong).toEqual([]);
	});
});

describe("structure: curl in documents", () => {
	it("every request is answered by the daemon without an error", async () => {
		const data = freshFolder();
		const daemon = await daemonHere(data);
		onTestFinished(() => daemon.close());
		const authorization = `Bearer ${readFileSync(join(data, "token"), "utf8").trim()}`;
		const ask = ({ method, url, body, headers }: ReturnType<typeof requestOf>) =>
			fetch(url, { method, headers: { ...headers, authorization }, body: body ?? null });
		// Long enough for the example that resumes after record 41.
		const answered = await run(["send", "/demo tokens=60 rate=0", "--json", "--data", data]);
		const { run_id } = JSON.parse(answered.out.split("\n")[0]!) as { run_id: string };
		const lines = linesOf("curl");
		expect(lines.length).toBeGreaterThan(5);
		for (const line of lines) {
			const request = requestOf(line.words);
			const url = request.url.replace(/^(\$API|\$NEXUS_URL|http:\/\/127\.0\.0\.1:7777)/, daemon.url);
			// At the demo's usual pace the answer would take seconds.
			const body = request.body?.replace(/"hello"/i, '"/demo tokens=3 rate=0"');
			const response = await ask({ ...request, url: url.replace("run_…", run_id), body });
			expect([response.status, say(line, "")]).toEqual([expect.toSatisfy((status) => status < 300), say(line, "")]);
			await response.body?.cancel();
		}
	});
});

/** The request that curl would send. */
function requestOf([, ...words]: readonly string[]) {
	const request = {
		method: "GET",
		url: "",
		body: undefined as string | undefined,
		headers: {} as Record<string, string>,
	};
	for (let at = 0; at < words.length; at++) {
		const word = words[at]!;
		if (word === "-X") request.method = words[++at]!;
		else if (word === "-d") Object.assign(request, { method: "POST", body: words[++at] });
		else if (word === "-H") {
			const [, name, value] = /^([\w-]+): (.*)$/.exec(words[++at]!) ?? [];
			if (name && !/^authorization$/i.test(name)) request.headers[name] = value!;
		} else if (!word.startsWith("-")) request.url = word;
	}
	return request;
}
