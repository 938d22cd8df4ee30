/** The commands against a daemon with the demo engine. */

import { chmodSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import type { Daemon } from "../../packages/daemon/src/runtime/runtime.ts";
import {
	checksumOf,
	crc32,
	createVerifier,
	decodeFrame,
	type EndFrame,
	ERROR_TABLE,
	type Frame,
} from "../../packages/protocol/src/protocol.ts";
import { waitFor } from "../edge/rig.ts";
import { freshFolder, removeFolder } from "../runtime/folder.ts";
import { serving } from "../serving.ts";
import { daemonHere, jsonLines, nexus, run } from "./in-process.ts";

let folder: string;
let data: string;
let daemon: Daemon;

beforeAll(async () => {
	folder = mkdtempSync(join(tmpdir(), "nexus-cli-"));
	data = join(folder, "data");
	daemon = await daemonHere(data);
});

afterAll(async () => {
	await daemon.close();
	removeFolder(folder);
});

const on = (...args: string[]) => run([...args, "--data", data]);
const framesOf = (out: string): Frame[] => out.trim().split("\n").map(decodeFrame);
const runIdOf = (out: string): string => (framesOf(out)[0] as { run_id: string }).run_id;

const violations = (frames: Frame[]) => {
	const verifier = createVerifier();
	return [...frames.map((frame) => verifier.push(frame)), verifier.finish()].filter(Boolean);
};

/** Frames as the stream of events brings them. */
const asEvents = (frames: readonly Frame[]): string =>
	frames.map((frame, n) => `id: ${n + 1}\nevent: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`).join("");

/** The frames of a run with one message; each chunk has its time. */
function framesOfRun(
	runId: string,
	chunks: readonly (readonly [text: string, ts: number])[],
	end: Partial<EndFrame> = {},
): Frame[] {
	const message_id = `${runId}.1`;
	const ids = { message_id, run_id: runId, trace_id: "0".repeat(32), correlation_group: runId };
	const checksum = checksumOf(crc32(chunks.map(([text]) => text).join("")));
	const count = { total_chunks: chunks.length, usage: { input: 1, output: chunks.length } };
	const chunk = { type: "stream.chunk", message_id, is_partial: true } as const;
	return [
		{ type: "stream.begin", ...ids, modality: "text", content_type: "text/markdown", ts: 1 },
		...chunks.map(([payload, ts], n) => ({ ...chunk, seq_no: n + 1, payload, ts })),
		{
			type: "stream.end",
			message_id,
			checksum,
			...count,
			final: true,
			reason: "completed",
			ts: chunks.at(-1)![1],
			...end,
		},
	];
}

describe("nexus send", () => {
	it("prints the answer and nothing else on stdout, plain when piped", async () => {
		const { code, out, err } = await on("send", "/demo tokens=40 rate=0 tools=1 cards=1 reasoning=1");
		expect(code).toBe(0);
		expect(out).toMatch(/^Demo engine: .*\n$/s);
		expect(out).not.toContain("Demo reasoning");
		expect(err).toMatch(/^\[tool\] search started$/m);
		expect(err).toMatch(/^\[tool\] search completed \(\d+ ms\)/m);
		expect(err).toMatch(/^\[card\] \w/m);
		expect(out + err).not.toContain("\x1b");
	});

	it("shows reasoning only when asked (I8)", async () => {
		const { out } = await on("send", "/demo tokens=5 rate=0 reasoning=1", "--reasoning");
		expect(out).toMatch(/^Demo reasoning.*\n\nDemo engine: /s);
	});

	it("I2: prints frames as NDJSON with --json, well framed", async () => {
		const { code, out } = await on("send", "/demo tokens=30 rate=0 tools=2", "--json", "--session", "json");
		expect(code).toBe(0);
		const frames = framesOf(out);
		expect(violations(frames)).toEqual([]);
		expect(frames[0]).toMatchObject({ type: "stream.begin", session: "json" });
	});

	it("reads the message from stdin, and takes files along", async () => {
		const cwd = freshFolder();
		writeFileSync(join(cwd, "note.txt"), "a note");
		const input = "/demo tokens=3 rate=0";
		const sent = await run(["send", "-", "--attach", "note.txt", "--json", "--data", data], { cwd, input });
		expect(sent.code).toBe(0);
		const { out } = await on("runs", runIdOf(sent.out), "--json");
		expect(JSON.parse(out).messages[0]).toMatchObject({
			text: input,
			attachments: [{ name: "note.txt", content_type: "text/plain", bytes: 6 }],
		});
	});

	it("leaves at once on a second Ctrl-C, even when the daemon does not answer", async () => {
		const begun = framesOfRun("run_deaf", [["x", 1]]).slice(0, -1);
		// Tells the beginning of a run, and nothing more: least of all that it was stopped.
		const url = await serving(({ url: path = "" }, response) => {
			if (path.endsWith("/messages")) response.end('{"event_id":"evt_1","disposition":"started","run_id":"run_deaf"}');
			if (path.includes("/stream"))
				response.writeHead(200, { "content-type": "text/event-stream" }).write(asEvents(begun));
		});
		const sending = nexus(["send", "hello", "--url", url, "--token", "x"]);
		await sending.until(({ out }) => out.length > 0);
		const ended = sending.interruptUntilEnd();
		await sending.until(({ err }) => err.includes("Ctrl-C again to leave at once"));
		const { code, err } = await ended;
		expect(code).toBe(130);
		expect(err).not.toMatch(/^stopped$/m);
	});

	it("waits its turn behind a busy session", async () => {
		const first = nexus(["send", "/demo tokens=5000 rate=100", "--session", "busy", "--data", data]);
		await first.until(({ out }) => out.length > 0);
		const second = nexus(["send", "/demo tokens=3 rate=0", "--session", "busy", "--data", data]);
		await second.until(({ err }) => err.includes("the session is busy: queued"));
		expect((await first.end("SIGINT")).code).toBe(130);
		expect(await second.end()).toMatchObject({ code: 0, out: expect.stringContaining("Demo engine") });
	});

	it("names the run to a person", async () => {
		const { code, err } = await nexus(["send", "/demo tokens=5 rate=0", "--data", data], { tty: true }).end();
		expect([code, err]).toEqual([0, expect.stringMatching(/run_\w{26}/)]);
	});

	it("fails with the run: message on stderr, code of the table", async () => {
		const { code, out, err } = await on("send", "/demo tokens=50 rate=0 fail_after=5");
		expect(code).toBe(8);
		expect(out).not.toBe("");
		expect(err).toMatch(/^nexus: the run failed: /m);
	});

	it.each([
		[["send", "x", "--session", "no spaces"], 2, "is not a session label"],
		[["send"], 2, "nexus: missing required argument 'text'"],
		[["send", "x", "--attach", "/nope"], 2, "--attach /nope"],
		[["runs", "run_nope"], 4, "run_nope"],
		[["replay", "run_nope"], 4, "run_nope\n  hint: `nexus runs` lists them"],
		[["tail", "run_nope"], 4, "run_nope"],
		[["tail", "nosuchsession"], 4, "there is no session nosuchsession\n  hint: `nexus sessions` lists them"],
		[["tail", "nosuchsession", "--after", "3"], 4, "there is no session nosuchsession"],
		[["stop", "run_nope"], 4, "run_nope"],
		[["frobnicate"], 2, "nexus: unknown command 'frobnicate'"],
		[["replay", "run_x", "--speed", "-1"], 2, "number above 0"],
		[["send", "x", "--token", "a-wrong-token-0123456789"], 3, "refuses this token\n  hint: "],
		[["send", "x", "--token", "two words"], 78, "--token: a token is made of"],
		[["send", "  "], 2, "the message is empty"],
		[["runs", "--url", "nonsense"], 2, '--url: "nonsense" is not an address such as http://127.0.0.1:7777'],
	] as const)("refuses %j with code %i", async (args, code, message) => {
		const result = await run(args, { env: { NEXUS_DATA: data } });
		expect([result.code, result.out]).toEqual([code, ""]);
		expect(result.err).toContain(message);
	});
});

describe("nexus tail and replay", () => {
	it("I4: tail gives a finished run again, frame for frame, and the rest after an offset", async () => {
		const sent = await on("send", "/demo tokens=20 rate=0", "--json");
		const id = runIdOf(sent.out);
		expect((await on("tail", id, "--json")).out).toBe(sent.out);
		const rest = await on("tail", id, "--json", "--after", "5");
		expect(rest.out).toBe(`${sent.out.split("\n").slice(5).join("\n")}`);
	});

	it("tail follows a session from the live run's beginning on", async () => {
		const first = nexus(["send", "/demo tokens=5000 rate=100", "--session", "tailed", "--json", "--data", data]);
		await first.until(({ out }) => out.split("\n").length > 5);
		const tail = nexus(["tail", "tailed", "--json", "--data", data]);
		// Stopped only now: however long a process takes to start, the run is live when it asks.
		await tail.until(({ out }) => out.includes("\n"));
		const { out: firstOut } = await first.end("SIGINT");
		const { out: secondOut } = await on("send", "/demo tokens=5 rate=0", "--session", "tailed", "--json");
		await tail.until(({ out }) => out.length >= firstOut.length + secondOut.length);
		expect((await tail.end("SIGTERM")).out).toBe(firstOut + secondOut);
	});

	it("replay gives a run again, frame for frame", async () => {
		const sent = await on("send", "/demo tokens=30 rate=0", "--json");
		const id = runIdOf(sent.out);
		expect((await on("replay", id, "--json")).out).toBe(sent.out);
		expect((await on("replay", id, "--speed", "max")).out).toMatch(/^Demo engine: .*\n$/s);
	});
});

describe("a replay of damage", () => {
	it("P4.12: in the middle of an answer, prints what is whole and says that records are damaged", async () => {
		const at = freshFolder();
		const first = await daemonHere(at);
		const sent = await run(["send", "/demo tokens=9000 rate=0", "--json", "--data", at]);
		await first.close();
		const file = new DatabaseSync(join(at, "nexus.db"));
		const segments = file.prepare("SELECT count(*) AS n FROM segment").get() as { n: number };
		expect(segments.n).toBeGreaterThan(1);
		file.exec(
			"UPDATE segment SET records = replace(records, 'stream', 'strEam') WHERE first = (SELECT max(first) FROM segment)",
		);
		file.close();
		const second = await daemonHere(at);
		onTestFinished(() => second.close());
		const { code, out, err } = await run(["replay", runIdOf(sent.out), "--json", "--speed", "max", "--data", at]);
		expect({ code, err }).toEqual({ code: ERROR_TABLE.data_loss[2], err: expect.stringContaining("damaged") });
		expect(sent.out.startsWith(out)).toBe(true);
		expect(out).not.toBe("");
	});
});

describe("a replay", () => {
	const HOUR_MS = 3_600_000;

	/** A daemon whose run paused this long before its last word. */
	const withPause = async (ms: number): Promise<string> => {
		const frames = framesOfRun("run_slow", [
			["one ", 1],
			["two", 1 + ms],
		]);
		return serving((_, response) => response.end(frames.map((frame) => `${JSON.stringify(frame)}\n`).join("")));
	};
	const replay = async (pauseMs: number, ...options: string[]) =>
		nexus(["replay", "run_slow", "--url", await withPause(pauseMs), "--token", "x", ...options]);

	it("keeps the original pauses", async () => {
		const from = performance.now();
		expect(await (await replay(500)).end()).toMatchObject({ code: 0, out: "one two\n" });
		// Timers may be a little early.
		expect(performance.now() - from).toBeGreaterThan(480);
		const hours = await replay(HOUR_MS);
		await hours.until(({ out }) => out === "one ");
	});

	it("divides them by the speed, or leaves them out", async () => {
		const from = performance.now();
		expect(await (await replay(1000 * HOUR_MS, "--speed", String(2 * HOUR_MS))).end()).toMatchObject({
			out: "one two\n",
		});
		expect(performance.now() - from).toBeGreaterThan(480);
		expect(await (await replay(HOUR_MS, "--speed", "max")).end()).toMatchObject({ out: "one two\n" });
	});
});

describe("a stream that arrives damaged", () => {
	const sound = (runId: string, end?: Partial<EndFrame>) => framesOfRun(runId, [[runId, 1]], end);
	const damaged = (runId: string) => sound(runId, { checksum: "crc32:00000000" });

	/** A daemon that has these frames, whatever is asked for. */
	const servingFrames = async (frames: Frame[]): Promise<string> =>
		serving(({ url = "" }, response) => {
			if (url.includes("/turns")) response.end('{"turns":[{}],"live":null,"queued":[],"stream_offset":0}');
			else response.writeHead(200, { "content-type": "text/event-stream" }).write(asEvents(frames));
		});

	it("I2: is reported by the rule that is broken, with the code for damaged data", async () => {
		const url = await servingFrames(damaged("run_A"));
		const { code, err } = await run(["tail", "run_A", "--url", url, "--token", "x"]);
		expect(code).toBe(10);
		expect(err).toMatch(/the answer is damaged: .*\(P1\.10\)/);
	});

	it("I2: is not held against the next run of its session", async () => {
		const url = await servingFrames([...damaged("run_A"), ...sound("run_B"), ...sound("run_C", { reason: "error" })]);
		const tail = nexus(["tail", "work", "--url", url, "--token", "x"]);
		await tail.until(({ err }) => err.includes("the run failed"));
		const { out, err } = await tail.end("SIGTERM");
		expect(out.match(/run_./g)).toEqual(["run_A", "run_B", "run_C"]);
		expect(err.match(/damaged/g)).toHaveLength(1);
	});
});

it("comes back ever later to a stream that is cut as soon as it opens, and says so once", async () => {
	const opened: number[] = [];
	const url = await serving((_, response) => {
		opened.push(performance.now());
		response.writeHead(200, { "content-type": "text/event-stream" }).write("retry: 1000\n\n", () => response.destroy());
	});
	const tail = nexus(["tail", "run_x", "--url", url, "--token", "x"]);
	await waitFor(() => opened.length >= 5);
	const { err } = await tail.end("SIGTERM");
	// 50, 100, 200 and 400 ms; timers may be a little early.
	expect(opened[4]! - opened[0]!).toBeGreaterThan(700);
	expect(err.match(/reconnecting/g)).toHaveLength(1);
});

it("says once that it reconnects to a daemon that takes long to hang up: what never opened was no good stream", async () => {
	vi.useFakeTimers({ toFake: ["Date"] });
	onTestFinished(() => void vi.useRealTimers());
	let asked = 0;
	const url = await serving((request) => {
		asked += 1;
		if (asked === 3) return;
		// Longer than a stream has to be open to be a good one.
		vi.advanceTimersByTime(5500);
		request.socket.destroy();
	});
	const tail = nexus(["tail", "run_x", "--url", url, "--token", "x"]);
	await waitFor(() => asked === 3);
	expect((await tail.end("SIGTERM")).err.match(/reconnecting/g)).toHaveLength(1);
});

describe("nexus runs, sessions, stop, url", () => {
	it("lists runs and sessions, tab-separated when piped", async () => {
		const sent = await on("send", "/demo tokens=3 rate=0", "--session", "listed", "--json");
		const id = runIdOf(sent.out);
		const runs = await on("runs", "--session", "listed");
		expect(runs.out.split("\t").slice(0, 3)).toEqual([id, "completed", "listed"]);
		expect((await on("sessions")).out).toMatch(/^listed\t1\t/m);
		await on("send", "/demo tokens=3 rate=0", "--session", "listed-too");
		expect((await on("sessions", "--limit", "1")).out).toMatch(/^listed-too\t.*\n$/);
		expect((await on("runs", "--limit", "1", "--json")).out.trim().split("\n")).toHaveLength(1);
		const one = await on("runs", id);
		expect(one.out).toMatch(/^status +completed$/m);
		expect(one.out).toContain("assistant:\nDemo engine: ");
	});

	it("stops a run from elsewhere", async () => {
		const sending = nexus(["send", "/demo tokens=5000 rate=100", "--session", "elsewhere", "--json", "--data", data]);
		await sending.until(({ out }) => out.includes("\n"));
		const id = runIdOf(sending.out.slice(0, sending.out.indexOf("\n")));
		expect((await on("stop", id)).out).toBe(`${id} aborted\n`);
		expect((await sending.end()).code).toBe(130);
		expect((await on("stop", id)).out).toBe(`${id} aborted\n`);
	});

	it("cancels a message that waits", async () => {
		const sending = nexus(["send", "/demo tokens=5000 rate=100", "--session", "crowded", "--json", "--data", data]);
		await sending.until(({ out }) => out.includes("\n"));
		const id = runIdOf(sending.out.slice(0, sending.out.indexOf("\n")));
		const waiting = nexus(["send", "later", "--session", "crowded", "--data", data]);
		let event = "";
		await vi.waitFor(async () => {
			const listed = await on("inbox", "--session", "crowded", "--state", "queued", "--json");
			event = (JSON.parse(listed.out) as { event_id: string }).event_id;
		});
		expect((await on("cancel", event)).out).toBe(`${event} cancelled\n`);
		const again = await on("cancel", event);
		expect([again.code, again.err]).toEqual([5, expect.stringContaining("waits no longer")]);
		await on("stop", id);
		expect((await waiting.end()).err).toContain("the message was cancelled");
		await sending.end();
	});

	it("prints an address that signs in once", async () => {
		const url = new URL((await on("url")).out.trim());
		const code = url.hash.slice("#code=".length);
		const signIn = () =>
			fetch(`${url.origin}/v1/sign-in`, {
				method: "POST",
				headers: { "content-type": "application/json" },
				body: JSON.stringify({ code }),
			});
		expect((await signIn()).ok).toBe(true);
		expect((await signIn()).status).toBe(401);
	});

	it("finds the daemon by --url and NEXUS_TOKEN from anywhere, and shows the token to no other address", async () => {
		const token = readFileSync(join(data, "token"), "utf8").trim();
		const cwd = freshFolder();
		const found = await run(["sessions", "--url", daemon.url], { cwd, env: { NEXUS_TOKEN: token } });
		expect(found.code).toBe(0);
		const other = await run(["sessions", "--url", "http://192.0.2.1:9"], { cwd, env: { NEXUS_DATA: data } });
		expect([other.code, other.err]).toEqual([3, expect.stringContaining("no token for http://192.0.2.1:9")]);
	});

	it("takes an empty NEXUS_URL for none, like every variable", async () => {
		expect(await run(["runs"], { env: { NEXUS_DATA: data, NEXUS_URL: "" } })).toMatchObject({ code: 0 });
	});

	it("recognises a server that is not Nexus", async () => {
		const url = await serving((_, response) => response.end("<html>"));
		const { code, err } = await run(["runs", "--url", url, "--token", "x"], { cwd: freshFolder() });
		expect([code, err]).toEqual([7, expect.stringContaining(`what answers at ${url} is not a Nexus daemon\n  hint: `)]);
	});

	it.skipIf(process.getuid?.() === 0)(
		"tells a data directory of another user from one without a daemon (skipped as root, who may read them all)",
		async () => {
			const closed = freshFolder();
			chmodSync(closed, 0o000);
			onTestFinished(() => chmodSync(closed, 0o700));
			const { code, err } = await run(["runs", "--data", closed]);
			expect([code, err]).toEqual([3, expect.stringContaining(`${closed} belongs to another user\n  hint: `)]);
		},
	);

	it("says what to do when no daemon runs", async () => {
		const { code, err } = await run(["send", "x"], { cwd: freshFolder() });
		expect(code).toBe(7);
		expect(err).toMatch(/^nexus: no daemon is running for .*\n {2}hint: start one with `nexus up`/);
	});
});

describe("nexus doctor", () => {
	it("finds a running daemon and nothing to complain about", async () => {
		const port = new URL(daemon.url).port;
		const { code, out } = await on("doctor", "--json", "--port", port);
		const findings = Object.fromEntries(jsonLines(out).map((finding) => [finding.check, finding]));
		expect(findings.daemon).toMatchObject({ result: "ok", detail: expect.stringContaining(daemon.url) });
		expect(findings.port).toMatchObject({ result: "ok", detail: `${port}, used by the running daemon` });
		const { port: grpc } = new URL(daemon.grpc!);
		expect(findings.grpc).toMatchObject({ result: "ok", detail: `${grpc}, used by the running daemon` });
		expect(findings.accounts).toMatchObject({ result: "ok", detail: expect.stringContaining("none") });
		expect(findings.engine).toMatchObject({ result: "ok", detail: expect.stringContaining("demo") });
		expect(Object.keys(findings)).toEqual(
			expect.arrayContaining(["node", "config", "data", "disk", "database", "token", "keys", "page"]),
		);
		expect(code).toBe(0);
	});

	it("does not report the running daemon's port as a fault, whatever the configuration says", async () => {
		const foreign = new URL(await serving(() => {})).port;
		const { code, out } = await on("doctor", "--port", foreign);
		expect(out).toMatch(new RegExp(`^ok {4}port +\\d+, used by the running daemon \\(configured: ${foreign}\\)$`, "m"));
		expect(code).toBe(0);
	});

	it("tells a wrong configuration, a taken port, a missing key, and what to do", async () => {
		const cwd = freshFolder();
		const port = new URL(daemon.url).port;
		const taken = await run(["doctor", "--port", port, "--json"], { cwd });
		expect(taken.code).toBe(1);
		expect(taken.out).toMatch(/"check":"port","result":"fail".*--port/);
		const takenGrpc = await run(["doctor", "--port", "0", "--grpc-port", port, "--json"], { cwd });
		expect(takenGrpc.out).toMatch(/"check":"grpc","result":"fail".*--grpc-port/);
		writeFileSync(join(cwd, "nexus.yaml"), "engine: pi\npi: { apiKeyEnv: MY_KEY, provider: openai }\n");
		const keyless = await run(["doctor", "--json"], { cwd });
		expect(keyless.code).toBe(1);
		expect(keyless.out).toMatch(/"check":"keys","result":"fail","detail":"MY_KEY is not set"/);
		writeFileSync(join(cwd, "nexus.yaml"), "engine: nope\n");
		const wrong = await run(["doctor"], { cwd });
		expect(wrong.code).toBe(1);
		expect(wrong.out).toMatch(/^fail {2}config .*nexus\.yaml:1:9: engine: "nope" is not allowed/m);
		expect(wrong.out).toContain("→ ");
		expect(wrong.out).toContain("the other checks follow once the configuration is right");
	});

	it("reports a key of another provider, a missing plugin, a path that is not a folder and a newer database", async () => {
		const cwd = freshFolder();
		writeFileSync(join(cwd, "nexus.yaml"), "engine: pi\npi: { provider: anthropic }\nplugins: [./nope.ts]\n");
		const keys = await run(["doctor"], { cwd, env: { OPENAI_API_KEY: "k" } });
		expect(keys.out).toMatch(/^fail {2}keys +no key for anthropic is set$/m);
		expect(keys.out).toMatch(/^fail {2}plugins +plugin \.\/nope\.ts: cannot be loaded/m);
		// A detail of several lines stays in its column.
		expect(keys.out).not.toMatch(/^(?!ok|warn|fail| {16}|$)/m);
		expect((await run(["doctor", "--data", join(cwd, "nexus.yaml")])).out).toMatch(
			/^fail {2}data .* is not a folder$/m,
		);
		const newer = freshFolder();
		await (await daemonHere(newer)).close();
		expect((await run(["doctor", "--data", newer, "--port", "0"])).code).toBe(0);
		const db = new DatabaseSync(join(newer, "nexus.db"));
		db.exec("UPDATE schema_version SET version = 999 WHERE area = 'bus'");
		db.close();
		expect((await run(["doctor", "--data", newer])).out).toMatch(
			/^fail {2}database .*"bus" tables have schema version 999/m,
		);
	});
});
