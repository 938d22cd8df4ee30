/** The published package works as the sources do. */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
	copyFileSync,
	existsSync,
	globSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	rmSync,
	statSync,
	writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { Health } from "../../packages/client/src/gen/grpc/health/v1/health_pb.ts";
import { bundle, PUBLISHED } from "../../scripts/bundle.ts";
import { freshFolder } from "../runtime/folder.ts";
import { until } from "../until.ts";
import { run, up } from "./nexus.ts";

/** The build goes here and not into the packages: other tests read the page from there. Libraries are found in the folder above. */
const base = fileURLToPath(new URL("../../.vite", import.meta.url));
const packages = fileURLToPath(new URL("../../packages", import.meta.url));
const installed = (name: string, path = ""): string => join(base, "node_modules", name, path);
const out = installed("nexus-stream", "dist");
const main = join(out, "cli/main.js");

interface Manifest {
	name: string;
	version: string;
	exports: Record<string, { "nexus-source": string; default: string }>;
	dependencies: Record<string, string>;
}
const manifest = (name: string): Manifest => JSON.parse(readFileSync(join(packages, name, "package.json"), "utf8"));

/** `npm pack` of a package, unpacked where `npm install` would put it. */
async function install(name: string): Promise<void> {
	const folder = join(base, "packages", name);
	copyFileSync(join(packages, name, "package.json"), join(folder, "package.json"));
	const packed = await promisify(execFile)("npm", ["pack", "--json", "--pack-destination", base], { cwd: folder });
	const [{ filename }] = JSON.parse(packed.stdout) as [{ filename: string }];
	const target = installed(manifest(name).name);
	mkdirSync(target, { recursive: true });
	await promisify(execFile)("tar", ["-xzf", join(base, filename), "-C", target, "--strip-components=1"]);
}

/** Node's own modules that took most of an idle daemon's memory. */
const HEAVY = ["internal/deps/undici/undici", "internal/http2/core", "tls", "https"];
/** Includes the protocol, which is a separate package. */
const FILES_MAX = 39;

/** A daemon that writes down what it has loaded whenever it is asked. */
async function upWatched(folder: string, args: string[]) {
	const report = join(folder, "loaded.json");
	const watch = join(folder, "watch.mjs");
	writeFileSync(
		watch,
		`const { registerHooks } = process.getBuiltinModule("node:module");
const { renameSync, writeFileSync } = process.getBuiltinModule("node:fs");
const files = [];
registerHooks({
	load(url, context, next) {
		if (url.startsWith("file:") && url !== import.meta.url) files.push(url);
		return next(url, context);
	},
});
process.on("SIGUSR2", () => {
	const builtins = process.moduleLoadList.map((each) => each.replace("NativeModule ", ""));
	writeFileSync(${JSON.stringify(`${report}.part`)}, JSON.stringify({ builtins, files }));
	renameSync(${JSON.stringify(`${report}.part`)}, ${JSON.stringify(report)});
});`,
	);
	const daemon = await up(join(folder, "data"), args, { main, env: { NODE_OPTIONS: `--import=${watch}` } });
	const loaded = async () => {
		rmSync(report, { force: true });
		daemon.child.kill("SIGUSR2");
		await until("what is loaded", () => existsSync(report));
		return JSON.parse(readFileSync(report, "utf8")) as { builtins: string[]; files: string[] };
	};
	return Object.assign(daemon, { loaded });
}

const TOKEN = "a-token-of-the-build-0123456789";

beforeAll(async () => {
	rmSync(base, { recursive: true, force: true });
	await bundle(base);
	await Promise.all(PUBLISHED.map(install));
});
afterAll(() => rmSync(base, { recursive: true, force: true }));

/** Runs the body of a function in a process that sees the packages as a user does, and gives what it returns. */
async function inNode(body: string): Promise<unknown> {
	const file = join(base, `${randomUUID()}.mjs`);
	writeFileSync(file, `console.log(JSON.stringify(await (async () => {${body}})()));`);
	return JSON.parse((await promisify(execFile)(process.execPath, [file])).stdout);
}

describe("the build", () => {
	it("starts, answers, counts and stops", async () => {
		const folder = freshFolder();
		const data = join(folder, "data");
		const daemon = await up(data, [], { main });
		const sent = await run(["send", "/demo tokens=20 rate=0 tools=1", "--data", data], { main });
		expect([sent.code, sent.out]).toEqual([0, expect.stringMatching(/^Demo engine: .*\n$/s)]);
		const token = readFileSync(join(data, "token"), "utf8").trim();
		const metrics = await fetch(`${daemon.ready.url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
		expect(await metrics.text()).toContain('nexus_runs_total{status="completed"} 1');
		expect((await run(["doctor", "--data", data, "--port", "0"], { main })).out).toMatch(/^ok {4}engine {4}demo/m);
		expect((await daemon.end("SIGTERM")).code).toBe(0);
	});

	it("loads no separate library files for a start, and nothing of Node's that costs megabytes", async () => {
		const folder = freshFolder();
		writeFileSync(join(folder, "nexus.yaml"), "log: { level: warn }\n");
		const daemon = await upWatched(folder, ["--config", join(folder, "nexus.yaml")]);
		const idle = await daemon.loaded();
		expect(idle.builtins).toEqual(expect.arrayContaining(["http", "sqlite"]));
		for (const heavy of HEAVY) expect(idle.builtins, heavy).not.toContain(heavy);
		const ours = /\/node_modules\/(?:@nexus-stream\/|nexus-stream\/)(?!.*\/node_modules\/)/;
		expect(idle.files.filter((file) => file.includes("/node_modules/") && !ours.test(file))).toEqual([]);
		// Each file costs a start about half a millisecond.
		expect(idle.files.length).toBeLessThanOrEqual(FILES_MAX);
		// The watch sees what is loaded later.
		const probe = createClient(Health, createGrpcTransport({ baseUrl: daemon.ready.grpc }));
		expect((await probe.check({})).status).toBe(1);
		expect((await daemon.loaded()).builtins).toContain("internal/http2/core");
		await fetch(`${daemon.ready.url}/healthz`);
		expect((await daemon.loaded()).builtins).toContain("internal/deps/undici/undici");
	});

	it("answers the first requests, all at once, although they load what answers them", async () => {
		const folder = freshFolder();
		const daemon = await up(join(folder, "data"), ["--token", TOKEN], { main });
		const { url } = daemon.ready;
		const headers = { authorization: `Bearer ${TOKEN}` };
		const opened = (): Promise<string> =>
			new Promise((resolve, reject) => {
				const socket = new WebSocket(`${url.replace("http", "ws")}/v1/ws`, { headers });
				socket.on("error", reject);
				socket.on("open", () => {
					socket.close();
					resolve("open");
				});
			});
		const answers = await Promise.all([
			...["/healthz", "/openapi.json", "/v1/runs", "/v1/nothing"].map(async (path) => {
				const answer = await fetch(url + path, { headers });
				return [answer.status, Object.keys((await answer.json()) as object)[0]];
			}),
			...[opened(), opened()],
		]);
		expect(answers).toEqual([[200, "status"], [200, "openapi"], [200, "runs"], [404, "error"], "open", "open"]);
		expect((await daemon.end("SIGTERM")).code).toBe(0);
	});

	it("has every adapter, and the lab's platforms", async () => {
		const info = await run(["telegram", "info"], { main: join(out, "platforms/main.js") });
		expect(JSON.parse(info.out)).toMatchObject({ channel: "telegram", protocol: 1 });
		const lab = await run([], { main: join(out, "lab/main.js"), input: "" });
		expect(Object.keys((JSON.parse(lab.out) as { channels: object }).channels)).toEqual([
			...["telegram", "discord", "slack", "whatsapp", "imessage", "signal", "sms", "gmail", "nostr"],
		]);
		// The published files may only load what is installed with them.
		const chunks = readdirSync(join(out, "chunks")).map((name) => readFileSync(join(out, "chunks", name), "utf8"));
		const loaded = chunks.flatMap((text) => [...text.matchAll(/\b(?:from|import\()\s*"([^".][^"]*)"/g)]);
		const names = loaded.map(([, name = ""]) => name.match(/^(?:@[^/]+\/)?[^/]+/)?.[0] ?? "");
		const { dependencies } = manifest("daemon");
		// In the text of a library there may be what only looks like an import.
		const imported = names.filter(
			(name) => /^@?\w[\w./-]+$/.test(name) && existsSync(join(base, "../node_modules", name)),
		);
		expect(imported.filter((name) => !(name in dependencies))).toEqual([]);
	});

	it.each(PUBLISHED)("%s has a built file and a source for every export", (folder) => {
		const { name, exports } = manifest(folder);
		for (const { default: built, "nexus-source": source } of Object.values(exports)) {
			const sources = globSync(join(packages, folder, source.replace("*", "**/*")));
			expect(sources.length, source).toBeGreaterThan(0);
			const [before = "", after = ""] = source.slice(2).split("*");
			const stars = sources.map((file) =>
				relative(join(packages, folder), file).slice(before.length, -after.length || undefined),
			);
			for (const star of stars) {
				const file = installed(name, built.replace("*", star));
				expect(existsSync(file), file).toBe(true);
			}
		}
	});

	/** The packages that a file and its chunks import: what is not for browsers must not be among them. */
	function browserPackages(entry: string): Set<string> {
		const found = new Set([entry]);
		const packages = new Set<string>();
		for (const file of found) {
			const text = readFileSync(file, "utf8");
			const imports = [...text.matchAll(/\b(?:from|import)\s*\(?\s*"([^"]+)"/g)].map(([, name]) => name!);
			// How the build asks for Node's modules.
			expect(text, file).not.toContain("getBuiltinModule");
			for (const name of imports) {
				if (name.startsWith(".")) found.add(join(dirname(file), name));
				else packages.add(name);
			}
		}
		return packages;
	}

	it("has a client of the runtime contract that a browser can load", async () => {
		const packages = [
			...browserPackages(installed("@nexus-stream/client", "dist/runtime/runtime-client.js")),
		].toSorted();
		expect(
			packages.filter(
				(name) =>
					!/^@bufbuild\/protobuf\b|^@connectrpc\/connect(?:-web)?$|^@nexus-stream\/protocol|^eventsource-parser/.test(
						name,
					),
			),
		).toEqual([]);
		const refused = await inNode(`
			const { ConnectError, createRuntime } = await import("@nexus-stream/client/runtime");
			const call = createRuntime({ url: "http://127.0.0.1:1" }).audit.getRuntimeHealth({});
			return await call.catch((cause) => cause instanceof ConnectError);`);
		expect(refused).toBe(true);
	});

	it("has a client that a browser can load, and that knows the daemon's errors", async () => {
		const packages = [...browserPackages(installed("@nexus-stream/client", "dist/client.js"))];
		expect(packages.filter((name) => !/^@nexus-stream\/protocol|^eventsource-parser/.test(name))).toEqual([]);
		const refused = await inNode(`
			const { createClient } = await import("@nexus-stream/client");
			const { NexusError } = await import("@nexus-stream/protocol");
			const away = createClient({ url: "http://127.0.0.1:1", fetch: () => Promise.reject(new Error("away")) });
			return await away.api.runs().catch((cause) => cause instanceof NexusError);`);
		expect(refused).toBe(true);
	});

	it("leaves the command executable: a global install of a checkout is a link to it", () => {
		expect(statSync(main).mode & 0o777).toBe(0o755);
	});

	it("says to an older Node which line brings a newer one", async () => {
		const older = join(freshFolder(), "older.mjs");
		writeFileSync(older, 'Object.defineProperty(process, "versions", { value: { node: "22.9.0" } });');
		const args = ["send", "what's a log?", "--session", "notes"];
		const { code, err } = await run(args, { main, env: { NODE_OPTIONS: `--import=${older}` } });
		expect(code).toBe(78);
		expect(err).toContain(`Nexus needs Node 24 or newer; this is ${process.version}.`);
		expect(err).toContain("\n  npx -y -p node@24 nexus send 'what'\\''s a log?' --session notes\n");
	});

	it("has one class of errors behind every door, and knows its version", async () => {
		const found = await inNode(`
			const index = await import("nexus-stream");
			const { NexusError } = await import("@nexus-stream/protocol");
			const kit = await import("@nexus-stream/adapter");
			return [index.NexusError === NexusError, typeof index.startDaemon, typeof kit.serve, typeof kit.PlatformError];`);
		expect(found).toEqual([true, "function", "function", "function"]);
		const { version } = manifest("daemon");
		expect((await run(["--version"], { main })).out).toBe(`${version}\n`);
	});
});
