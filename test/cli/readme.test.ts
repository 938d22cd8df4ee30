/** The README tells the truth where a program can check it. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { DIRECTIVE_KEYS } from "../../src/engine/demo/directive.ts";
import { freshFolder } from "../runtime/folder.ts";
import { daemonHere, run } from "./in-process.ts";
import { up } from "./nexus.ts";

const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");

/** The fenced block that follows a first line. */
const block = (firstLine: string): string => {
	const found = readme.split("```").find((text) => text.split("\n")[1] === firstLine);
	if (found === undefined) throw new Error(`README.md has no block that begins with ${firstLine}`);
	return found.split("\n").slice(1).join("\n");
};

describe("README.md", () => {
	it.each(Object.entries(DIRECTIVE_KEYS))("lists the directive %s", (name, { what, otherwise }) => {
		expect(readme).toContain(`| \`${name}\` | ${what} | ${otherwise} |`);
	});

	it("shows an agent that works", async () => {
		const folder = freshFolder();
		writeFileSync(join(folder, "my-agent.ts"), block("// my-agent.ts"));
		writeFileSync(join(folder, "nexus.yaml"), block("# nexus.yaml"));
		// A process, because Node itself has to be able to load it.
		const daemon = await up(join(folder, "data"), [], { cwd: folder });
		onTestFinished(async () => void (await daemon.end("SIGKILL")));
		const { code, out } = await run(["send", "one two"], { cwd: folder, env: { NEXUS_DATA: join(folder, "data") } });
		expect([code, out]).toEqual([0, "You said: one two\n"]);
	});

	it("names only endpoints that are served", async () => {
		const daemon = await daemonHere(freshFolder());
		onTestFinished(() => daemon.close());
		const { paths } = (await (await fetch(`${daemon.url}/openapi.json`)).json()) as {
			paths: Record<string, object>;
		};
		const named = [...readme.matchAll(/`(GET|POST) (\/v1\/[^` ]*)/g)].map(([, method, path]) => [
			method!.toLowerCase(),
			path!,
		]);
		expect(named.length).toBeGreaterThan(8);
		for (const [method, path] of named) expect(Object.keys(paths[path!] ?? {}), `${method} ${path}`).toContain(method);
	});
});
