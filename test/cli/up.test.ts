/** `nexus up` as another program sees it: one line when it is ready, clear refusals, an orderly end. */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { freshFolder } from "../runtime/folder.ts";
import { daemonHere, jsonLines, nexus, run as runHere } from "./in-process.ts";
import { run, up } from "./nexus.ts";

/** The next start after a process was ended; it need not be a separate process. */
const startAgain = async (...args: Parameters<typeof daemonHere>): Promise<void> => {
	const daemon = await daemonHere(...args);
	onTestFinished(() => daemon.close());
};

describe("nexus up", () => {
	it("prints one JSON object when it is ready, ends in order on SIGTERM, and never logs its token", async () => {
		const data = join(freshFolder(), "data");
		const daemon = await up(data);
		expect(daemon.out.split("\n")).toHaveLength(2);
		expect(daemon.ready).toEqual({
			ready: true,
			url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
			grpc: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
			sign_in_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/#code=[\w-]{20,}$/),
			pid: daemon.child.pid,
			engine: "demo",
			data,
		});
		expect((await fetch(`${daemon.ready.url}/readyz`)).status).toBe(200);
		const token = readFileSync(join(data, "token"), "utf8").trim();
		const { code, err } = await daemon.end("SIGTERM");
		expect(code).toBe(0);
		expect(existsSync(join(data, "daemon.json"))).toBe(false);
		for (const line of err.trim().split("\n")) expect(JSON.parse(line)).toMatchObject({ level: "info" });
		expect(err).not.toContain(token);
		expect(err).not.toContain(daemon.ready.sign_in_url.split("=")[1]);
	});

	it("leaves at once on a second signal", async () => {
		const folder = freshFolder();
		// An engine that ignores everything, and a deadline far away: only the second signal can end this in time.
		writeFileSync(
			join(folder, "deaf.mjs"),
			"export default { name: 'deaf', async *run() { yield { type: 'text', delta: 'x' }; await new Promise((r) => setTimeout(r, 60000)); } };\n",
		);
		writeFileSync(join(folder, "nexus.yaml"), "engine: { module: ./deaf.mjs }\nstopDeadlineMs: 60000\n");
		const data = join(folder, "data");
		const daemon = await up(data, [], { cwd: folder });
		const sending = nexus(["send", "go", "--data", data]);
		await sending.until(({ out }) => out.includes("x"));
		daemon.child.kill("SIGINT");
		await daemon.until(({ err }) => err.includes("once more to leave at once"));
		expect((await daemon.interruptUntilEnd()).code).toBe(130);
	});

	it("I3: logs an uncaught error and ends; the next start settles what was live", async () => {
		const folder = freshFolder();
		writeFileSync(
			join(folder, "careless.mjs"),
			"export default { name: 'careless', async *run({ messages }) { yield { type: 'text', delta: 'x' }; if (messages.at(-1).text === 'bomb') setTimeout(() => { throw new Error('dropped'); }); await new Promise(() => {}); } };\n",
		);
		writeFileSync(join(folder, "nexus.yaml"), "engine: { module: ./careless.mjs }\n");
		const data = join(folder, "data");
		const first = await up(data, [], { cwd: folder });
		const sending = nexus(["send", "go", "--data", data]);
		await sending.until(({ out }) => out === "x");
		nexus(["send", "bomb", "--session", "other", "--data", data]);
		const { code, err } = await first.end();
		expect(code).toBe(1);
		expect(err).toMatch(/"message":"dropped".*"msg":"uncaught error; the daemon ends"/);
		await startAgain(data, { cwd: folder });
		const sent = await sending.end();
		expect([sent.code, sent.out.trim()]).toEqual([1, "x"]);
		expect(sent.err).toContain("The process ended while this answer was being written.");
	});

	it("I12: an engine that waits for nothing is stopped and settled, and the daemon ends in order", async () => {
		const folder = freshFolder();
		// Nothing of it keeps the process alive, and it does not look at its signal.
		writeFileSync(
			join(folder, "stuck.mjs"),
			"export default { name: 'stuck', async *run() { yield { type: 'text', delta: 'x' }; await new Promise(() => {}); } };\n",
		);
		writeFileSync(
			join(folder, "nexus.yaml"),
			"engine: { module: ./stuck.mjs }\nstopDeadlineMs: 200\nbroker: { abortGraceMs: 100 }\n",
		);
		const data = join(folder, "data");
		const daemon = await up(data, [], { cwd: folder });
		const sending = nexus(["send", "go", "--data", data]);
		await sending.until(({ out }) => out.includes("x"));
		await sending.end("SIGKILL");
		const { code, err } = await daemon.end("SIGTERM");
		expect({ code, err }).toMatchObject({ code: 0, err: expect.stringContaining('"stopped"') });
		await startAgain(data, { cwd: folder });
		expect((await runHere(["runs", "--data", data])).out).toContain("aborted");
	});

	it("I3: refuses a directory in use by another process, and takes it over after kill -9 with every run settled", async () => {
		const data = freshFolder();
		const first = await up(data);
		const second = await runHere(["up", "--data", data, "--port", "0"]);
		expect(second.code).toBe(5);
		expect(second.err).toBe(
			`nexus: another Nexus (pid ${first.ready.pid}, ${first.ready.url}) uses ${data}: stop it or use --data with another directory\n`,
		);
		expect(second.out).toBe("");
		const sending = nexus(["send", "/demo tokens=5000 rate=100", "--json", "--data", data]);
		await sending.until(({ out }) => out.split("\n").length > 20);
		await first.end("SIGKILL");
		await startAgain(data);
		const { code, out, err } = await sending.end();
		const ends = jsonLines(out).filter(({ type }) => type === "stream.end");
		expect(ends.at(-1)).toMatchObject({ final: true, reason: "crashed", synthetic: true });
		expect(err).toContain("reconnecting");
		expect(code).toBe(1);
	});

	it.each([
		[["--host", "0.0.0.0"], 78, "reachable from other machines: set a token"],
		[["--port", "99999"], 78, '--port: "99999" is not a port'],
		[["--config", "missing.yaml"], 78, "missing.yaml: cannot be read"],
		[["--bogus"], 2, "nexus: unknown option '--bogus'"],
	])("refuses %j with code %i", async (args, code, message) => {
		const cwd = freshFolder();
		const result = await runHere(["up", ...args], { cwd });
		expect(result.err).toContain(message);
		expect([result.code, result.out]).toEqual([code, ""]);
	});

	it("tells every mistake of the configuration with its line", async () => {
		const cwd = freshFolder();
		writeFileSync(join(cwd, "nexus.yaml"), "prot: 1\nengine: gpt\n");
		const { code, err } = await runHere(["up"], { cwd });
		expect(code).toBe(78);
		expect(err.split("\n")).toEqual([
			'nexus: nexus.yaml:1:1: prot: unknown key; did you mean "port"?',
			'nexus: nexus.yaml:2:9: engine: "gpt" is not allowed; allowed: demo, pi, pi-coding-agent, reason-act, or { module: ./my-agent.ts }',
			"",
		]);
	});

	it("ends after it has refused an agent that leaves a timer behind", async () => {
		const cwd = freshFolder();
		writeFileSync(join(cwd, "agent.mjs"), "setInterval(() => {}, 1000); export const nothing = 1;");
		writeFileSync(join(cwd, "nexus.yaml"), "engine: { module: ./agent.mjs }\nport: 0\n");
		const { code, err } = await run(["up"], { cwd });
		expect(code).toBe(78);
		expect(err).toContain("nexus: engine module ./agent.mjs: has no default export; it exports `nothing`");
	});
});
