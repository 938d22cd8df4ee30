/** A user's agent that leaves errors behind, and a daemon that has to end: what is logged, and what is kept. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { freshFolder } from "../runtime/folder.ts";
import { run } from "./in-process.ts";
import { nexus, up } from "./nexus.ts";
import type { Running } from "./running.ts";

const AGENT = `
export default {
	name: "careless",
	async *run({ messages }) {
		yield { type: "text", delta: "begun " };
		const { text } = messages.at(-1);
		if (text === "reject") void leaveAlone();
		if (text === "throw") throwAtOnce();
		if (text === "bomb") process.nextTick(() => { throw new Error("dropped"); });
		yield { type: "text", delta: "last words" };
		if (text === "bomb" || text === "wait") await new Promise(() => {});
	},
};
async function leaveAlone() { throw new Error("left alone"); }
function throwAtOnce() { throw new Error("thrown"); }
`;

async function careless(): Promise<{ data: string; start(): ReturnType<typeof up> }> {
	const folder = freshFolder();
	writeFileSync(join(folder, "careless.mjs"), AGENT);
	const settings = "stopDeadlineMs: 300\nbroker: { abortGraceMs: 100 }\n";
	writeFileSync(join(folder, "nexus.yaml"), `engine: { module: ./careless.mjs }\n${settings}`);
	const data = join(folder, "data");
	return { data, start: () => up(data, [], { cwd: folder }) };
}

const logged = (daemon: Running, message: string) =>
	daemon.err
		.split("\n")
		.filter((line) => line.includes(message))
		.map((line) => JSON.parse(line) as { runId?: string; err?: { stack: string }; cause?: { stack: string } });

it("an unhandled rejection and an exception of an agent are logged with stack and run; other runs are unaffected", async () => {
	const { data, start } = await careless();
	const daemon = await start();
	const rejecting = await run(["send", "reject", "--data", data]);
	expect([rejecting.code, rejecting.out.trim()]).toEqual([0, "begun last words"]);
	const throwing = await run(["send", "throw", "--json", "--data", data]);
	expect(throwing.code).toBe(8);
	await daemon.until(({ err }) => err.includes("left alone") && err.includes("the engine failed"));
	expect(logged(daemon, "the daemon keeps running")).toMatchObject([
		{ runId: expect.stringMatching(/^run_/), cause: { stack: expect.stringContaining("at leaveAlone") } },
	]);
	const { run_id: runId } = JSON.parse(throwing.out.split("\n")[0]!) as { run_id: string };
	expect(logged(daemon, "the engine failed")).toMatchObject([
		{ runId, err: { stack: expect.stringContaining("at throwAtOnce") } },
	]);
	expect((await daemon.end("SIGTERM")).code).toBe(0);
});

it("I1: what was pending at an uncaught exception is committed before the process ends", async () => {
	const { data, start } = await careless();
	const first = await start();
	const sending = run(["send", "bomb", "--data", data]);
	expect((await first.end()).code).toBe(1);
	const [told] = logged(first, "uncaught error");
	expect(told).toMatchObject({
		runId: expect.stringMatching(/^run_/),
		cause: { stack: expect.stringContaining("dropped") },
	});
	await start();
	expect((await sending).out.trim()).toBe("begun last words");
});

it("I3: a closed terminal is an orderly stop: it says for what it waits, keeps what was said, and the run says why", async () => {
	const { data, start } = await careless();
	const daemon = await start();
	const sending = nexus(["send", "wait", "--data", data]);
	await sending.until(({ out }) => out.includes("last words"));
	daemon.child.kill("SIGHUP");
	const { code, err } = await daemon.end("SIGHUP");
	expect(code).toBe(0);
	expect(err).toMatch(/stopping: waiting up to 1 s for 1 run to end; once more to leave at once/);
	await start();
	const sent = await sending.end();
	expect([sent.code, sent.out.trim()]).toEqual([130, "begun last words"]);
	expect(sent.err).toContain("stopped: Nexus was shut down. What was written is kept.");
});
