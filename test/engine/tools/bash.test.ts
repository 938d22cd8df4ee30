/** `bash`: a clean environment, a bounded output, an exit code, and nothing left alive. */

import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { beforeEach, describe, expect, test } from "vitest";
import type { Tool } from "../../../packages/daemon/src/engine/tool.ts";
import { bashTool, commandEnvironment } from "../../../packages/daemon/src/engine/tools/shell/bash.ts";
import { HeadTail } from "../../../packages/daemon/src/engine/tools/shell/command.ts";
import { builtInTools } from "../../../packages/daemon/src/engine/tools/tools.ts";
import { systemClock } from "../../../packages/protocol/src/clock.ts";
import { freshFolder } from "../../runtime/folder.ts";
import { until } from "../../until.ts";
import { collect } from "../demo-play.ts";
import { answer, asks, engineOf, text as said } from "../reason-act/kit.ts";
import { call, requestOf } from "./kit.ts";

type ShellOptions = Parameters<typeof bashTool>[0];

const shell = (options: Partial<ShellOptions>): Tool =>
	bashTool({ root, env: { PATH }, envNames: [], wrapper: [], outputBytesMax: 1000, clock: systemClock, ...options });

let root: string;
let tools: Tool[];
const PATH = process.env.PATH!;

beforeEach(() => {
	root = freshFolder();
	tools = [shell({})];
});

const bash = (command: string, signal = new AbortController().signal) => call(tools, "bash", { command }, { signal });

/** Also false for what waits to be collected by a parent that never does. */
function isAlive(pid: number): boolean {
	try {
		const text = readFileSync(`/proc/${pid}/stat`, "utf8");
		return !/^[ZX]/.test(text.slice(text.lastIndexOf(")") + 2));
	} catch {
		return false;
	}
}

const pidIn = (file: string) => Number(readFileSync(join(root, file), "utf8"));
const hasPid = (file: string) => existsSync(join(root, file)) && pidIn(file) > 0;

test("a daemon that ends in the middle of a command takes it along", async () => {
	const module = new URL("../../../packages/daemon/src/engine/tools/shell/bash.ts", import.meta.url).href;
	const script = `import { systemClock } from "@nexus-stream/protocol/clock";
		import { bashTool } from ${JSON.stringify(module)};
		const tool = bashTool({ root: ${JSON.stringify(root)}, env: process.env, envNames: [], wrapper: [], outputBytesMax: 1000, clock: systemClock });
		void tool.execute({ command: "echo $$ > pid; sleep 1000" }, { signal: new AbortController().signal });
		process.stdin.once("data", () => process.exit(1));`;
	const daemon = spawn(
		process.execPath,
		["--conditions=nexus-source", "--input-type=module-typescript", "-e", script],
		{
			stdio: ["pipe", "ignore", "inherit"],
		},
	);
	const ended = new Promise((resolve) => daemon.once("exit", resolve));
	await until("the command runs", () => hasPid("pid"));
	daemon.stdin.write("end");
	await ended;
	await until("it is gone", () => !isAlive(pidIn("pid")));
});

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc") as () => void;

/** Bytes of buffers still referenced. The second collection ends the sweeping of the first. */
function collectedBuffers(): number {
	gc();
	gc();
	return process.memoryUsage().arrayBuffers;
}

describe("a command", () => {
	test("runs in the folder and answers with what it printed, and its exit code", async () => {
		writeFileSync(join(root, "a.txt"), "hello");
		expect(await bash("cat a.txt; echo; echo oops >&2; exit 3")).toEqual({
			text: "hello\noops\n[exit code 3]",
			failed: true,
		});
		expect(await bash("true")).toEqual({ text: "(no output)\n[exit code 0]", failed: false });
		expect(await bash("kill -9 $$")).toEqual({ text: "(no output)\n[ended by SIGKILL]", failed: true });
		expect(await bash("cat")).toEqual({ text: "(no output)\n[exit code 0]", failed: false });
	});

	test("R2-97, A11, A21: runs alone, and only with approval", () => {
		expect(tools[0]).toMatchObject({ exclusive: true, approval: "always", timeoutMs: 30_000 });
	});

	test("is off unless it is configured", async () => {
		const place = { base: root, env: {}, clock: systemClock };
		const names = async (tools: object) => (await builtInTools(tools, place)).map(({ name }) => name);
		expect(await names({ root: "." })).not.toContain("bash");
		expect(await names({ root: ".", bash: { wrapper: ["bwrap"] } })).not.toContain("bash");
		expect(await names({ root: ".", bash: { enabled: true } })).toContain("bash");
	});
});

describe("A15: the environment", () => {
	const env = {
		PATH,
		HOME: "/home/a",
		LANG: "C",
		TZ: "UTC",
		OPENAI_API_KEY: "sk-1",
		TELEGRAM_TOKEN: "t",
		NEXUS_TOKEN: "n",
		AWS_SECRET_ACCESS_KEY: "a",
		BASH_ENV: "/tmp/evil",
		LD_PRELOAD: "/tmp/evil.so",
		JAVA_HOME: "/java",
	};

	test("is an allow-list: no keys, no tokens, nothing of the daemon's", async () => {
		tools = [shell({ env, envNames: ["JAVA_HOME"], outputBytesMax: 10_000 })];
		const { text } = await bash("env");
		const names = text.split("\n").flatMap((line) => /^(\w+)=/.exec(line)?.[1] ?? []);
		// The shell itself adds three.
		const own = names.filter((name) => !["PWD", "SHLVL", "_", "OLDPWD", "TOOL_COMMAND_ID"].includes(name));
		expect(own.toSorted()).toEqual(["HOME", "JAVA_HOME", "LANG", "PATH", "TERM", "TZ"]);
	});

	test("keys of models and NEXUS_… cannot be let through", async () => {
		expect(commandEnvironment(env, ["NEXUS_TOKEN", "OPENAI_API_KEY"])).not.toHaveProperty("NEXUS_TOKEN");
		for (const name of ["NEXUS_TOKEN", "OPENAI_API_KEY"])
			await expect(
				builtInTools({ root: ".", bash: { enabled: true, env: [name] } }, { base: root, env, clock: systemClock }),
			).rejects.toMatchObject({ code: "config", message: expect.stringContaining(name) });
	});
});

describe("the output", () => {
	test("is kept at its beginning and its end", async () => {
		const { text } = await bash("for i in $(seq 1 100000); do echo line $i; done");
		expect(text.length).toBeLessThan(1100);
		expect(text).toMatch(/^line 1\nline 2\n/);
		expect(text).toMatch(/… \d+ bytes left out …/);
		expect(text).toMatch(/line 99999\nline 100000\n\[exit code 0\]$/);
	});

	test("that is binary is not shown", async () => {
		expect((await bash("printf 'a\\0b'")).text).toBe("(binary output of 3 bytes, not shown)\n[exit code 0]");
	});

	test("is cut between characters, wherever pieces end", () => {
		for (const bytesMax of [7, 8, 9, 10, 11])
			for (const piece of [1, 2, 3, 5, 64]) {
				const all = Buffer.from("ü😀".repeat(20));
				const kept = new HeadTail(bytesMax);
				for (let at = 0; at < all.length; at += piece) kept.add(all.subarray(at, at + piece));
				expect(kept.text(), `${bytesMax} ${piece}`).toMatch(/^(ü|😀)*\n… \d+ bytes left out …\n(ü|😀)*$/u);
			}
		const short = new HeadTail(6);
		short.add(Buffer.from("abc"));
		short.add(Buffer.from("def"));
		expect(short.text()).toBe("abcdef");
	});

	test("without end costs no memory without end", () => {
		const kept = new HeadTail(100);
		const before = collectedBuffers();
		for (let n = 0; n < 2000; n++) kept.add(Buffer.alloc(65_536, 97));
		// 131 MB came by; what is held of them does not depend on when garbage is collected.
		expect(collectedBuffers() - before).toBeLessThan(16 * 1024 * 1024);
		expect(kept.text()).toMatch(/^a{50}\n… \d+ bytes left out …\na{50}$/);
	});
});

describe("I12: nothing survives the call", () => {
	test("a stop kills what the command started, deaf ones included", async () => {
		const stop = new AbortController();
		const deaf = "trap '' TERM; echo $BASHPID > child; while :; do sleep 1; done";
		const running = bash(`( ${deaf} ) & wait`, stop.signal);
		await until("the child has begun", () => hasPid("child"));
		stop.abort();
		expect(await running).toEqual({ text: "(no output)\n[stopped]", failed: true });
		expect(isAlive(pidIn("child"))).toBe(false);
	});

	test("what runs on in the background ends with the command", async () => {
		const { text } = await bash("sleep 1000 & echo $! > child; echo started");
		expect(text).toBe("started\n[exit code 0]");
		expect(isAlive(pidIn("child"))).toBe(false);
	});

	test("what has left the process group does, too", async () => {
		const { text } = await bash(
			"setsid sh -c 'echo $$ > child; exec sleep 1000' & while [ ! -s child ]; do sleep 0.01; done; echo started",
		);
		expect(text).toBe("started\n[exit code 0]");
		expect(isAlive(pidIn("child"))).toBe(false);
	});

	test("a process that forks without end is gone after the stop", async () => {
		const stop = new AbortController();
		// Bounded, so that a failure of this test does not take the machine along: a chain of forks, never more than 40 at once.
		const bomb = 'f() { echo $BASHPID >> pids; [ "$1" -gt 0 ] && { f $(($1 - 1)) & f 0 & }; sleep 1000; }; f 20';
		const running = bash(bomb, stop.signal);
		const pids = () => readFileSync(join(root, "pids"), "utf8").trim().split("\n").map(Number);
		await until("it has forked", () => existsSync(join(root, "pids")) && pids().length > 30);
		stop.abort();
		await running;
		expect(pids().filter(isAlive)).toEqual([]);
	});

	test("a stop before it began starts nothing", async () => {
		expect(await bash("touch x", AbortSignal.abort())).toMatchObject({ failed: true });
		expect(existsSync(join(root, "x"))).toBe(false);
	});
});

describe("in the loop", () => {
	const started = "sleep 1000 & echo $! > child; wait";
	const answers = [answer(asks("bash", { command: started })), answer(said("done"))];
	const agreed = { owner: true, approval: { bash: "never" as const } };

	test("A21, I12: when the run is stopped, its command is dead before the run is over", async () => {
		const { engine } = await engineOf(answers, { tools });
		const stop = new AbortController();
		const running = collect(engine.run(requestOf(agreed), { signal: stop.signal }));
		await until("the child has begun", () => hasPid("child"));
		stop.abort();
		await running.catch(() => {});
		expect(isAlive(pidIn("child"))).toBe(false);
	});

	test("A11: without an approver nothing is run, not even for the owner", async () => {
		const { engine, calls } = await engineOf(answers, { tools });
		const { signal } = new AbortController();
		const events = await collect(engine.run(requestOf({ owner: true }), { signal }));
		expect(events).toContainEqual(expect.objectContaining({ name: "bash", status: "failed" }));
		expect(JSON.stringify(calls.at(-1)!.messages)).toContain("requires approval");
		expect(existsSync(join(root, "child"))).toBe(false);
	});
});

describe("a wrapper", () => {
	test("gets the shell and the command as its last arguments", async () => {
		const wrapper = ["sh", "-c", 'echo wrapped; exec "$@"', "wrapper"];
		tools = [shell({ wrapper })];
		expect((await bash("echo inside")).text).toBe("wrapped\ninside\n[exit code 0]");
	});

	test("that is missing is reported as such", async () => {
		tools = [shell({ wrapper: ["no-such-wrapper"] })];
		expect(await bash("true")).toEqual({
			text: "no-such-wrapper could not be started: it was not found",
			failed: true,
		});
	});
});
