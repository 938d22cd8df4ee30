/** The examples of the README and of the pages for users work as they stand. */

import { execFile, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { runInNewContext } from "node:vm";
import type { Engine } from "@nexus-stream/protocol/engine";
import { describe, expect, it, onTestFinished } from "vitest";
import { DIRECTIVE_KEYS } from "../../packages/daemon/src/engine/demo/directive.ts";
import { startDaemon } from "../../packages/daemon/src/runtime/runtime.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { linkPackages } from "../children.ts";
import { freshFolder } from "../runtime/folder.ts";
import { daemonHere, run } from "./in-process.ts";
import { up } from "./nexus.ts";

const pageOf = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

const PAGES = ["README.md", "docs/engines.md", "docs/client.md", "docs/http-api.md", "docs/cli.md"];

const hasJq = spawnSync("jq", ["--version"]).status === 0;

/** The first fenced block of the pages that begins with this line. */
const block = (firstLine: string): string => {
	const blocks = PAGES.flatMap((path) => pageOf(path).split("```"));
	const found = blocks.find((text) => text.split("\n")[1] === firstLine);
	if (found === undefined) throw new Error(`no page has a block that begins with ${firstLine}`);
	return found.split("\n").slice(1).join("\n");
};

describe("README and pages for users", () => {
	it("the README fits 7 kB", () => {
		expect(Buffer.byteLength(pageOf("README.md"))).toBeLessThanOrEqual(7_000);
	});

	it.each(Object.entries(DIRECTIVE_KEYS))("list the directive %s", (name, { what, otherwise }) => {
		expect(pageOf("docs/engines.md")).toContain(`| \`${name}\` | ${what} | ${otherwise} |`);
	});

	it("show an agent that works", async () => {
		const folder = freshFolder();
		writeFileSync(join(folder, "my-agent.mts"), block("// my-agent.mts"));
		writeFileSync(join(folder, "nexus.yaml"), block("# nexus.yaml"));
		writeFileSync(join(folder, "package.json"), AS_INITIALISED);
		// A process, because Node itself has to be able to load it.
		await up(join(folder, "data"), [], { cwd: folder });
		const { code, out } = await run(["send", "one two"], { cwd: folder, env: { NEXUS_DATA: join(folder, "data") } });
		expect([code, out]).toEqual([0, "You said: one two\n"]);
	});

	it("P3.10: show a client that works and prints no hidden message", async () => {
		const { folder, env } = await published(orchestrated);
		writeFileSync(join(folder, "ask.mts"), block("// ask.mts"));
		const asked = promisify(execFile)(process.execPath, ["--conditions=nexus-source", "ask.mts"], { cwd: folder, env });
		const { stdout } = await asked;
		const { out } = await run(["runs", "--session", "notes", "--json", "--data", join(folder, "data")]);
		const { messages } = JSON.parse(out) as { messages: { role: string; text: string; visible?: false }[] };
		const answers = messages.filter(({ role }) => role === "assistant");
		expect(answers.map(({ visible = true }) => visible)).toEqual([false, true, true]);
		expect(stdout).toBe("Hello.\n\nHow are you?");
	});

	it("the HTTP API page names only endpoints that are served, and all of them", async () => {
		const page = pageOf("docs/http-api.md");
		const daemon = await daemonHere(freshFolder());
		onTestFinished(() => daemon.close());
		const { paths } = (await (await fetch(`${daemon.url}/openapi.json`)).json()) as {
			paths: Record<string, object>;
		};
		const named = [...page.matchAll(/`(GET|POST|PUT|DELETE) (\/v1\/[^` ]*)/g)].map(([, method, path]) => [
			method!.toLowerCase(),
			path!,
		]);
		expect(named.length).toBeGreaterThan(8);
		for (const [method, path] of named) expect(Object.keys(paths[path!] ?? {}), `${method} ${path}`).toContain(method);
		const words = new Set(page.split(/[\s`?]+/));
		expect(Object.keys(paths).filter((path) => !words.has(path))).toEqual([]);
	});

	it.skipIf(!hasJq)("P3.10: print only the visible text with jq, here and in every --help", async () => {
		const { frames, text, json } = await answered();
		const programs = [pageOf("docs/cli.md"), ...(await helps())].flatMap((page) => [
			...page.matchAll(/\| jq (-\w+)[^']*'([^']+)'/g),
		]);
		expect(programs.length).toBeGreaterThan(2);
		for (const [, flags, program] of programs) {
			const input = program!.includes("frame") || program!.includes(".type") ? frames : json;
			const { status, stdout, stderr } = spawnSync("jq", [flags!, program!], { input, encoding: "utf8" });
			expect([status, stderr]).toEqual([0, ""]);
			if (/payload|text/.test(program!)) expect(stdout.trimEnd(), program).toBe(text.trimEnd());
			else expect(stdout, program).toMatch(/^\["reasoning",/m);
		}
	});

	it("P3.10: show only the visible text with an EventSource", async () => {
		const { frames, text } = await answered();
		const listeners = new Map<string, (event: { data: string }) => void>();
		let closed = 0;
		class EventSource {
			addEventListener(type: string, listener: (event: { data: string }) => void) {
				listeners.set(type, listener);
			}
			close() {
				closed++;
			}
		}
		const shown: string[] = [];
		const show = (words: string) => void shown.push(words);
		const program = block("const texts = new Set();");
		runInNewContext(program, { EventSource, runId: "run_1", show });
		for (const data of frames.trim().split("\n")) listeners.get((JSON.parse(data) as { type: string }).type)!({ data });
		expect([shown.join(""), closed]).toEqual([text, 1]);
	});
});

/** As `npm init -y` writes it. */
const AS_INITIALISED = JSON.stringify({ name: "mine", version: "1.0.0", main: "index.js", type: "commonjs" });

/** Says something that is not for people who chat, before what is. */
const orchestrated: Engine = {
	name: "orchestrated",
	async *run() {
		yield { type: "message", agent: "lead", visible: false };
		yield { type: "text", agent: "lead", delta: "HIDDEN: let the writer do it." };
		for (const delta of ["Hello.", "How are you?"]) {
			yield { type: "message", agent: "writer" };
			yield { type: "text", agent: "writer", delta };
		}
		yield { type: "reasoning", agent: "writer", delta: "I wonder." };
	},
};

/** A daemon, and next to it a folder where `npm install` has put the package. */
async function published(engine: Engine | "demo" = "demo") {
	const folder = freshFolder();
	const daemon = await startDaemon({ data: join(folder, "data"), port: 0, logger: silentLog, engine });
	onTestFinished(() => daemon.close());
	linkPackages(folder);
	writeFileSync(join(folder, "package.json"), AS_INITIALISED);
	const token = readFileSync(join(folder, "data/token"), "utf8").trim();
	return { folder, daemon, env: { PATH: process.env.PATH, NEXUS_URL: daemon.url, NEXUS_TOKEN: token } };
}

/** A run with reasoning, a tool and a card: its frames, its text, and its row of `runs --json`. */
async function answered(): Promise<{ frames: string; text: string; json: string }> {
	const data = freshFolder();
	const daemon = await daemonHere(data);
	onTestFinished(() => daemon.close());
	const sent = await run(["send", "/demo tokens=40 rate=0 reasoning=1 tools=1 cards=1", "--json", "--data", data]);
	const { run_id } = JSON.parse(sent.out.split("\n")[0]!) as { run_id: string };
	const { out: json } = await run(["runs", run_id, "--json", "--data", data]);
	const { messages } = JSON.parse(json) as { messages: { role: string; text: string }[] };
	const text = messages.flatMap((message) => (message.role === "assistant" ? [message.text] : [])).join("");
	expect(text).not.toBe("");
	// An orchestrator's words, in addition to the answer.
	const stream = { message_id: "hidden", run_id, ts: 1 };
	const hidden = [
		{ type: "stream.begin", ...stream, modality: "text", content_type: "text/markdown", visible: false },
		{ type: "stream.chunk", ...stream, seq_no: 1, payload: "HIDDEN" },
	];
	const told = JSON.parse(json) as { messages: object[] };
	told.messages.push({ role: "assistant", text: "HIDDEN", visible: false });
	const frames = `${hidden.map((frame) => JSON.stringify(frame)).join("\n")}\n${sent.out}`;
	return { frames, text, json: JSON.stringify(told) };
}

const COMMANDS = "up send tail replay runs sessions inbox pair deliver deliveries doctor";

const helps = () => Promise.all(COMMANDS.split(" ").map(async (command) => (await run([command, "--help"])).out));
