/** MCP servers for tests: the reference server over both transports, and one that lies. */

import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { createMcp, type Mcp } from "../../../packages/daemon/src/engine/engine.ts";
import type { McpConfig } from "../../../packages/daemon/src/engine/mcp/mcp.ts";
import type { Tool, ToolContext, ToolQuestion } from "../../../packages/daemon/src/engine/tool.ts";
import { RESTART_RULES } from "../../../packages/daemon/src/std/supervision.ts";
import { systemClock } from "../../../packages/protocol/src/clock.ts";
import type { ApprovalOutcome, EngineRequest } from "../../../packages/protocol/src/engine.ts";
import type { Log } from "../../../packages/protocol/src/log.ts";
import { ownPort } from "../../port.ts";
import { until } from "../../until.ts";
import { requestOf } from "../demo-play.ts";

const EVERYTHING = fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-everything/dist/index.js"));
const LIAR = fileURLToPath(new URL("./liar.ts", import.meta.url));

export const everything = { command: process.execPath, args: [EVERYTHING, "stdio"] };

/** `how` says what it lies about; see there. */
export const liar = (...how: string[]) => ({ command: process.execPath, args: [LIAR, ...how] });

export interface Rig {
	mcp: Mcp;
	logged: { level: string; facts: Record<string, unknown>; message: string }[];
}

export function rig(config: McpConfig, parts: Partial<Parameters<typeof createMcp>[1]> = {}): Rig {
	const logged: Rig["logged"] = [];
	const write = (level: string) => (facts: object, message: string) =>
		void logged.push({ level, facts: { ...facts }, message });
	const log: Log = { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
	const rules = { ...RESTART_RULES, backoffMs: 10, backoffMsMax: 200, failuresMax: 1000 };
	return {
		mcp: createMcp(config, { base: ".", env: process.env, version: "0", clock: systemClock, log, rules, ...parts }),
		logged,
	};
}

export const request = (more: Partial<EngineRequest> = {}): EngineRequest => requestOf("hello", more);

export interface Called extends ToolContext {
	said: string[];
	asked: ToolQuestion[];
}

export function context({
	answer,
	runId = "run_1",
	signal = new AbortController().signal,
	progress,
}: {
	answer?: (question: ToolQuestion) => ApprovalOutcome | Promise<ApprovalOutcome>;
	runId?: string;
	signal?: AbortSignal;
	progress?: (text: string) => void;
} = {}): Called {
	const said: string[] = [];
	const asked: ToolQuestion[] = [];
	return {
		callId: "call_1",
		agent: "main",
		signal,
		request: request({ runId }),
		state: { setState() {}, getState: () => undefined, hasState: () => false, getAllState: () => ({}) },
		progress(text) {
			said.push(text);
			progress?.(text);
		},
		...(answer && {
			async ask(question: ToolQuestion) {
				asked.push(question);
				return await answer(question);
			},
		}),
		said,
		asked,
	};
}

export const answered = (text: string): ApprovalOutcome => ({ id: "K7Q2", state: "answered", text });

export async function toolNamed(mcp: Mcp, name: string, asked = request()): Promise<Tool> {
	const tools = await mcp.source.tools(asked);
	const found = tools.find((tool) => tool.name === name);
	if (!found) throw new Error(`no ${name} among ${tools.map((tool) => tool.name).join(", ")}`);
	return found;
}

export const isAlive = (pid: number): boolean => {
	try {
		process.kill(pid, 0);
		return true;
	} catch {
		return false;
	}
};

export interface HttpRig {
	url: string;
	kill(): Promise<void>;
	start(): Promise<void>;
}

/** The reference server at an address of this machine; the same one each time that it is started. */
export async function everythingAt(): Promise<HttpRig> {
	const port = await ownPort();
	let child: ChildProcess | undefined;
	const rig = {
		url: `http://127.0.0.1:${port}/mcp`,
		async start() {
			const { PATH = "", HOME = "" } = process.env;
			const env = { PATH, HOME, PORT: String(port) };
			const started = spawn(process.execPath, [EVERYTHING, "streamableHttp"], {
				env,
				stdio: ["ignore", "pipe", "pipe"],
			});
			child = started;
			let said = "";
			started.stdout.resume();
			started.stderr.setEncoding("utf8").on("data", (text: string) => {
				said += text;
			});
			await until("the reference server listens", () => said.includes("listening"));
		},
		async kill() {
			const dying = child;
			if (!dying || dying.exitCode !== null || dying.signalCode !== null) return;
			const gone = new Promise((resolve) => dying.once("exit", resolve));
			dying.kill("SIGKILL");
			await gone;
		},
	};
	await rig.start();
	return rig;
}
