/** What is published works as the sources do. */

import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { WebSocket } from "ws";
import { bundle } from "../../scripts/bundle.ts";
import { Health } from "../../src/gen/grpc/health/v1/health_pb.ts";
import { freshFolder } from "../runtime/folder.ts";
import { until } from "../until.ts";
import { run, up } from "./nexus.ts";

// As deep in the package as `dist`, and not `dist` itself: other tests read the page from there.
const out = fileURLToPath(new URL("../../.vite", import.meta.url));
const main = join(out, "cli/main.js");

/** Of Node's own modules, those that took most of an idle daemon's memory. */
const HEAVY = ["internal/deps/undici/undici", "internal/http2/core", "tls", "https"];
const FILES_MAX = 40;

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
	onTestFinished(async () => void (await daemon.end("SIGKILL")));
	const loaded = async () => {
		rmSync(report, { force: true });
		daemon.child.kill("SIGUSR2");
		await until("what is loaded", () => existsSync(report));
		return JSON.parse(readFileSync(report, "utf8")) as { builtins: string[]; files: string[] };
	};
	return Object.assign(daemon, { loaded });
}

const TOKEN = "a-token-of-the-build-0123456789";

beforeAll(() => bundle(out));
afterAll(() => rmSync(out, { recursive: true, force: true }));

describe("the build", () => {
	it("starts, answers, counts and stops", async () => {
		const folder = freshFolder();
		const data = join(folder, "data");
		const daemon = await up(data, [], { main });
		onTestFinished(async () => void (await daemon.end("SIGKILL")));
		const sent = await run(["send", "/demo tokens=20 rate=0 tools=1", "--data", data], { main });
		expect([sent.code, sent.out]).toEqual([0, expect.stringMatching(/^Demo engine: .*\n$/s)]);
		const token = readFileSync(join(data, "token"), "utf8").trim();
		const metrics = await fetch(`${daemon.ready.url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
		expect(await metrics.text()).toContain('nexus_runs_total{status="completed"} 1');
		expect((await run(["doctor", "--data", data, "--port", "0"], { main })).out).toMatch(/^ok {4}engine {4}demo/m);
		expect((await daemon.end("SIGTERM")).code).toBe(0);
	});

	it("loads for a start no library of its own files, and nothing of Node's that costs megabytes", async () => {
		const folder = freshFolder();
		writeFileSync(join(folder, "nexus.yaml"), "log: { level: warn }\n");
		const daemon = await upWatched(folder, ["--config", join(folder, "nexus.yaml")]);
		const idle = await daemon.loaded();
		expect(idle.builtins).toEqual(expect.arrayContaining(["http", "sqlite"]));
		for (const heavy of HEAVY) expect(idle.builtins, heavy).not.toContain(heavy);
		expect(idle.files.filter((file) => file.includes("/node_modules/"))).toEqual([]);
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
		onTestFinished(async () => void (await daemon.end("SIGKILL")));
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
		const info = await run(["telegram", "info"], { main: join(out, "adapter/main.js") });
		expect(JSON.parse(info.out)).toMatchObject({ channel: "telegram", protocol: 1 });
		const lab = await run([], { main: join(out, "fakes/main.js"), input: "" });
		expect(Object.keys((JSON.parse(lab.out) as { channels: object }).channels)).toEqual([
			...["telegram", "discord", "slack", "whatsapp", "imessage", "signal", "sms", "gmail", "nostr"],
		]);
		// What is published may only load what is installed with it.
		const chunks = readdirSync(join(out, "chunks")).map((name) => readFileSync(join(out, "chunks", name), "utf8"));
		const { devDependencies } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
			devDependencies: object;
		};
		const loaded = chunks.flatMap((text) => [...text.matchAll(/\b(?:from|import\()\s*"([^".][^"]*)"/g)]);
		const packages = loaded.map(([, name = ""]) => name.match(/^(?:@[^/]+\/)?[^/]+/)?.[0] ?? "");
		expect(packages.filter((name) => name in devDependencies)).toEqual([]);
	});

	it("has a file behind every door of the package", () => {
		const { exports } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
			exports: Record<string, { "nexus-source": string; default: string }>;
		};
		for (const { default: built, "nexus-source": source } of Object.values(exports)) {
			expect(existsSync(join(out, built.replace("./dist/", "")))).toBe(true);
			expect(existsSync(new URL(`../../${source}`, import.meta.url))).toBe(true);
		}
		expect(Object.keys(exports)).toEqual(expect.arrayContaining(["./adapter", "./client"]));
	});

	/** The packages that a file and its chunks import: what is not for browsers must not be among them. */
	function browserPackages(entry: string): Set<string> {
		const found = new Set([join(out, entry)]);
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
		const packages = [...browserPackages("runtime-client/runtime-client.js")].toSorted();
		expect(packages.filter((name) => !/^@bufbuild\/protobuf\b|^@connectrpc\/connect(?:-web)?$/.test(name))).toEqual([]);
		const built = (await import(
			join(out, "runtime-client/runtime-client.js")
		)) as typeof import("../../src/runtime-client/runtime-client.ts");
		const runtime = built.createRuntime({ url: "http://127.0.0.1:1" });
		await expect(runtime.audit.getRuntimeHealth({})).rejects.toBeInstanceOf(built.ConnectError);
	});

	it("has a client that a browser can load, and that knows the daemon's errors", async () => {
		expect([...browserPackages("client/client.js")]).toEqual([]);
		const { createClient } = (await import(
			join(out, "client/client.js")
		)) as typeof import("../../src/client/client.ts");
		const { NexusError } = (await import(join(out, "protocol/protocol.js"))) as { NexusError: unknown };
		const away = createClient({ url: "http://127.0.0.1:1", fetch: () => Promise.reject(new Error("away")) });
		await expect(away.api.runs()).rejects.toBeInstanceOf(NexusError);
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
		const index = (await import(join(out, "index.js"))) as { NexusError: unknown; startDaemon: unknown };
		const protocol = (await import(join(out, "protocol/protocol.js"))) as { NexusError: unknown };
		expect(index.NexusError).toBe(protocol.NexusError);
		expect(index.startDaemon).toBeTypeOf("function");
		const kit = (await import(join(out, "adapter/kit/kit.js"))) as { serve: unknown; PlatformError: unknown };
		expect([kit.serve, kit.PlatformError]).toEqual([expect.any(Function), expect.any(Function)]);
		const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
			version: string;
		};
		expect((await run(["--version"], { main })).out).toBe(`${version}\n`);
	});
});
