/** docs/runtime-client.md tells the truth: what it shows works offline, with what is published. */

import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { STREAM_PROCEDURES } from "../../packages/protocol/src/protocol.ts";
import { linkPackages } from "../children.ts";
import { daemonHere } from "../cli/in-process.ts";
import { freshFolder } from "../runtime/folder.ts";
import { buildDescriptors, itInPython, readInPython } from "./python.ts";

const page = readFileSync(new URL("../../docs/runtime-client.md", import.meta.url), "utf8");
const here = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** The fenced block with this text in it. */
function block(part: string): string {
	const found = page.split("```").find((text, index) => index % 2 === 1 && text.includes(part));
	if (found === undefined) throw new Error(`docs/runtime-client.md has no block with ${part}`);
	return found.slice(found.indexOf("\n") + 1);
}

async function start() {
	const folder = freshFolder();
	const daemon = await daemonHere(join(folder, "data"));
	onTestFinished(() => daemon.close());
	const token = readFileSync(join(folder, "data/token"), "utf8").trim();
	return { folder, daemon, token, env: { PATH: process.env.PATH, NEXUS_URL: daemon.url, NEXUS_TOKEN: token } };
}

it("K-STREAM-001: the client in Python knows how every procedure closes", () => {
	const source = readFileSync(here("examples/python/nexus_runtime.py"), "utf8");
	const known = [...source.matchAll(/^ {4}"([\w.]+\/\w+)": "([ABCD])",$/gm)].map(([, name, mode]) => `${name} ${mode}`);
	const table = Object.entries(STREAM_PROCEDURES).map(
		([name, { closes }]) => `${name.replace(/^nexus\.runtime\.v1\./, "")} ${closes}`,
	);
	expect(known.toSorted()).toEqual(table.toSorted());
});

it("shows a call with nothing but HTTP", async () => {
	const { daemon, token } = await start();
	const shown = block("curl -s");
	const path = /\$NEXUS_URL(\S+)"/.exec(shown)![1]!;
	const body = /-d '([^']+)'/.exec(shown)![1]!;
	const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
	const response = await fetch(daemon.url + path, { method: "POST", headers, body });
	expect(response.status).toBe(200);
	expect(await response.json()).toMatchObject({ text: expect.stringMatching(/\S/), demo: true });
});

it("shows a program in TypeScript", async () => {
	const { folder, env } = await start();
	linkPackages(folder);
	writeFileSync(join(folder, "package.json"), '{"type":"module"}');
	// At the demonstration's own pace it would take some seconds.
	writeFileSync(join(folder, "story.ts"), block("// story.ts").replace("Tell me a story", "/demo tokens=30 rate=0"));
	const { stdout, stderr } = await promisify(execFile)(process.execPath, ["--conditions=nexus-source", "story.ts"], {
		cwd: folder,
		env,
	});
	expect(stderr).toBe("");
	expect(stdout.split(/\s+/).length).toBeGreaterThan(10);
});

itInPython("Z12: shows a client in Python that also asks for the daemon's health", async () => {
	const { folder, daemon, token } = await start();
	const descriptors = join(folder, "runtime.binpb");
	buildDescriptors(descriptors);
	const where = { grpc: daemon.grpc!, token, descriptors };
	const health = readInPython(["health"], where);
	expect(await health.ended).toBe(true);
	expect(health.lines).toEqual([{ status: "SERVING" }]);
	expect(page).toContain('python3 nexus_runtime.py text "Tell me a story"');
});
