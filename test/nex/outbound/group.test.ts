/** An adapter with all that it starts: nothing of it outlives the daemon. And one that says nothing but garbage. */

import { execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { SEND_SHAPES } from "../../../packages/adapter/src/shapes.ts";
import { endOrphanedProcesses, prepareAccountFiles } from "../../../packages/daemon/src/nex/accounts/account-files.ts";
import { type Exit, startProcess } from "../../../packages/daemon/src/nex/accounts/line-process.ts";
import { createInfoCache } from "../../../packages/daemon/src/nex/accounts/one-shot.ts";
import { ONE_SHOT_LIMITS, PROCESS_LIMITS } from "../../../packages/daemon/src/nex/limits.ts";
import { RESTART_RULES } from "../../../packages/daemon/src/std/supervision.ts";
import { systemClock } from "../../../packages/protocol/src/clock.ts";
import { common, node, supervisorOf } from "./process-kit.ts";

function freshFolder(): string {
	const folder = mkdtempSync(join(tmpdir(), "nexus-group-"));
	onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
	return folder;
}

/** Starts another process that heeds neither the end of its input nor SIGTERM, and writes down its pid. */
const leaving = (file: string, then: string, stdio = "ignore") => `
	const stubborn = 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1000);';
	const child = require("node:child_process").spawn(process.execPath, ["-e", stubborn], { stdio: ${JSON.stringify(stdio)} });
	require("node:fs").writeFileSync(${JSON.stringify(`${file}.tmp`)}, String(child.pid));
	require("node:fs").renameSync(${JSON.stringify(`${file}.tmp`)}, ${JSON.stringify(file)});
	${then}
`;

const pidIn = async (file: string): Promise<number> => {
	await expect.poll(() => existsSync(file), { timeout: 20_000 }).toBe(true);
	return Number(readFileSync(file, "utf8"));
};

/** A zombie that its parent has not reaped yet has ended as well. */
function lives(pid: number): boolean {
	try {
		const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
		return !/\) Z /.test(stat);
	} catch {
		return false;
	}
}

const hasEnded = (pid: number) => expect.poll(() => lives(pid), { timeout: 20_000 }).toBe(false);

describe("what an adapter has started", { skip: process.platform !== "linux" }, () => {
	const start = (command: readonly string[]) => {
		const gone = Promise.withResolvers<Exit>();
		const limits = { ...PROCESS_LIMITS, endGraceMs: 100, termGraceMs: 100 };
		const running = startProcess({ ...common, command, limits }, { lines() {}, garbage() {}, exited: gone.resolve });
		return { running, gone: gone.promise };
	};

	it("ends when the adapter is stopped", async () => {
		const file = join(freshFolder(), "pid");
		const { running } = start(node(leaving(file, "process.stdin.resume();")));
		const inner = await pidIn(file);
		await running.stop();
		await hasEnded(inner);
	});

	it("ends when the adapter ends by itself, also when it holds its pipes", async () => {
		const file = join(freshFolder(), "pid");
		const { gone } = start(node(leaving(file, "child.unref(); process.exit(7);", "inherit")));
		const inner = await pidIn(file);
		expect(await gone).toMatchObject({ code: 7 });
		await hasEnded(inner);
	});

	it("ends with a daemon that leaves without a word", async () => {
		const file = join(freshFolder(), "pid");
		const source = new URL("../../../packages/daemon/src/std/line-process.ts", import.meta.url).href;
		const script = `
			import { spawn } from "node:child_process";
			import { existsSync } from "node:fs";
			import { OWN_GROUP, watchGroup } from ${JSON.stringify(source)};
			watchGroup(spawn(process.execPath, ["-e", ${JSON.stringify(leaving(file, "setInterval(() => {}, 1000);"))}], { stdio: "ignore", ...OWN_GROUP }));
			const look = () => existsSync(${JSON.stringify(file)}) ? process.exit(0) : setTimeout(look, 5);
			look();
		`;
		await promisify(execFile)(process.execPath, ["--conditions=nexus-source", "--input-type=module", "-e", script]);
		await hasEnded(await pidIn(file));
	});

	it("ends at the next start when daemon and adapter were killed", async () => {
		const folder = freshFolder();
		const places = prepareAccountFiles(folder, "odd", "main", {});
		const file = join(folder, "pid");
		const [program = "", ...args] = node(leaving(file, "setInterval(() => {}, 1000);"));
		const adapter = spawn(program, args, { env: { ...common.env, ...places.env }, stdio: "ignore", detached: true });
		const ended = new Promise((resolve) => adapter.once("exit", resolve));
		places.onSpawn("stream", adapter.pid!);
		const inner = await pidIn(file);
		adapter.kill("SIGKILL");
		await ended;
		expect(lives(inner)).toBe(true);
		expect(endOrphanedProcesses(folder)).toEqual([inner]);
		await hasEnded(inner);
	});
});

describe("an `info` that hangs", { skip: process.platform !== "linux" }, () => {
	const approvals = (folder: string, answerMs: number) => {
		const file = join(folder, "pid");
		const command = node(leaving(file, "setInterval(() => {}, 1000);", "inherit"));
		const stopping = new AbortController();
		const limits = { ...ONE_SHOT_LIMITS, answerMs };
		const infos = createInfoCache(() => ({ odd: { command, accounts: {} } }), {
			limits,
			clock: systemClock,
			signal: stopping.signal,
			dataDir: folder,
			onInfo: () => {},
		});
		return { answer: infos.ask("odd"), inner: () => pidIn(file), stop: () => stopping.abort() };
	};

	it("ends with the daemon, and so does what it has started", async () => {
		const { answer, inner, stop } = approvals(freshFolder(), 60_000);
		const refused = expect(answer).rejects.toThrow("the daemon stops");
		const pid = await inner();
		stop();
		await refused;
		await hasEnded(pid);
	});

	it("times out, also when another process holds its pipes", async () => {
		vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
		onTestFinished(() => void vi.useRealTimers());
		const { answer, inner } = approvals(freshFolder(), 60_000);
		const refused = expect(answer).rejects.toThrow("no answer within 60000 ms");
		const pid = await inner();
		vi.advanceTimersByTime(60_000);
		await refused;
		await hasEnded(pid);
	});

	it("is ended by the next start when the daemon was killed", async () => {
		const folder = freshFolder();
		const { answer, inner, stop } = approvals(folder, 60_000);
		const refused = expect(answer).rejects.toThrow();
		const pid = await inner();
		expect(endOrphanedProcesses(folder)).toHaveLength(1);
		await hasEnded(pid);
		stop();
		await refused;
	});
});

it("I11: an adapter that floods its output with garbage is cut off and started again, later and later", async () => {
	const lost: Exit[] = [];
	const supervisor = supervisorOf({
		command: node(`const say = () => process.stdout.write("garbage\\n".repeat(1000), say); say();`),
		shapes: SEND_SHAPES,
		limits: { ...PROCESS_LIMITS, garbageLinesPerMinuteMax: 5000 },
		rules: { ...RESTART_RULES, backoffMs: 20, failuresMax: 3 },
		lost: (exit) => {
			lost.push(exit);
			return false;
		},
	});
	onTestFinished(() => supervisor.stop());
	await supervisor.running(new AbortController().signal);
	await expect.poll(() => supervisor.status().state, { timeout: 20_000 }).toBe("open_circuit");
	expect(lost).toHaveLength(3);
	expect(lost[0]).toMatchObject({ code: null, detail: "wrote more than 5000 lines of garbage within a minute" });
	expect(supervisor.status()).toMatchObject({ restarts: 3, lastError: expect.stringContaining("garbage") });
});
